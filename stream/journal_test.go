package stream

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJournalEntryInJSON(t *testing.T) {
	e := JournalEntry{
		Time: time.Date(2026, 11, 20, 10, 0, 0, 250e6, time.UTC), ID: "5f3c", MessageID: MessageIDHash("<a@b>"),
		Verdict: DecideSpam, P: .9987, Low: .9921, High: .9998, Reasons: []string{"text words", "bias"},
		Model: "default/0123456789ab", Door: "spamd", Tenant: "example.org", MS: .42, Request: "a1",
	}
	line, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(line), "\n") != 1 || !strings.HasSuffix(string(line), "}\n") {
		t.Errorf("not one line: %q", line)
	}
	for _, name := range []string{"verdict", "p", "lo", "hi", "model", "id"} { // as X-Hamlet has them
		if !strings.Contains(string(line), `"`+name+`":`) {
			t.Errorf("no %q in %s", name, line)
		}
	}
	got, err := DecodeJournalEntry([]byte(strings.Replace(string(line), "{", `{"later":[1],`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, got); diff != "" {
		t.Errorf("decode differs (-want +got):\n%s", diff)
	}
	label := JournalEntry{Time: e.Time, ID: "5f3c", Label: Ham, Source: "users", Model: "default"}
	if line, err = label.AppendJSON(nil); err != nil {
		t.Fatal(err)
	}
	if want := `{"time":"2026-11-20T10:00:00.25Z","id":"5f3c","label":"ham","source":"users","model":"default"}` + "\n"; string(line) != want {
		t.Errorf("a label's line is %s, want %s", line, want)
	}
	if got, err = DecodeJournalEntry(line); err != nil || !cmp.Equal(label, got) {
		t.Errorf("a label is read as %+v, %v", got, err)
	}
	withdrawn := label
	withdrawn.Withdrawn = true
	doubtful := label
	doubtful.Tenant, doubtful.P, doubtful.Doubt = "example.org", 0, &Doubt{Phi: .25, Offset: 0}
	for want, e := range map[string]JournalEntry{
		`"model":"default","withdrawn":true}`:                                   withdrawn,
		`"model":"default","tenant":"example.org","p":0,"phi":0.25,"offset":0}`: doubtful,
	} {
		line, err := e.AppendJSON(nil)
		if err != nil || !strings.HasSuffix(string(line), want+"\n") {
			t.Errorf("a line is %s, %v, want %s", line, err, want)
		}
		if got, err := DecodeJournalEntry(line); err != nil || !cmp.Equal(e, got) {
			t.Errorf("%s is read as %+v, %v", line, got, err)
		}
	}
	for _, bad := range []string{"", "{", "[]", "{}", `{"verdict":"spam"}`, `{"time":"yesterday"}`,
		`{"time":"2026-11-20T10:00:00Z","label":"ham"}`, `{"time":"2026-11-20T10:00:00Z","id":"a","label":"jam"}`} {
		if e, err := DecodeJournalEntry([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, e)
		}
	}
}

func TestJournalHoldsNoAddress(t *testing.T) {
	for name, want := range map[string]string{"example.org": "example.org", "": "", "a1": "a1"} {
		if got := Unaddressed(name); got != want {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	a, b := Unaddressed("ann@example.org"), Unaddressed("bob@example.org")
	if len(a) != 17 || a[0] != '#' || a == b || strings.Contains(a, "ann") {
		t.Errorf("addresses become %q and %q", a, b)
	}
	// A log has the Message-ID in brackets, or without.
	if h := MessageIDHash("<1@example.org>"); len(h) != 16 || h != MessageIDHash(" 1@example.org\t") || h == MessageIDHash("2@example.org") {
		t.Errorf("hash of a Message-ID: %q", h)
	}
	if h := MessageIDHash(" <> "); h != "" {
		t.Errorf("hash of no Message-ID: %q", h)
	}
}
