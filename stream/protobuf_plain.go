package stream

import (
	"cmp"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// plainProto reads a mail or a text as decodeProto does, without the package proto. The mail shares b's memory.
// If !ok, b is something else, or wrong: decodeProto reads it, or says what is wrong.
//
// It reads each field at most once, so that nothing has to be merged.
func plainProto(b []byte) (e Event, ok bool) {
	seen := uint64(0) // bit n: field n
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || number >= 64 || seen>>number&1 == 1 {
			return Event{}, false
		}
		seen |= 1 << number
		b = b[n:]
		switch {
		case kind == protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			ok = n >= 0 && e.setNumber(number, v)
		case kind == protowire.BytesType:
			var part []byte
			part, n = protowire.ConsumeBytes(b)
			ok = n >= 0 && e.setPart(number, part[:len(part):len(part)])
		default:
			ok = false
		}
		if !ok {
			return Event{}, false
		}
		b = b[n:]
	}
	e.Source, e.Tenant = cmp.Or(e.Source, DefaultName), cmp.Or(e.Tenant, DefaultName)
	return e, true
}

// setNumber sets a number of event.proto, and reports whether it is one that can be.
func (e *Event) setNumber(field protowire.Number, v uint64) bool {
	switch field {
	case 5:
		e.Action = Action(v)
		return v <= uint64(Assume)
	case 7:
		e.Label = Label(v)
		return v <= uint64(Spam)
	case 11:
		e.OwnOnly = v == 1
		return v <= 1
	}
	return false
}

// setPart sets a part of event.proto, and reports whether it is one that can be.
func (e *Event) setPart(field protowire.Number, part []byte) bool {
	text := func(to *string) bool {
		*to = string(part)
		return utf8.Valid(part)
	}
	switch field {
	case 1:
		return text(&e.ID)
	case 2:
		return e.setTime(part)
	case 3:
		return text(&e.Source)
	case 4:
		return text(&e.Tenant)
	case 6:
		return text(&e.Of)
	case 8:
		before := e.Body.Kind
		e.Body.Kind, e.Body.Mail = Mail, part
		return before == NoBody
	case 9:
		before := e.Body.Kind
		e.Body.Kind = Text
		return text(&e.Body.Text) && before == NoBody
	}
	return false
}

// setTime sets the time to a google.protobuf.Timestamp: its seconds, then its nanoseconds.
func (e *Event) setTime(b []byte) bool {
	var parts [2]uint64 // those that are 0 are left out
	for k := range parts {
		number, kind, n := protowire.ConsumeTag(b)
		if len(b) == 0 || number != protowire.Number(k+1) {
			continue
		}
		v, m := protowire.ConsumeVarint(b[max(n, 0):])
		if kind != protowire.VarintType || n < 0 || m < 0 {
			return false
		}
		parts[k], b = v, b[n+m:]
	}
	const first, last = -62135596800, 253402300799 // years 1 to 9999
	seconds, nanos := int64(parts[0]), parts[1]
	e.Time = time.Unix(seconds, int64(nanos)).UTC()
	return len(b) == 0 && seconds >= first && seconds <= last && nanos < 1e9
}
