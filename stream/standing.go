package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
	"time"
)

// TypeStanding is the type of a [Standing], in its JSON and as ce_type on Kafka.
const TypeStanding = "hamlet.standing.v1"

// A Role says how the labels of a source count.
type Role uint8

const (
	Ordinary Role = iota // weighed by the source's agreement with others
	Anchor               // believed: they count in full, and others are compared with them
	Muted                // not learnt
)

var roleNames = [...]string{Ordinary: "ordinary", Anchor: "anchor", Muted: "muted"}

// String returns the role's name on the wire.
func (r Role) String() string {
	if r > Muted {
		return fmt.Sprintf("Role(%d)", uint8(r))
	}
	return roleNames[r]
}

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	i := slices.Index(roleNames[:], s)
	if i < 0 {
		return 0, fmt.Errorf("role: %s is not one of %s", word(s), strings.Join(roleNames[:], ", "))
	}
	return Role(i), nil
}

// A Standing is an operator's word about a source of labels: its role from here on. It is a
// record of the events topic, so that a model stays a function of its log. It is no event: no
// model counts it, and a copy of it changes nothing. It is not an [Action] either. Whoever may
// write the topic may set roles; who only has a token for events may not.
//
//	{"type": "hamlet.standing.v1", "id": "s1", "time": "2026-11-20T10:00:00Z",
//	 "source": "abuse-desk", "role": "anchor"}
type Standing struct {
	ID     string
	Time   time.Time // when the operator said so, UTC; zero if unknown; no model depends on it
	Source string    // whose labels
	Role   Role
}

// Validate returns all reasons why no model can follow s, joined.
func (s *Standing) Validate() error {
	var errs []error
	for _, f := range []struct {
		name, value string
		limit       int
	}{{"id", s.ID, MaxIDLength}, {"source", s.Source, MaxNameLength}} {
		if f.value == "" {
			errs = append(errs, fmt.Errorf("%s: missing", f.name))
		} else if err := checkName(f.value, f.limit); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
		}
	}
	if strings.Contains(s.Source, "@") {
		errs = append(errs, errors.New("source: an opaque name is wanted, not an address"))
	}
	if err := checkTime(s.Time); err != nil {
		errs = append(errs, err)
	}
	if s.Role > Muted {
		errs = append(errs, fmt.Errorf("role: unknown value %d", s.Role))
	}
	return errors.Join(errs...)
}

type jsonStanding struct {
	Type   string     `json:"type"`
	ID     string     `json:"id"`
	Time   *time.Time `json:"time,omitempty"`
	Source string     `json:"source"`
	Role   string     `json:"role"`
}

var standingFields = []string{"type", "id", "time", "source", "role"}

// AppendJSON appends s to dst on one line, without a newline.
func (s *Standing) AppendJSON(dst []byte) ([]byte, error) {
	j := jsonStanding{Type: TypeStanding, ID: s.ID, Source: s.Source, Role: s.Role.String()}
	if !s.Time.IsZero() {
		t := s.Time.UTC()
		j.Time = &t
	}
	b, err := json.Marshal(j)
	if err != nil {
		return dst, fmt.Errorf("standing %s in JSON: %w", redact(s.ID), err)
	}
	return append(dst, b...), nil
}

// DecodeStanding reads and validates one standing in JSON, as strictly as [DecodeJSON]. All
// fields but the time must be there.
func DecodeStanding(b []byte) (Standing, error) {
	s, err := decodeStanding(b)
	if err != nil {
		return Standing{}, fmt.Errorf("standing in JSON: %w", err)
	}
	return s, nil
}

func decodeStanding(b []byte) (Standing, error) {
	if _, err := checkFields(b, "standing", standingFields); err != nil {
		return Standing{}, err
	}
	var j jsonStanding
	if err := json.Unmarshal(b, &j); err != nil {
		return Standing{}, plainJSONError(err)
	}
	if j.Type != TypeStanding {
		return Standing{}, fmt.Errorf("type: %q is wanted", TypeStanding)
	}
	s := Standing{ID: j.ID, Source: j.Source}
	if j.Time != nil {
		s.Time = j.Time.UTC()
	}
	var err error
	s.Role, err = ParseRole(j.Role)
	return s, errors.Join(err, s.Validate())
}

// HasType reports whether a line of JSON is an object with a field "type". No event has one;
// a record of another kind does.
func HasType(b []byte) bool {
	if !bytes.Contains(b, []byte(`"type"`)) {
		return false
	}
	var j struct {
		Type *json.RawMessage `json:"type"`
	}
	return json.Unmarshal(b, &j) == nil && j.Type != nil
}

// EncodeRecord returns s as a Kafka record: all of it in JSON, and the attributes of
// CloudEvents 1.0 in binary mode as headers.
func (s *Standing) EncodeRecord() (value []byte, headers []Header, err error) {
	if value, err = s.AppendJSON(nil); err != nil {
		return nil, nil, err
	}
	for _, h := range [...][2]string{
		{headerContentType, ContentTypeJSON}, {headerSpecVersion, specVersion}, {headerID, s.ID},
		{headerSource, standingSource}, {headerType, TypeStanding},
	} {
		headers = append(headers, Header{h[0], []byte(h[1])})
	}
	return value, headers, nil
}

// standingSource is what CloudEvents calls the source of a standing: the operator.
const standingSource = "operator"

// IsStanding reports whether the headers of a Kafka record say that it is a [Standing].
func IsStanding(headers []Header) bool {
	v, _ := findHeader(headers, headerType)
	return string(v) == TypeStanding
}

// DecodeStandingRecord reads the standing of a Kafka record for which [IsStanding] holds.
// The headers must agree with the payload.
func DecodeStandingRecord(headers []Header, value []byte) (Standing, error) {
	if v, ok := FindHeader(headers, headerSpecVersion); ok && v != specVersion {
		return Standing{}, fmt.Errorf("%s: not %s", headerSpecVersion, specVersion)
	}
	if v, ok := FindHeader(headers, headerContentType); ok {
		if media, _, err := mime.ParseMediaType(v); err != nil || media != ContentTypeJSON {
			return Standing{}, fmt.Errorf("content-type: a standing is %s", ContentTypeJSON)
		}
	}
	s, err := DecodeStanding(value)
	if err != nil {
		return Standing{}, err
	}
	if v, ok := FindHeader(headers, headerID); ok && v != s.ID {
		return Standing{}, fmt.Errorf("%s: the standing itself says otherwise", headerID)
	}
	return s, nil
}
