package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/history"
	"hamlet/stream"
	"hamlet/stream/nats"
)

func identity(i int) string { return fmt.Sprintf("%032x", i+1) }

// writeAll appends 120 decisions, a second apart, of which every tenth message got a label. The
// answer to every fifth was spam.
func writeAll(t *testing.T, conn *natsgo.Conn, begin time.Time) {
	t.Helper()
	decisions, err := nats.NewJournal(conn, nats.JournalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	labels, err := nats.NewJournal(conn, nats.JournalConfig{Labels: true})
	if err != nil {
		t.Fatal(err)
	}
	var given []stream.JournalEntry
	for i := range 120 {
		e := stream.JournalEntry{Time: begin.Add(time.Duration(i) * time.Second), ID: identity(i), MessageID: stream.MessageIDHash(fmt.Sprint("<m", i, ">")),
			Verdict: stream.DecideHam, P: 0.1, Model: "default/0123456789ab", Door: "milter", Tenant: "default", Request: fmt.Sprint("r", i)}
		if i%5 == 0 {
			e.Verdict, e.P, e.Door = stream.DecideSpam, 0.99, "spamd"
		}
		if i%10 == 0 {
			given = append(given, stream.JournalEntry{Time: e.Time.Add(time.Minute), ID: e.ID, Label: stream.Spam, Source: "users", Model: "default"})
			if i == 50 { // changed later
				given = append(given, stream.JournalEntry{Time: e.Time.Add(time.Hour), ID: e.ID, Label: stream.Ham, Source: "ann", Model: "default"})
			}
		}
		if err := decisions.Append(patience(t), fmt.Sprint(i), []stream.JournalEntry{e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := labels.Append(patience(t), "labels", given); err != nil {
		t.Fatal(err)
	}
}

func requests(entries []history.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Request)
	}
	return strings.Join(all, " ")
}

// Page by page, the journal is read once from its end to its beginning.
func TestPages(t *testing.T) {
	conn := startNATS(t)
	begin := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	writeAll(t, conn, begin)
	var got []history.Entry
	var before nats.JournalPosition
	for pages := 1; ; pages++ {
		page, err := history.Read(patience(t), conn, "default", &history.Filter{}, 50, before)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Entries...)
		if before = page.Older; (before == nats.JournalPosition{}) {
			if pages != 3 || len(page.Entries) != 20 {
				t.Errorf("%d pages, the last of %d", pages, len(page.Entries))
			}
			break
		}
		if len(page.Entries) != 50 {
			t.Fatalf("page %d has %d decisions", pages, len(page.Entries))
		}
	}
	if !slices.IsSortedFunc(got, func(a, b history.Entry) int { return b.Time.Compare(a.Time) }) || len(got) != 120 {
		t.Errorf("%d decisions: %s", len(got), requests(got))
	}
	exact, err := history.Read(patience(t), conn, "default", &history.Filter{}, 120, nats.JournalPosition{})
	if err != nil || len(exact.Entries) != 120 || (exact.Older != nats.JournalPosition{}) {
		t.Errorf("a page of all has %d decisions, and older ones at %v; %v", len(exact.Entries), exact.Older, err)
	}
	for _, c := range []struct {
		filter history.Filter
		want   string
	}{
		{history.Filter{Label: history.Corrected}, "r50"},
		{history.Filter{Label: history.Labelled, Since: begin.Add(85 * time.Second)}, "r110 r100 r90"},
		{history.Filter{ID: identity(7)}, "r7"},
		{history.Filter{ID: "r7"}, "r7"},
		{history.Filter{MessageID: "<m7>"}, "r7"},
		{history.Filter{Verdict: "spam", Since: begin.Add(100 * time.Second)}, "r115 r110 r105 r100"},
		{history.Filter{Door: "spamd", Verdict: "ham"}, ""},
		{history.Filter{Tenant: "other"}, ""},
		{history.Filter{ID: "ann@tenant.example"}, ""},
		{history.Filter{Tenant: "default", Since: begin.Add(118 * time.Second)}, "r119 r118"},
		{history.Filter{Identities: map[string]bool{identity(3): true, identity(5): true}}, "r5 r3"},
	} {
		page, err := history.Read(patience(t), conn, "default", &c.filter, 50, nats.JournalPosition{})
		if got := requests(page.Entries); err != nil || got != c.want {
			t.Errorf("%+v: %q, want %q; %v", c.filter, got, c.want, err)
		}
	}
	changed, err := history.Read(patience(t), conn, "default", &history.Filter{ID: "r50"}, 1, nats.JournalPosition{})
	if err != nil || len(changed.Entries) != 1 || changed.Entries[0].Given != stream.Ham || changed.Entries[0].By != "ann" || !changed.Entries[0].Corrected() {
		t.Errorf("the changed label is %+v, %v", changed.Entries, err)
	}

	figures, err := history.ReadFigures(patience(t), conn, "default", &history.Filter{Door: "spamd", Label: history.Corrected}, 1000)
	if err != nil || figures.Looked != 120 || len(figures.Figures) != 2 || figures.Figures[0].Labelled != 12 || figures.Figures[0].Corrected != 1 {
		t.Errorf("the figures are %+v, %v", figures, err)
	}
}

// A search whose time is up returns what it has; nothing hangs while the server is away.
func TestReadEnds(t *testing.T) {
	conn := startNATS(t)
	if page, err := history.Read(patience(t), conn, "default", &history.Filter{}, 50, nats.JournalPosition{}); err != nil || page.Looked != 0 {
		t.Errorf("without a journal: %+v, %v", page, err)
	}
	writeAll(t, conn, time.Now())
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	page, err := history.Read(over, conn, "default", &history.Filter{}, 50, nats.JournalPosition{})
	if err != nil || !page.Stopped || !page.LabelsMissing {
		t.Errorf("after the deadline: %+v, %v", page, err)
	}
	if figures, err := history.ReadFigures(over, conn, "default", &history.Filter{}, 50); err != nil || !figures.Stopped {
		t.Errorf("figures after the deadline: %+v, %v", figures, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := history.Read(stopped, conn, "default", &history.Filter{}, 50, nats.JournalPosition{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped search: %v", err)
	}
	conn.Close()
	if _, err := history.Read(patience(t), conn, "default", &history.Filter{}, 50, nats.JournalPosition{}); !errors.Is(err, nats.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
}
