package stream

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Topics, and the headers that are hamlet's own rather than CloudEvents'.
const (
	DeadLetterTopic = "hamlet.dead-letters"

	// HeaderOrdinal holds an event's place in the source that ingest reads, in
	// decimal, from 0. Ingest continues there after a restart.
	HeaderOrdinal = "hamlet-ordinal"
	// HeaderSynthetic marks an event that `hamlet up` made itself. Its value is "1". No
	// model reads it: it keeps synthetic and real mail out of one topic.
	HeaderSynthetic = "hamlet-synthetic"

	headerContentType = "content-type"
	headerSpecVersion = "ce_specversion"
	headerID          = "ce_id"
	headerSource      = "ce_source"
	headerType        = "ce_type"
	headerTime        = "ce_time"
	headerTenant      = "ce_tenant"  // an extension attribute
	headerOwnOnly     = "ce_ownonly" // an extension attribute; its value is "true"

	specVersion = "1.0"
	ownOnly     = "true"
	typePrefix  = "hamlet."
	typeSuffix  = ".v1"
)

// IsModelName reports whether a model may have the name: 1 to 64 of a–z, 0–9 and the hyphen. Package
// state has the same.
func IsModelName(name string) bool {
	return 1 <= len(name) && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// CheckModelName returns an error in words if no model may have the name.
func CheckModelName(name string) error {
	if IsModelName(name) {
		return nil
	}
	return fmt.Errorf("model name %q: 1 to 64 of a-z, 0-9 and - are allowed", Clip(name, 64))
}

// EventsTopic is the topic that a model's events come in.
func EventsTopic(model string) string { return "hamlet.events." + model }

// A Header is one header of a Kafka record. A key may repeat.
type Header struct {
	Key   string
	Value []byte
}

// FindHeader returns the value of the first header with the given key.
func FindHeader(headers []Header, key string) (string, bool) {
	v, ok := findHeader(headers, key)
	return string(v), ok
}

func findHeader(headers []Header, key string) ([]byte, bool) {
	for i := range headers {
		if headers[i].Key == key {
			return headers[i].Value, true
		}
	}
	return nil, false
}

// EncodeRecord returns e as a Kafka record: all of it in protobuf, and the attributes
// of CloudEvents 1.0 in binary mode as headers, for routing.
func (e *Event) EncodeRecord() (value []byte, headers []Header, err error) {
	value, err = e.AppendProto(nil)
	if err != nil {
		return nil, nil, err
	}
	if len(value) > MaxEventSize {
		return nil, nil, fmt.Errorf("event %s: %d bytes, more than %d", redact(e.ID), len(value), MaxEventSize)
	}
	add := func(key, v string) { headers = append(headers, Header{key, []byte(v)}) }
	add(headerContentType, ContentTypeProtobuf)
	add(headerSpecVersion, specVersion)
	add(headerID, e.ID)
	add(headerSource, url.PathEscape(cmp.Or(e.Source, DefaultName))) // CloudEvents wants a URI reference
	add(headerType, typePrefix+e.Action.String()+typeSuffix)
	if !e.Time.IsZero() {
		add(headerTime, e.Time.UTC().Format(time.RFC3339Nano))
	}
	add(headerTenant, cmp.Or(e.Tenant, DefaultName))
	if e.OwnOnly {
		add(headerOwnOnly, ownOnly)
	}
	return value, headers, nil
}

// DecodeRecord reads the event of a Kafka record and validates it. The content-type
// header names the payload's encoding. Without one, a payload that starts with a brace
// is JSON, since no message of event.proto does, and any other is protobuf. Attributes
// of CloudEvents fill in what the payload leaves out. If both have a value they must
// agree. A mail may share value's memory.
func DecodeRecord(headers []Header, value []byte) (Event, error) {
	var e Event
	var err error
	media := ContentTypeProtobuf
	if contentType, ok := findHeader(headers, headerContentType); !ok {
		if len(value) > 0 && value[0] == '{' {
			media = ContentTypeJSON
		}
	} else if string(contentType) != media { // to parse it costs more than to read the event
		if media, _, err = mime.ParseMediaType(string(contentType)); err != nil {
			return Event{}, errors.New("content-type: cannot be read")
		}
	}
	switch media {
	case ContentTypeProtobuf, "application/x-protobuf":
		e, err = DecodeProto(value)
	case ContentTypeJSON:
		e, err = DecodeJSON(value)
	default:
		err = fmt.Errorf("content-type: %q is neither %s nor %s", redact(media), ContentTypeProtobuf, ContentTypeJSON)
	}
	if err != nil {
		return Event{}, err
	}
	if err := e.fillIn(headers); err != nil {
		return Event{}, err
	}
	return e, e.Validate()
}

func (e *Event) fillIn(headers []Header) error {
	if v, ok := findHeader(headers, headerSpecVersion); ok && string(v) != specVersion {
		return fmt.Errorf("%s: not %s", headerSpecVersion, specVersion)
	}
	for _, f := range []struct {
		header, absent string
		field          *string
		escaped        bool // CloudEvents wants a URI reference
	}{
		{headerID, "", &e.ID, false},
		{headerSource, DefaultName, &e.Source, true},
		{headerTenant, DefaultName, &e.Tenant, false},
	} {
		v, _ := findHeader(headers, f.header)
		if f.escaped && bytes.IndexByte(v, '%') >= 0 {
			unescaped, err := url.PathUnescape(string(v))
			if err != nil {
				return fmt.Errorf("%s: a %% that escapes nothing", f.header)
			}
			v = []byte(unescaped)
		}
		if err := merge(f.field, f.absent, v); err != nil {
			return fmt.Errorf("%s: %w", f.header, err)
		}
	}
	if v, ok := findHeader(headers, headerType); ok && bytes.HasPrefix(v, []byte(typePrefix)) && string(v) != typePrefix {
		if want := typePrefix + e.Action.String() + typeSuffix; string(v) != want {
			return fmt.Errorf("%s: the event's action makes it %q", headerType, want)
		}
	}
	if v, ok := findHeader(headers, headerOwnOnly); ok {
		if string(v) != ownOnly {
			return fmt.Errorf("%s: not %s", headerOwnOnly, ownOnly)
		}
		e.OwnOnly = true
	}
	if v, ok := findHeader(headers, headerTime); ok && e.Time.IsZero() {
		t, err := time.Parse(time.RFC3339Nano, string(v))
		if err != nil {
			return fmt.Errorf("%s: not a time of RFC 3339", headerTime)
		}
		e.Time = t.UTC()
	}
	return nil
}

// merge sets a field that is absent to a header's value. An empty header counts as
// absent, because CloudEvents has no empty attributes.
func merge(field *string, absent string, header []byte) error {
	switch {
	case len(header) == 0 || *field == string(header):
	case *field == absent:
		*field = string(header)
	default:
		return errors.New("the event itself says otherwise")
	}
	return nil
}

// A DeadLetter says why a record was not learnt, and where it is.
type DeadLetter struct {
	Reason    string
	Topic     string
	Partition int
	Offset    int64
	Time      time.Time // the record's own; zero if unknown
	Truncated int       // the record's length in bytes if it had to be cut, else 0
}

// Headers that a dead letter adds to those of its record.
const (
	headerReason          = "hamlet-reason"
	headerOriginTopic     = "hamlet-origin-topic"
	headerOriginPartition = "hamlet-origin-partition"
	headerOriginOffset    = "hamlet-origin-offset"
	headerOriginTime      = "hamlet-origin-time" // RFC 3339, UTC, to the nanosecond
	headerTruncated       = "hamlet-truncated"

	maxReason = 512 // bytes
)

// AppendHeaders appends d's headers to those of the record that it is about.
func (d DeadLetter) AppendHeaders(headers []Header) []Header {
	reason := d.Reason
	if len(reason) > maxReason {
		reason = Clip(reason, maxReason-len(ellipsis))
	}
	headers = append(headers[:len(headers):len(headers)],
		Header{headerReason, []byte(reason)},
		Header{headerOriginTopic, []byte(d.Topic)},
		Header{headerOriginPartition, strconv.AppendInt(nil, int64(d.Partition), 10)},
		Header{headerOriginOffset, strconv.AppendInt(nil, d.Offset, 10)})
	if !d.Time.IsZero() {
		headers = append(headers, Header{headerOriginTime, []byte(d.Time.UTC().Format(time.RFC3339Nano))})
	}
	if d.Truncated > 0 {
		headers = append(headers, Header{headerTruncated, strconv.AppendInt(nil, int64(d.Truncated), 10)})
	}
	return headers
}

// ParseDeadLetter reads what [DeadLetter.AppendHeaders] wrote. If there are several, it
// returns the last.
func ParseDeadLetter(headers []Header) (DeadLetter, error) {
	var d DeadLetter
	var found bool
	for _, h := range headers {
		var err error
		switch h.Key {
		case headerReason:
			d, found = DeadLetter{Reason: string(h.Value)}, true // the first header of each
		case headerOriginTopic:
			d.Topic = string(h.Value)
		case headerOriginPartition:
			d.Partition, err = strconv.Atoi(string(h.Value))
		case headerOriginOffset:
			d.Offset, err = strconv.ParseInt(string(h.Value), 10, 64)
		case headerOriginTime:
			d.Time, err = time.Parse(time.RFC3339Nano, string(h.Value))
		case headerTruncated:
			d.Truncated, err = strconv.Atoi(string(h.Value))
		}
		if err != nil {
			return DeadLetter{}, fmt.Errorf("%s: cannot be read", h.Key)
		}
	}
	if !found {
		return DeadLetter{}, fmt.Errorf("no header %s: not a dead letter", headerReason)
	}
	return d, nil
}
