package stream

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ContentTypeJSON marks an event, or a score request, in JSON:
//
//	{"id": "a1", "time": "2026-11-20T10:00:00Z", "source": "abuse-desk",
//	 "tenant": "example.org", "action": "learn", "label": "spam", "text": "You won …"}
//
// with exactly one body: "mail" (a message in base64), "text", or "vector" (an
// object of name: number). Relearn and unlearn have "of", and may have "own_only": true. A label
// that somebody asked for has "sampled": see [Sampled].
const ContentTypeJSON = "application/json"

type jsonEvent struct {
	ID      string       `json:"id,omitempty"`
	Time    *time.Time   `json:"time,omitempty"`
	Source  string       `json:"source,omitempty"`
	Tenant  string       `json:"tenant,omitempty"`
	Action  string       `json:"action,omitempty"`
	Of      string       `json:"of,omitempty"`
	Own     *bool        `json:"own_only,omitempty"`
	Label   string       `json:"label,omitempty"`
	Sampled *jsonSampled `json:"sampled,omitempty"`
	Mail    *[]byte      `json:"mail,omitempty"`
	Text    *string      `json:"text,omitempty"`
	Vector  *jsonVector  `json:"vector,omitempty"`
}

var jsonFields = [...]string{"id", "time", "source", "tenant", "action", "of", "own_only", "label", "sampled",
	"mail", "text", "vector"}

// DecodeJSON reads one event. It is strict about form: an unknown field, a name given
// twice, a wrong type, a second value or more than one body is an error that names it.
// Absent source and tenant become [DefaultName]. [Event.Validate] and
// [Event.ValidateRequest] check whether it can be learnt or scored.
func DecodeJSON(b []byte) (Event, error) { return DecodeJSONOf(DefaultName, b) }

// DecodeJSONOf is [DecodeJSON], but an absent tenant becomes the given one.
func DecodeJSONOf(tenant string, b []byte) (Event, error) {
	s := jsonScanner{b}
	if e, ok := s.event(tenant); ok && s.ends() {
		return e, nil
	}
	return decodeJSON(tenant, b)
}

// decodeJSON is DecodeJSONOf by encoding/json.
func decodeJSON(tenant string, b []byte) (Event, error) {
	if _, err := checkFields(b, "event", jsonFields[:]); err != nil {
		return Event{}, fmt.Errorf("event in JSON: %w", err)
	}
	var j jsonEvent
	if err := json.Unmarshal(b, &j); err != nil {
		return Event{}, fmt.Errorf("event in JSON: %w", plainJSONError(err))
	}
	e, err := j.event(tenant)
	if err != nil {
		return Event{}, fmt.Errorf("event in JSON: %w", err)
	}
	return e, nil
}

// DecodeJSONList reads an array of at most limit events, a batch of score requests, each
// as [DecodeJSONOf] does. It stops at the first event that is wrong or beyond limit; the
// error has its index.
func DecodeJSONList(tenant string, b []byte, limit int) ([]Event, error) {
	s, events := jsonScanner{b}, []Event{}
	if s.array(func() bool {
		e, ok := s.event(tenant)
		events = append(events, e)
		return ok && len(events) <= limit
	}) && s.ends() {
		return events, nil
	}
	return decodeJSONList(tenant, b, limit)
}

