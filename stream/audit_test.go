package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func auditEntry() AuditEntry {
	return AuditEntry{
		ID: "K3", Time: time.Date(2026, 11, 20, 10, 0, 0, 250e6, time.UTC), Model: "default", User: "ann@example.org", Roles: "look,operate",
		From: "192.0.2.1", Action: "withdraw", Target: "feed-7", Detail: map[string]string{"since": "2026-11-18"}, Outcome: AuditDone,
	}
}

func TestAuditEntryInJSON(t *testing.T) {
	e := auditEntry()
	line, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"K3","time":"2026-11-20T10:00:00.25Z","model":"default","user":"ann@example.org","roles":"look,operate","from":"192.0.2.1","action":"withdraw","target":"feed-7","detail":{"since":"2026-11-18"},"outcome":"done"}`
	if string(line) != want {
		t.Errorf("the line is %s, want %s", line, want)
	}
	got, err := DecodeAuditEntry([]byte(strings.Replace(want, "{", `{"later":[1],`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, got); diff != "" {
		t.Errorf("decode differs (-want +got):\n%s", diff)
	}
	for field, change := range map[string]func(e *AuditEntry){
		"id": func(e *AuditEntry) { e.ID = "" }, "time": func(e *AuditEntry) { e.Time = time.Time{} }, "model": func(e *AuditEntry) { e.Model = "" },
		"user": func(e *AuditEntry) { e.User = strings.Repeat("u", 129) }, "from": func(e *AuditEntry) { e.From = "a\nb" },
		"action": func(e *AuditEntry) { e.Action = "" }, "target": func(e *AuditEntry) { e.Target = strings.Repeat("t", 513) },
		"outcome: one": func(e *AuditEntry) { e.Outcome = "perhaps" }, "outcome: miss": func(e *AuditEntry) { e.Outcome = "" },
		"a name of detail":  func(e *AuditEntry) { e.Detail = map[string]string{"": "x"} },
		"a value of detail": func(e *AuditEntry) { e.Detail = map[string]string{"x": "\x00"} },
		"detail: 17":        func(e *AuditEntry) { e.Detail = many(17) },
	} {
		bad := auditEntry()
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, bad := range []string{"", "{", "[]", "{}", `{"id":1}`, strings.Repeat(" ", MaxAuditLine) + want} {
		if _, err := DecodeAuditEntry([]byte(bad)); err == nil {
			t.Errorf("%.40q is read", bad)
		}
	}
}

func many(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprint(i)] = "x"
	}
	return m
}

// What an error says at length, or with a line break, keeps no line from being written.
func TestAuditEntryIsShortened(t *testing.T) {
	e := auditEntry()
	detail := map[string]string{"source": "a\nb" + strings.Repeat("ü", 400)}
	e.Target, e.Detail, e.Outcome = "\xff"+strings.Repeat("<", 600), detail, AuditFailed+strings.Repeat("–", 600)
	e.Shorten()
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(e.Outcome, "–…") || !strings.HasPrefix(e.Target, "\ufffd<") || !strings.HasPrefix(e.Detail["source"], "a bü") || !strings.Contains(detail["source"], "\n") {
		t.Errorf("shortened to %+v", e)
	}
	line, err := e.AppendJSON(nil)
	if err != nil || len(line) > MaxAuditLine {
		t.Fatalf("%d bytes, %v", len(line), err)
	}
	if got, err := DecodeAuditEntry(line); err != nil || !cmp.Equal(e, got) {
		t.Errorf("read as %+v, %v", got, err)
	}
	// The longest line: JSON writes six bytes for one.
	longest := auditEntry()
	for _, s := range []*string{&longest.ID, &longest.Model, &longest.User, &longest.Roles, &longest.From, &longest.Action} {
		*s = strings.Repeat("<", maxAuditField)
	}
	longest.Target, longest.Outcome, longest.Detail = strings.Repeat("<", maxAuditTarget), AuditFailed+strings.Repeat("<", 1000), map[string]string{}
	for i := range maxAuditDetails {
		longest.Detail[fmt.Sprintf("%02d", i)+strings.Repeat("<", maxAuditField-2)] = strings.Repeat("<", maxAuditTarget)
	}
	if line, err = longest.AppendJSON(nil); err != nil || longest.Validate() != nil || len(line) > MaxAuditLine {
		t.Errorf("%d bytes, %v, %v", len(line), err, longest.Validate())
	}
	plain := AuditEntry{Detail: map[string]string{}}
	if plain.Shorten(); plain.Detail != nil {
		t.Error("no detail is a detail")
	}
}

func FuzzDecodeAuditEntry(f *testing.F) {
	e := auditEntry()
	line, err := e.AppendJSON(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte(`{"id":"1","time":"2026-11-20T10:00:00+05:00","model":"m","user":"\u003c","action":"pin","outcome":"failed: \u2028","detail":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeAuditEntry(b)
		if err != nil {
			return
		}
		line, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", b, err)
		}
		if len(line) > MaxAuditLine {
			t.Fatalf("%d bytes", len(line))
		}
		back, err := DecodeAuditEntry(line)
		if err != nil || !cmp.Equal(e, back) {
			t.Fatalf("%s is read back as %+v, %v", line, back, err)
		}
	})
}
