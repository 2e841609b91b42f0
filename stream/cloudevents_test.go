package stream

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestHeadersFillInAndMustAgree(t *testing.T) {
	h := func(kv ...string) (out []Header) {
		for i := 0; i < len(kv); i += 2 {
			out = append(out, Header{kv[i], []byte(kv[i+1])})
		}
		return out
	}
	bare := []byte(`{"label":"ham","text":"x"}`)
	e, err := DecodeRecord(h("ce_specversion", "1.0", "ce_id", "a7", "ce_source", "abuse%20desk", "ce_tenant", "example.org",
		"ce_time", "2026-11-20T10:00:00Z", "ce_type", "hamlet.learn.v1"), bare)
	if err != nil {
		t.Fatal(err)
	}
	if e.ID != "a7" || e.Source != "abuse desk" || e.Tenant != "example.org" ||
		!e.Time.Equal(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("attributes did not fill in: %+v", e)
	}
	full := []byte(`{"id":"b","source":"s","tenant":"t","label":"ham","text":"x"}`)
	for _, c := range []struct {
		headers []Header
		want    string
	}{
		{h("ce_id", "a"), "ce_id: the event itself says otherwise"},
		{h("ce_source", "other"), "ce_source"},
		{h("ce_source", "%zz"), "ce_source"},
		{h("ce_tenant", "other"), "ce_tenant"},
		{h("ce_specversion", "2.0"), "ce_specversion"},
		{h("ce_type", "hamlet.unlearn.v1"), "ce_type"},
		{h("ce_time", "today"), "ce_time"},
		{h("ce_ownonly", "false"), "ce_ownonly: not true"},
		{h("ce_ownonly", "true"), "own_only: learn has none"},
		{h("content-type", "text/xml"), `content-type: "text/xml" is neither`},
		{h("content-type", "/"), "content-type"},
		{h("content-type", "application/protobuf"), "protobuf"},
	} {
		if _, err := DecodeRecord(c.headers, full); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: got %v, want %q in it", c.headers[0].Key, c.headers[0].Value, err, c.want)
		}
	}
}

// A record's header narrows what a withdrawal may be about, and nothing widens it.
func TestOwnOnlyIsInTheHeaders(t *testing.T) {
	e := Event{ID: "b", Source: "s", Tenant: "t", Action: Unlearn, Of: "a", OwnOnly: true, Body: Body{Kind: Text, Text: "x"}}
	value, headers, err := e.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := FindHeader(headers, "ce_ownonly"); v != "true" {
		t.Errorf("ce_ownonly is %q", v)
	}
	e.OwnOnly = false
	wide, wideHeaders, err := e.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		headers []Header
		value   []byte
		want    bool
	}{{headers, value, true}, {wideHeaders, value, true}, {headers, wide, true}, {nil, value, true}, {wideHeaders, wide, false}} {
		if got, err := DecodeRecord(c.headers, c.value); err != nil || got.OwnOnly != c.want {
			t.Errorf("%s: own only %v, %v; want %v", c.headers, got.OwnOnly, err, c.want)
		}
	}
}

// An event without source and tenant gets the default ones, also in a record. An empty
// attribute counts as absent.
func TestDefaultsOfRecords(t *testing.T) {
	e := Event{ID: "a", Label: Ham, Body: Body{Kind: Text, Text: "x"}}
	value, headers, err := e.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ce_source", "ce_tenant"} {
		if v, _ := FindHeader(headers, key); v != DefaultName {
			t.Errorf("%s is %q, want %q", key, v, DefaultName)
		}
	}
	want := e
	want.Source, want.Tenant = DefaultName, DefaultName
	empty := []Header{{"ce_id", nil}, {"ce_source", nil}, {"ce_tenant", []byte{}}}
	for _, headers := range [][]Header{headers, empty} {
		got, err := DecodeRecord(headers, value)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("with headers %s: (-want +got):\n%s", headers, d)
		}
	}
}

