package answered

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/stream"
)

func doubted(n int, label stream.Label, after time.Duration) *stream.JournalEntry {
	e := labelled(n, label, after)
	e.Source, e.Tenant, e.P, e.Doubt = "ann@example.org", "bob@example.org", .01, &stream.Doubt{Phi: .1, Offset: 7}
	return e
}

// A doubtful label has a line, whether or not its message was answered, and so has what settles it:
// also if the journal tells of the doubt after that was learnt. No line names an address.
func TestDoubtsAreWrittenAndSettled(t *testing.T) { synctest.Test(t, doubtsAreWritten) }

func doubtsAreWritten(t *testing.T) {
	j := &fakeJournal{lines: make(chan *stream.JournalEntry)}
	s := NewService("default", j.follow, j.append, 1000, nil, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	defer running.Wait()
	defer stop()
	withdrawn := labelled(6, stream.Spam, time.Hour)
	withdrawn.Withdrawn = true
	for _, c := range []struct {
		what string
		do   func(s *Service)
		want string
	}{
		{"a label of a message that was not answered", func(s *Service) { s.Labelled(*labelled(1, stream.Ham, 0)) }, ""},
		{"a doubtful one", func(s *Service) { s.Labelled(*doubted(1, stream.Spam, time.Minute)) }, "1 spam doubted"},
		{"the same again", func(s *Service) { s.Labelled(*doubted(1, stream.Spam, time.Minute)) }, "1 spam doubted"},
		{"its line", func(s *Service) { s.take(doubted(1, stream.Spam, time.Minute)) }, ""},
		{"a label that is older", func(s *Service) { s.Labelled(*labelled(1, stream.Ham, 0)) }, ""},
		{"what settles it", func(s *Service) { s.Labelled(*labelled(1, stream.Spam, time.Hour)) }, "1 spam"},
		{"a label after it", func(s *Service) { s.Labelled(*labelled(1, stream.Ham, 2*time.Hour)) }, ""},
		{"the line of the doubt, late", func(s *Service) { s.take(doubted(1, stream.Spam, time.Minute)) }, ""},
		{"of an answered message", func(s *Service) { s.take(decided(2, .01, 0)); s.Labelled(*doubted(2, stream.Spam, time.Minute)) }, "2 spam doubted"},
		{"turned around", func(s *Service) { s.Labelled(*labelled(2, stream.Ham, time.Hour)) }, "2 ham"},
		{"a doubt of an earlier run", func(s *Service) { s.take(doubted(3, stream.Spam, 0)) }, ""},
		{"what settles that", func(s *Service) { s.Labelled(*labelled(3, stream.Ham, time.Hour)) }, "3 ham"},
		{"what settles a doubt that is not known yet", func(s *Service) { s.Labelled(*labelled(4, stream.Ham, time.Hour)) }, ""},
		{"the doubt", func(s *Service) { s.take(doubted(4, stream.Spam, 0)) }, "4 ham"},
		{"its line again", func(s *Service) { s.take(doubted(4, stream.Spam, 0)) }, ""},
		{"what another learner settled", func(s *Service) {
			s.take(doubted(5, stream.Spam, 0))
			s.take(labelled(5, stream.Ham, time.Hour))
			s.Labelled(*labelled(5, stream.Ham, 2*time.Hour))
		}, ""},
		{"a doubt", func(s *Service) { s.Labelled(*doubted(6, stream.Spam, time.Minute)) }, "6 spam doubted"},
		{"its withdrawal", func(s *Service) { s.Labelled(*withdrawn) }, "6 spam withdrawn"},
		{"no identity", func(s *Service) {
			s.Labelled(stream.JournalEntry{ID: "a1", Label: stream.Spam, Doubt: &stream.Doubt{}})
		}, ""},
	} {
		c.do(s)
		time.Sleep(time.Second)
		synctest.Wait()
		var wrote []string
		for _, e := range j.got {
			line := strings.TrimLeft(e.ID, "0") + " " + e.Label.String()
			if e.Doubt != nil {
				line += " doubted"
			}
			if e.Withdrawn {
				line += " withdrawn"
			}
			if wrote = append(wrote, line); e.Model != "default" || e.Time.IsZero() || strings.ContainsAny(e.Source+e.Tenant, "@") {
				t.Errorf("%s: the line says %+v", c.what, e)
			}
		}
		j.got = nil
		if got := strings.Join(wrote, ", "); got != c.want {
			t.Errorf("%s: the journal gets %q, want %q", c.what, got, c.want)
		}
	}
}

func TestDoubtsAreBounded(t *testing.T) {
	d := doubts{}
	for i := range 2 * mostDoubts {
		d.learnt(doubted(i, stream.Spam, 0))
	}
	if len(d) != mostDoubts {
		t.Errorf("%d doubts are remembered, want %d", len(d), mostDoubts)
	}
}
