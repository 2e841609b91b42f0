package stream

import (
	"cmp"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hamlet/stream/eventpb"
)

//go:generate protoc --go_out=.. --go_opt=module=hamlet event.proto

// ContentTypeProtobuf marks a message of event.proto, the encoding that hamlet writes.
const ContentTypeProtobuf = "application/protobuf"

// AppendProto appends e in protobuf to dst. Equal events give equal bytes.
func (e *Event) AppendProto(dst []byte) ([]byte, error) {
	m := &eventpb.Event{
		Id: e.ID, Source: e.Source, Tenant: e.Tenant, Of: e.Of,
		Action: eventpb.Action(e.Action), Label: eventpb.Label(e.Label), OwnOnly: e.OwnOnly,
	}
	if s := e.Sampled; s != (Sampled{}) {
		m.Sampled = &eventpb.Sampled{Probability: s.Probability, Why: s.Why}
		if s.Least != s.Probability {
			m.Sampled.Least = s.Least
		}
	}
	if !e.Time.IsZero() {
		m.Time = timestamppb.New(e.Time)
	}
	switch e.Body.Kind {
	case Mail:
		m.Body = &eventpb.Event_Mail{Mail: e.Body.Mail}
	case Text:
		m.Body = &eventpb.Event_Text{Text: e.Body.Text}
	case Vector:
		v := &eventpb.Vector{
			Names: make([]string, len(e.Body.Vector)), Values: make([]float64, len(e.Body.Vector)),
		}
		for i, n := range e.Body.Vector {
			v.Names[i], v.Values[i] = n.Name, n.Value
		}
		m.Body = &eventpb.Event_Vector{Vector: v}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, m)
	if err != nil {
		return dst, fmt.Errorf("event %s in protobuf: %w", redact(e.ID), err)
	}
	return b, nil
}

// DecodeProto reads one event in protobuf, as strictly as [DecodeJSON]. An unknown
// field, action or label is an error. So is a vector that repeats a name, or whose
// names and values differ in number. A mail may share b's memory.
func DecodeProto(b []byte) (Event, error) {
	if e, ok := plainProto(b); ok {
		return e, nil
	}
	e, err := decodeProto(b)
	if err != nil {
		return Event{}, fmt.Errorf("event in protobuf: %w", err)
	}
	return e, nil
}

func decodeProto(b []byte) (Event, error) {
	var m eventpb.Event
	if err := proto.Unmarshal(b, &m); err != nil {
		return Event{}, errors.New("the bytes are not a message of event.proto")
	}
	if u := m.ProtoReflect().GetUnknown(); len(u) > 0 {
		return Event{}, unknownField(u)
	}
	e := Event{
		ID: m.Id, Source: cmp.Or(m.Source, DefaultName), Tenant: cmp.Or(m.Tenant, DefaultName), Of: m.Of,
		Action: Action(m.Action), Label: Label(m.Label), OwnOnly: m.OwnOnly,
	}
	if m.Action < 0 || m.Action > eventpb.Action_ACTION_ASSUME {
		return Event{}, fmt.Errorf("action: unknown value %d", m.Action)
	}
	if m.Label < 0 || m.Label > eventpb.Label_LABEL_SPAM {
		return Event{}, fmt.Errorf("label: unknown value %d", m.Label)
	}
	if m.Time != nil {
		if err := m.Time.CheckValid(); err != nil {
			return Event{}, errors.New("time: outside years 1 to 9999")
		}
		if u := m.Time.ProtoReflect().GetUnknown(); len(u) > 0 {
			return Event{}, fmt.Errorf("time: %w", unknownField(u))
		}
		e.Time = m.Time.AsTime()
	}
	if s := m.Sampled; s != nil {
		if u := s.ProtoReflect().GetUnknown(); len(u) > 0 {
			return Event{}, fmt.Errorf("sampled: %w", unknownField(u))
		}
		var err error
		if e.Sampled, err = protoSampled(s.Probability, s.Least, s.Why); err != nil {
			return Event{}, err
		}
	}
	switch body := m.Body.(type) {
	case *eventpb.Event_Mail:
		e.Body = Body{Kind: Mail, Mail: body.Mail}
	case *eventpb.Event_Text:
		e.Body = Body{Kind: Text, Text: body.Text}
	case *eventpb.Event_Vector:
		v := body.Vector
		if u := v.ProtoReflect().GetUnknown(); len(u) > 0 {
			return Event{}, fmt.Errorf("vector: %w", unknownField(u))
		}
		if len(v.Names) != len(v.Values) {
			return Event{}, fmt.Errorf("vector: %d names and %d values", len(v.Names), len(v.Values))
		}
		e.Body = Body{Kind: Vector, Vector: make([]Number, len(v.Names))}
		for i, name := range v.Names {
			e.Body.Vector[i] = Number{Name: name, Value: v.Values[i]}
		}
		if err := SortVector(e.Body.Vector); err != nil {
			return Event{}, err
		}
	}
	return e, nil
}

func unknownField(b []byte) error {
	n, _, _ := protowire.ConsumeTag(b)
	return fmt.Errorf("unknown field number %d", n)
}
