package order

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hamlet/stream/order/orderpb"
)

//go:generate protoc --go_out=../.. --go_opt=module=hamlet order.proto

// AppendProto appends r to dst as a message of order.proto. Equal records give equal bytes.
// It is an error if [Record.Validate] returns one.
func (r *Record) AppendProto(dst []byte) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return dst, fmt.Errorf("encode record of the order: %w", err)
	}
	m := &orderpb.Record{Writer: r.Writer, Epoch: r.Epoch}
	partition := int32(r.Partition)
	switch r.Kind {
	case Beginning:
		b := &orderpb.Beginning{}
		for i := range r.Places {
			p := &r.Places[i]
			b.Places = append(b.Places, &orderpb.Place{Next: p.Next, Chain: p.Chain[:], Before: p.Before[:]})
		}
		if r.Model != ([sha256.Size]byte{}) {
			b.Model = r.Model[:]
		}
		m.Entry = &orderpb.Record_Beginning{Beginning: b}
	case Range:
		m.Entry = &orderpb.Record_Range{Range: &orderpb.Range{Partition: partition, From: r.From, To: r.To, Gaps: r.Gaps, Chain: r.Chain[:]}}
	case Join:
		m.Entry = &orderpb.Record_Join{Join: &orderpb.Join{Partition: partition}}
	case Gap:
		m.Entry = &orderpb.Record_Gap{Gap: &orderpb.Gap{Partition: partition, From: r.From, To: r.To}}
	default:
		panic("order: Validate let an unknown kind pass")
	}
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, m)
	if err != nil {
		return dst, fmt.Errorf("encode record of the order: %w", err)
	}
	return b, nil
}

// Decode reads one record. An unknown field or kind is an error: a newer hamlet wrote it,
// and a learner that skips it would differ from the others.
func Decode(b []byte) (Record, error) {
	r, err := decode(b)
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return Record{}, fmt.Errorf("record of the order in protobuf: %w", err)
	}
	return r, nil
}

func decode(b []byte) (Record, error) {
	var m orderpb.Record
	if err := proto.Unmarshal(b, &m); err != nil {
		return Record{}, errors.New("the bytes are not a message of order.proto")
	}
	if err := refuseUnknown(m.ProtoReflect()); err != nil {
		return Record{}, err
	}
	r := Record{Writer: m.Writer, Epoch: m.Epoch}
	var err error
	switch entry := m.Entry.(type) {
	case *orderpb.Record_Beginning:
		r.Kind = Beginning
		if err = decodePlaces(&r, entry.Beginning); err == nil && len(entry.Beginning.Model) > 0 {
			r.Model, err = decodeHash("model", entry.Beginning.Model)
		}
	case *orderpb.Record_Range:
		e := entry.Range
		r.Kind, r.Partition, r.From, r.To, r.Gaps = Range, int(e.Partition), e.From, e.To, e.Gaps
		r.Chain, err = decodeHash("chain", e.Chain)
	case *orderpb.Record_Join:
		r.Kind, r.Partition = Join, int(entry.Join.Partition)
	case *orderpb.Record_Gap:
		e := entry.Gap
		r.Kind, r.Partition, r.From, r.To = Gap, int(e.Partition), e.From, e.To
	default:
		err = errors.New("it has no entry")
	}
	return r, err
}

func decodePlaces(r *Record, b *orderpb.Beginning) error {
	for _, p := range b.Places {
		chain, chainErr := decodeHash("chain", p.Chain)
		before, beforeErr := decodeHash("before", p.Before)
		if err := errors.Join(chainErr, beforeErr); err != nil {
			return err
		}
		r.Places = append(r.Places, Place{Next: p.Next, Chain: chain, Before: before})
	}
	return nil
}

func decodeHash(name string, b []byte) (h [sha256.Size]byte, err error) {
	if len(b) != len(h) {
		return h, fmt.Errorf("%s: %d bytes, not %d", name, len(b), len(h))
	}
	return [sha256.Size]byte(b), nil
}

// refuseUnknown returns an error if m or a message in it has an unknown field.
func refuseUnknown(m protoreflect.Message) (err error) {
	if u := m.GetUnknown(); len(u) > 0 {
		n, _, _ := protowire.ConsumeTag(u)
		return fmt.Errorf("%s has the unknown field number %d: a newer hamlet wrote it, use that one", m.Descriptor().Name(), n)
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := 0; err == nil && i < v.List().Len(); i++ {
				err = refuseUnknown(v.List().Get(i).Message())
			}
		default:
			err = refuseUnknown(v.Message())
		}
		return err == nil
	})
	return err
}
