package stream

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is written is read, as JSON and as a record, and a record is no event.
func TestStandingComesBack(t *testing.T) {
	for _, s := range []Standing{
		{ID: "s1", Time: time.Date(2026, 11, 20, 10, 0, 0, 5, time.UTC), Source: "abuse-desk", Role: Anchor},
		{ID: "2", Source: "Händler \"x\"", Role: Muted},
		{ID: "3", Source: strings.Repeat("x", MaxNameLength), Role: Ordinary},
	} {
		line, err := s.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeStanding(line)
		if d := cmp.Diff(s, back); err != nil || d != "" || !HasType(line) {
			t.Errorf("%s: %v, has a type: %v (-want +got):\n%s", line, err, HasType(line), d)
		}
		value, headers, err := s.EncodeRecord()
		if err != nil || !IsStanding(headers) {
			t.Fatalf("headers %v: %v", headers, err)
		}
		back, err = DecodeStandingRecord(headers, value)
		if d := cmp.Diff(s, back); err != nil || d != "" {
			t.Errorf("as a record: %v (-want +got):\n%s", err, d)
		}
		if e, err := DecodeRecord(headers, value); err == nil {
			t.Errorf("the record was read as the event %+v", e)
		}
		if e, err := DecodeJSON(line); err == nil {
			t.Errorf("%s was read as the event %+v", line, e)
		}
	}
}

func TestStandingIsStrict(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"hamlet.standing.v1","id":"1","source":"a","role":"anchor","label":"spam"}`:                 `unknown field "label"`,
		`{"type":"hamlet.standing.v1","id":"1","source":"a","role":"anchor","role":"muted"}`:                 `field "role" is given twice`,
		`{"type":"hamlet.standing.v2","id":"1","source":"a","role":"anchor"}`:                                `"hamlet.standing.v1" is wanted`,
		`{"id":"1","source":"a","role":"anchor"}`:                                                            `"hamlet.standing.v1" is wanted`,
		`{"type":"hamlet.standing.v1","id":"1","source":"a"}`:                                                `role: "" is not one of`,
		`{"type":"hamlet.standing.v1","id":"1","source":"a","role":"Anchor"}`:                                `role: "Anchor" is not one of ordinary, anchor, muted`,
		`{"type":"hamlet.standing.v1","source":"a","role":"anchor"}`:                                         "id: missing",
		`{"type":"hamlet.standing.v1","id":"1","role":"anchor"}`:                                             "source: missing",
		`{"type":"hamlet.standing.v1","id":"1","source":"a@example.org","role":"anchor"}`:                    "an opaque name",
		`{"type":"hamlet.standing.v1","id":"1","source":"a\nb","role":"anchor"}`:                             "control character",
		`{"type":"hamlet.standing.v1","id":"1","source":"` + strings.Repeat("x", 257) + `","role":"anchor"}`: "257 bytes",
		`{"type":"hamlet.standing.v1","id":"1","source":"a","role":"anchor","time":"yesterday"}`:             "RFC 3339",
		`{"type":"hamlet.standing.v1","id":"1","source":"a","role":"anchor","time":null}`:                    `"time" is null`,
		`{"type":"hamlet.standing.v1","id":"1","source":"a","role":"anchor"} {}`:                             "something follows",
		`{"type":"hamlet.standing.v1","id":"1","source":"a","role":"anchor"`:                                 "ends too early",
		`{"type":"hamlet.standing.v1","id":"1","source":"a","role":1}`:                                       `field "role": a number does not fit`,
		`["hamlet.standing.v1"]`: "an object is wanted",
	} {
		if s, err := DecodeStanding([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", line, s, err, want)
		}
	}
}

// Headers that contradict the payload are refused.
func TestStandingRecordIsStrict(t *testing.T) {
	s := Standing{ID: "1", Source: "a", Role: Muted}
	value, good, err := s.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	for key, bad := range map[string]string{"ce_id": "2", "ce_specversion": "0.3", "content-type": ContentTypeProtobuf} {
		headers := append([]Header{{key, []byte(bad)}}, good...) // the first of a name counts
		if s, err := DecodeStandingRecord(headers, value); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s of %s: %+v, %v", key, bad, s, err)
		}
	}
	if s, err := DecodeStandingRecord([]Header{{"ce_type", []byte(TypeStanding)}}, value); err != nil || s.ID != "1" {
		t.Errorf("with its type alone: %+v, %v", s, err)
	}
}

// An event may speak of types: only a field of the outermost object counts.
func TestHasType(t *testing.T) {
	for line, want := range map[string]bool{
		`{"type":"x"}`: true, `{"id":"1","type":1}`: true,
		`{"text":"\"type\""}`: false, `{"vector":{"type":1}}`: false, `"type"`: false, `{"type"`: false, ``: false,
	} {
		if HasType([]byte(line)) != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
}

func FuzzDecodeStanding(f *testing.F) {
	f.Add([]byte(`{"type":"hamlet.standing.v1","id":"s1","time":"2026-11-20T10:00:00Z","source":"abuse-desk","role":"anchor"}`))
	f.Add([]byte(`{"type":"hamlet.standing.v1","id":"\u00e4","source":"a b","role":"muted"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeStanding(b)
		if err != nil {
			return
		}
		value, headers, err := s.EncodeRecord()
		if err != nil {
			t.Fatalf("decoded from %q, but: %v", b, err)
		}
		back, err := DecodeStandingRecord(headers, value)
		if d := cmp.Diff(s, back); err != nil || d != "" {
			t.Fatalf("%q became %q: %v (-first +second)\n%s", b, value, err, d)
		}
	})
}
