package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/nats"
)

type reader struct {
	lines []stream.AuditEntry
	bad   int
	err   error
}

func (r reader) Read(_ context.Context, n int, _ time.Time) ([]stream.AuditEntry, int, error) {
	return r.lines[:min(n, len(r.lines))], r.bad, r.err
}

// show returns the page as a user with the roles sees it.
func show(t *testing.T, from reader, roles access.Role) (int, string) {
	t.Helper()
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler)})
	site.Add(Page(site, from))
	r := httptest.NewRequest("GET", "/audit", nil)
	r = r.WithContext(access.WithUser(r.Context(), access.User{Name: "ann", Role: roles}))
	w := httptest.NewRecorder()
	site.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func line(id, outcome string, minute int) stream.AuditEntry {
	return stream.AuditEntry{
		ID: id, Time: time.Date(2026, 11, 20, 10, minute, 0, 0, time.UTC), Model: "default", User: "ann@example.org", Roles: "look,operate", From: "192.0.2.1",
		Action: "withdraw", Target: "feed-" + id, Detail: map[string]string{"since": "5210", "labels": "12"}, Outcome: outcome,
	}
}

func TestAnActionIsOneRow(t *testing.T) {
	status, text := show(t, reader{lines: []stream.AuditEntry{
		line("4", stream.AuditIntended, 9), line("3", stream.AuditFailed+"Redis is away", 8), line("2", stream.AuditDone, 7), line("3", stream.AuditIntended, 6),
		line("2", stream.AuditIntended, 5), line("1", stream.AuditDone, 4),
	}}, access.Look|access.Operate)
	if status != http.StatusOK {
		t.Fatal(status)
	}
	_, body, _ := strings.Cut(text, "<tbody>")
	var got []string
	for row := range strings.SplitSeq(body, "<tr>") {
		switch {
		case strings.Contains(row, "no outcome</span>"):
			got = append(got, "open")
		case strings.Contains(row, "failed</span>") && strings.Contains(row, "Redis is away"):
			got = append(got, "failed")
		case strings.Contains(row, "done</span>"):
			got = append(got, "done")
		default:
			continue
		}
		for _, want := range []string{"ann@example.org", "withdraw", "feed-", "192.0.2.1", "5210", "labels", "look,operate"} {
			if !strings.Contains(row, want) {
				t.Errorf("a row has no %s: %s", want, row)
			}
		}
	}
	if strings.Join(got, " ") != "open failed done done" {
		t.Errorf("the rows are %q", got)
	}
	if !strings.Contains(body, "10:06:00") || strings.Contains(body, "10:08:00") {
		t.Error("a row has not the time at which the action began")
	}
}

func TestOnlyOperatorsSeeTheAudit(t *testing.T) {
	from := reader{lines: []stream.AuditEntry{line("1", stream.AuditDone, 1)}}
	for roles, want := range map[access.Role]int{0: 403, access.Look: 403, access.Look | access.Label: 403, access.Look | access.Operate: 200} {
		if status, text := show(t, from, roles); status != want || (strings.Contains(text, "feed-1")) != (want == 200) {
			t.Errorf("with %q: %d", roles, status)
		}
	}
}

func TestHostileLines(t *testing.T) {
	bad := line("1", stream.AuditFailed+`"><script>alert(1)</script>`, 1)
	bad.User, bad.Target, bad.Action, bad.From = "<img src=x onerror=alert(1)>", "</td><script>alert(2)</script>", "<b>", "<i>"
	bad.Detail = map[string]string{"<u>": `' onmouseover='alert(3)`}
	_, text := show(t, reader{lines: []stream.AuditEntry{bad}, bad: 3}, access.Operate|access.Look)
	for _, raw := range []string{"<script>alert", "<img", "<b>", "<i>", "<u>", "' onmouseover='"} {
		if strings.Contains(text, raw) {
			t.Errorf("the page has %s", raw)
		}
	}
	if !strings.Contains(text, "3 messages of the stream are no lines") {
		t.Error("messages that are no lines are not told")
	}
}

func TestEmptyAndAway(t *testing.T) {
	if _, text := show(t, reader{}, access.Look|access.Operate); !strings.Contains(text, "Nobody has done anything here yet") {
		t.Error("an empty audit says nothing")
	}
	for err, want := range map[error]string{errors.New("no right to it"): "no right to it", fmt.Errorf("read: %w", nats.ErrNoServer): "NATS cannot be reached"} {
		status, text := show(t, reader{err: err}, access.Look|access.Operate)
		if status != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "Nobody has done") {
			t.Errorf("%v: %d, %s", err, status, text)
		}
	}
	var many reader
	for i := range 300 {
		e := line(fmt.Sprint(i), stream.AuditDone, 1)
		e.Outcome, e.Target = stream.AuditFailed+strings.Repeat("<", 1000), strings.Repeat("<", 512)
		many.lines = append(many.lines, e)
	}
	if _, text := show(t, many, access.Look|access.Operate); strings.Count(text, "<tr>") != newest+1 || !strings.Contains(text, "nats stream view") || len(text) > 1<<20 {
		t.Errorf("many lines: %d rows, %d bytes", strings.Count(text, "<tr>"), len(text))
	}
}