// decodeJSONList is DecodeJSONList by encoding/json.
func decodeJSONList(tenant string, b []byte, limit int) ([]Event, error) {
	wrap := func(err error) error { return fmt.Errorf("array of events in JSON: %w", err) }
	d := json.NewDecoder(bytes.NewReader(b))
	t, err := d.Token()
	if err != nil {
		return nil, wrap(plainJSONError(err))
	}
	if t != json.Delim('[') {
		return nil, wrap(errors.New("an array is wanted"))
	}
	events := []Event{}
	for d.More() {
		if len(events) == limit {
			return nil, wrap(fmt.Errorf("more than %d events", limit))
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, wrap(plainJSONError(err))
		}
		e, err := DecodeJSONOf(tenant, raw)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", len(events), err)
		}
		events = append(events, e)
	}
	if _, err := d.Token(); err != nil {
		return nil, wrap(plainJSONError(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, wrap(errors.New("something follows the array"))
	}
	return events, nil
}

// AppendJSON appends e to dst on one line, without a newline.
func (e *Event) AppendJSON(dst []byte) ([]byte, error) {
	j := jsonEvent{ID: e.ID, Source: e.Source, Tenant: e.Tenant, Of: e.Of, Label: e.Label.String(),
		Sampled: newJSONSampled(e.Sampled)}
	if !e.Time.IsZero() {
		t := e.Time.UTC()
		j.Time = &t
	}
	if e.Action != Learn {
		j.Action = e.Action.String()
	}
	if e.OwnOnly {
		j.Own = &e.OwnOnly
	}
	switch e.Body.Kind {
	case Mail:
		j.Mail = &e.Body.Mail
	case Text:
		j.Text = &e.Body.Text
	case Vector:
		v := jsonVector(e.Body.Vector)
		j.Vector = &v
	}
	b, err := json.Marshal(j)
	if err != nil {
		return dst, fmt.Errorf("event %s in JSON: %w", redact(e.ID), err)
	}
	return append(dst, b...), nil
}

func (j *jsonEvent) event(tenant string) (Event, error) {
	e := Event{ID: j.ID, Source: cmp.Or(j.Source, DefaultName), Tenant: cmp.Or(j.Tenant, tenant), Of: j.Of}
	if j.Time != nil {
		e.Time = j.Time.UTC()
	}
	var errs [5]error
	e.Action, errs[0] = ParseAction(j.Action)
	e.Label, errs[1] = ParseLabel(j.Label)
	if j.Own != nil {
		if e.OwnOnly = *j.Own; !e.OwnOnly {
			errs[3] = errors.New("own_only: it is true, or left out")
		}
	}
	e.Sampled, errs[4] = j.Sampled.sampled()
	bodies := 0
	if j.Mail != nil {
		bodies++
		e.Body = Body{Kind: Mail, Mail: *j.Mail}
	}
	if j.Text != nil {
		bodies++
		e.Body = Body{Kind: Text, Text: *j.Text}
	}
	if j.Vector != nil {
		bodies++
		e.Body = Body{Kind: Vector, Vector: *j.Vector}
	}
	if bodies > 1 {
		errs[2] = errors.New("body: only one of mail, text and vector may be given")
	}
	return e, errors.Join(errs[:]...)
}

// checkFields returns the field names of the outermost object. Errors call it what. It
// refuses unknown and repeated names, null in fields that are not nullable, and text that is
// not UTF-8; encoding/json would fold case, accept repeats and replace bytes.
func checkFields(b []byte, what string, known []string, nullable ...string) ([]string, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	t, err := d.Token()
	if err != nil {
		return nil, plainJSONError(err)
	}
	if t != json.Delim('{') {
		return nil, errors.New("an object is wanted")
	}
	var seen []string
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, plainJSONError(err)
		}
		name, _ := t.(string)
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown field %q; known are %s", redact(name), strings.Join(known, ", "))
		}
		if slices.Contains(seen, name) {
			return nil, fmt.Errorf("field %q is given twice", name)
		}
		seen = append(seen, name)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, plainJSONError(err)
		}
		if string(value) == "null" && !slices.Contains(nullable, name) {
			return nil, fmt.Errorf("field %q is null", name)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, plainJSONError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the %s", what)
	}
	return seen, nil
}

// plainJSONError rewords an error of encoding/json without Go's types. It quotes no
// values: they may be addresses, texts, or secrets in the wrong place.
func plainJSONError(err error) error {
	var (
		wrong  *json.UnmarshalTypeError
		syntax *json.SyntaxError
		base   base64.CorruptInputError
		part   *plainError
	)
	switch {
	case errors.As(err, &part):
		return part
	case errors.As(err, &syntax):
		return fmt.Errorf("%w (byte %d)", syntax, syntax.Offset) // names one character
	case errors.As(err, &base):
		return fmt.Errorf("field %q: %w", "mail", base)
	case errors.As(err, &wrong):
		if wrong.Field == "" {
			return fmt.Errorf("a %s is not wanted here (byte %d)", wrong.Value, wrong.Offset)
		}
		return fmt.Errorf("field %q: a %s does not fit", wrong.Field, wrong.Value)
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return errors.New("it ends too early")
	}
	// time.Time is the only other type with an UnmarshalJSON.
	return fmt.Errorf("field %q: not a time of RFC 3339, such as 2026-11-20T10:00:00Z", "time")
}

// appendJSONFloat appends a finite f as encoding/json does: without an exponent where JavaScript has none.
func appendJSONFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a == 0 || 1e-6 <= a && a < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if digits := dst[len(dst)-2:]; dst[len(dst)-3] == '-' && digits[0] == '0' { // e-07 becomes e-7
		digits[0] = digits[1]
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendJSONString appends s as encoding/json does.
func appendJSONString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			b, _ := json.Marshal(s) // a string has no error
			return append(dst, b...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// A jsonVector is an object of name: number.
type jsonVector []Number

// A plainError is an error of our own UnmarshalJSON; it needs no rewording.
type plainError struct{ err error }

func (e *plainError) Error() string { return e.err.Error() }

func (v jsonVector) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, n := range v {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(n.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(n.Value)
		if err != nil {
			return nil, fmt.Errorf("vector: %q: %w", redact(n.Name), err)
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

func (v *jsonVector) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return &plainError{errors.New("vector: an object of name: number is wanted")}
	}
	out := []Number{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return &plainError{fmt.Errorf("vector: %w", plainJSONError(err))}
		}
		n := Number{Name: t.(string)} // a name: inside an object the decoder yields nothing else
		var value *float64
		if err := d.Decode(&value); err != nil || value == nil {
			return &plainError{fmt.Errorf("vector: %q is not a number that a float64 holds", redact(n.Name))}
		}
		n.Value = *value
		out = append(out, n)
	}
	if err := SortVector(out); err != nil {
		return &plainError{err}
	}
	*v = out
	return nil
}