func TestDeadLetterTwice(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 123456789, time.FixedZone("", 3600))
	letter := DeadLetter{Reason: "one", Topic: "a", Partition: 1, Offset: 10, Time: at, Truncated: 7}
	if got, err := ParseDeadLetter(letter.AppendHeaders(nil)); err != nil || !got.Time.Equal(at) || got.Truncated != 7 {
		t.Errorf("got %+v, %v; want %+v", got, err, letter)
	}
	if v, _ := FindHeader(letter.AppendHeaders(nil), "hamlet-origin-time"); v != "2026-11-20T09:00:00.123456789Z" {
		t.Errorf("origin time %q", v)
	}
	first := letter.AppendHeaders([]Header{{"ce_id", []byte("x")}})
	second := DeadLetter{Reason: "two", Topic: "b", Partition: 2, Offset: 20}.AppendHeaders(first)
	got, err := ParseDeadLetter(second)
	if err != nil {
		t.Fatal(err)
	}
	if want := (DeadLetter{Reason: "two", Topic: "b", Partition: 2, Offset: 20}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := ParseDeadLetter([]Header{{"ce_id", []byte("x")}}); err == nil {
		t.Error("a record without a reason passed for a dead letter")
	}
}

// Reasons go into logs and topics, which more people read than the mail.
func TestReasonsQuoteNoValues(t *testing.T) {
	const secret = "ann@example.org"
	full := `{"id":"b","source":"s","tenant":"t","label":"ham","text":"x"}`
	for _, c := range []struct{ header, value, payload string }{
		{"ce_id", secret, full},
		{"ce_source", secret, full},
		{"ce_source", "%" + secret, full},
		{"ce_tenant", secret, full},
		{"ce_time", secret, full},
		{"ce_type", "hamlet." + secret, full},
		{"ce_specversion", secret, full},
		{"content-type", secret, full},
		{"content-type", "text/" + secret, full},
		{"x", "", `{"id":"` + secret + `","source":"` + secret + `","label":"ham","text":"x"}`},
		{"x", "", `{"id":"` + strings.Repeat(secret, 50) + `","label":"ham","text":"x"}`},
		{"x", "", `{"id":"b","time":"` + secret + `","label":"ham","text":"x"}`},
		{"x", "", `{"id":"b","time":"2026-11-20T10:00:00Z` + secret + `","label":"ham","text":"x"}`},
		{"x", "", `{"id":"b","time":` + `{"` + secret + `":1}` + `,"label":"ham","text":"x"}`},
		{"x", "", `{"id":"b","label":"` + secret + `","text":"x"}`},
		{"x", "", `{"id":"b","label":"ham","action":"` + secret + `","text":"x"}`},
		{"x", "", `{"id":"b","label":"You won the ann@example","text":"x"}`},
		{"x", "", `{"id":"b","label":"ham","mail":"` + secret + `"}`},
		{"x", "", `{"id":"b","label":"ham","vector":{"` + secret + `":null}}`},
		{"x", "", `{"id":"b","label":"ham","vector":{"x":"` + secret + `"}}`},
		{"x", "", `{"id":"b","label":"ham","vector":"` + secret + `"}`},
		{"x", "", `{"` + secret + `":1}`},
		{"content-type", "application/json", `"` + secret + `"`},
	} {
		_, err := DecodeRecord([]Header{{c.header, []byte(c.value)}}, []byte(c.payload))
		if err == nil || strings.Contains(err.Error(), "ann@") || strings.Contains(err.Error(), "won") {
			t.Errorf("%s: %s of %s: error %v; want one without the address", c.header, c.value, c.payload, err)
		}
	}
}

func TestReasonFitsItsHeader(t *testing.T) {
	for n := 500; n < 530; n++ {
		reason := strings.Repeat("ü", n/2) + strings.Repeat("x", n%2)
		d, err := ParseDeadLetter(DeadLetter{Reason: reason}.AppendHeaders(nil))
		if err != nil || len(d.Reason) > 512 || len(d.Reason) < min(n, 508) || !utf8.ValidString(d.Reason) || n <= 512 && d.Reason != reason {
			t.Errorf("a reason of %d bytes came back with %d: %v", n, len(d.Reason), err)
		}
	}
}
