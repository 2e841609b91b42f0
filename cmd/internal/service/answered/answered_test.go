package answered

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/stream"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func id(n int) string { return fmt.Sprintf("%032x", n) }

func decided(n int, p float64, after time.Duration) *stream.JournalEntry {
	verdict := stream.DecideHam
	if p > 0.9 {
		verdict = stream.DecideSpam
	} else if p > 0.5 {
		verdict = stream.DecideUnsure
	}
	return &stream.JournalEntry{ID: id(n), Verdict: verdict, P: p, Time: noon.Add(after), Door: "milter", Tenant: "example.org"}
}

func labelled(n int, label stream.Label, after time.Duration) *stream.JournalEntry {
	return &stream.JournalEntry{ID: id(n), Label: label, Source: "users", Time: noon.Add(after)}
}

func TestLabelsMeetAnswers(t *testing.T) {
	m := NewMatcher(100)
	for _, c := range []struct {
		what string
		line *stream.JournalEntry
		want string // delay, label and the label before of the match
	}{
		{"an answer", decided(1, .99, 0), ""},
		{"a later answer about the same mail", decided(1, .2, time.Minute), ""},
		{"its label", labelled(1, stream.Ham, time.Hour), "1h0m0s ham was "},
		{"the same label again", labelled(1, stream.Ham, 2*time.Hour), ""},
		{"another label", labelled(1, stream.Spam, 3*time.Hour), "3h0m0s spam was ham"},
		{"a label before its answer is known", labelled(2, stream.Spam, time.Second), ""},
		{"the answer, written late", decided(2, .3, 0), "1s spam was "},
		{"a label of a message that is scored later", labelled(3, stream.Spam, 0), ""},
		{"its answer", decided(3, .9, time.Hour), ""},
		{"a label that is older than the answer", labelled(3, stream.Ham, time.Minute), ""},
		{"clocks that differ by a second", labelled(4, stream.Spam, -time.Second), ""},
		{"the answer", decided(4, .9, 0), "0s spam was "},
		{"a text, which has no identity", &stream.JournalEntry{ID: "a1", Verdict: stream.DecideSpam, Time: noon}, ""},
		{"no identity", &stream.JournalEntry{ID: strings.Repeat("x", 32), Label: stream.Spam, Time: noon}, ""},
	} {
		got := ""
		if match, ok := m.Add(c.line); ok {
			got = fmt.Sprintf("%v %s was %s", match.Delay, match.label(), match.Before)
			if match.Door != "milter" || match.Tenant != "example.org" || match.Source != "users" {
				t.Errorf("%s: %+v", c.what, match)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestMatcherIsBounded(t *testing.T) {
	m := NewMatcher(10)
	for i := range 1000 {
		m.Add(decided(i, .5, 0))
	}
	if len(m.at) != 10 || len(m.ring) != 10 {
		t.Errorf("%d messages are remembered, %d places", len(m.at), len(m.ring))
	}
	if _, ok := m.Add(labelled(989, stream.Spam, 0)); ok {
		t.Error("a message was not forgotten")
	}
	if _, ok := m.Add(labelled(999, stream.Spam, 0)); !ok {
		t.Error("the newest message was forgotten")
	}
}

// Where p is calibrated, the figures say so: labels are drawn with the probability p.
func TestFiguresOfCalibratedAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const n = 20_000
	var lines []*stream.JournalEntry
	loss, wrong := 0.0, 0.0
	for i := range n {
		z := 3 * r.NormFloat64()
		p := 1 / (1 + math.Exp(-z))
		label := stream.Ham
		if r.Float64() < p {
			label = stream.Spam
		}
		loss -= p*math.Log(p) + (1-p)*math.Log(1-p)
		wrong += min(p, 1-p)
		lines = append(lines, decided(i, p, 0), labelled(i, label, time.Duration(1+i%100)*time.Second))
	}
	all := Of(slices.Values(lines), n, nil)
	if len(all) != 2 {
		t.Fatalf("%d groups, want all and one", len(all))
	}
	f := all[1]
	if f.Door != "milter" || f.Tenant != "example.org" || f.Answers != n || f.Labelled != n || all[0].Labelled != n || all[0].Answers != n {
		t.Errorf("counts %+v", f)
	}
	for name, c := range map[string]struct {
		Interval
		want, spread float64 // four standard errors
	}{
		"error":    {f.Error, wrong / n, 4 * math.Sqrt(.25/n)},
		"log loss": {f.LogLoss, loss / n, 4 * .6 / math.Sqrt(n)},
		"bias":     {f.Bias, 0, 4 * .5 / math.Sqrt(n)},
		"slope":    {f.Slope, 1, .08},
	} {
		if v := float64(c.Value); math.Abs(v-c.want) > c.spread || !(c.Low < c.Value && c.Value < c.High) || float64(c.High-c.Low) > c.spread {
			t.Errorf("%s is %+v, want %v", name, c.Interval, c.want)
		}
	}
	if f.DelayMedian != 50 || f.DelayNineTenths != 90 {
		t.Errorf("delays of 1 to 100 s: half within %v, nine tenths within %v", f.DelayMedian, f.DelayNineTenths)
	}
	if float64(f.ROCA.Value) < 1 || float64(f.ROCA.Value) > 30 {
		t.Errorf("1-ROCA%% is %+v", f.ROCA)
	}
}

func TestFiguresCountWhatWasCorrected(t *testing.T) {
	all := Of(slices.Values([]*stream.JournalEntry{
		decided(1, .99, 0), decided(2, .99, 0), decided(3, .1, 0), decided(4, .7, 0), decided(5, .1, 0),
		labelled(1, stream.Ham, time.Second),                                          // a spam that is none
		labelled(2, stream.Ham, time.Second), labelled(2, stream.Spam, 2*time.Second), // withdrawn
		labelled(3, stream.Spam, time.Second), labelled(4, stream.Ham, time.Second),
	}), 100, nil)
	if f := all[0]; f.Answers != 5 || f.Labelled != 4 || f.Corrected != 2 || f.Unsure != 1 || f.Error.Value != .75 {
		t.Errorf("figures %+v", f)
	}
	if empty := Of(slices.Values([]*stream.JournalEntry{}), 10, nil); len(empty) != 1 || empty[0].Error.Value.Defined() {
		t.Errorf("of nothing: %+v", empty)
	}
}

// A fakeJournal gives lines to a service and takes its labels.
type fakeJournal struct {
	lines chan *stream.JournalEntry
	mu    sync.Mutex
	got   []stream.JournalEntry
}

func (f *fakeJournal) follow(ctx context.Context, _ time.Time, take func(*stream.JournalEntry)) error {
	for {
		select {
		case e := <-f.lines:
			take(e)
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *fakeJournal) append(_ context.Context, _ string, lines []stream.JournalEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, lines...)
	return nil
}

func TestServiceCountsItsOwnLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &fakeJournal{lines: make(chan *stream.JournalEntry)}
		registry := prometheus.NewRegistry()
		s := NewService("default", j.follow, j.append, 1000, registry, slog.New(slog.DiscardHandler))
		work := make(chan struct{})
		ended := make(chan error)
		go func() {
			ended <- s.Beside(func(context.Context) error { <-work; return nil })(t.Context())
		}()
		for i := range 4 {
			j.lines <- decided(i, .99, 0)
		}
		j.lines <- labelled(0, stream.Ham, time.Minute) // another learner's, or of before a restart
		synctest.Wait()
		learn := func(n int, label stream.Label, source string, after time.Duration) {
			e := labelled(n, label, after)
			e.Source = source
			s.Labelled(*e)
		}
		learn(1, stream.Spam, "ann@example.org", time.Minute)
		learn(1, stream.Ham, "ann@example.org", time.Hour) // corrected
		learn(9, stream.Spam, "users", time.Second)        // its answer comes late
		learn(77, stream.Spam, "users", 0)                 // never answered
		j.lines <- decided(9, .1, 0)
		synctest.Wait()
		close(work)
		if err := <-ended; err != nil {
			t.Error(err)
		}

		var wrote []string
		for _, e := range j.got {
			if e.Model != "default" || e.Time.IsZero() || strings.Contains(e.Source, "@") {
				t.Errorf("a line says %+v", e)
			}
			wrote = append(wrote, strings.TrimLeft(e.ID, "0")+" "+e.Label.String())
		}
		if got := strings.Join(wrote, ", "); got != "1 spam, 1 ham, 9 spam" {
			t.Errorf("the journal has %s", got)
		}
		want := `
# HELP hamlet_answered_total Answered messages that got a label, by the verdict that was answered and the first label.
# TYPE hamlet_answered_total counter
hamlet_answered_total{door="milter",label="spam",tenant="example.org",verdict="ham"} 1
hamlet_answered_total{door="milter",label="spam",tenant="example.org",verdict="spam"} 1
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "hamlet_answered_total"); err != nil {
			t.Error(err)
		}
		// Of three answers .99, .99 and .1 two were wrong: another's label counts here.
		if f := s.figures(); len(f) != 1 || f[0].Labelled != 3 || math.Abs(float64(f[0].Error.Value)-2./3) > 1e-12 {
			t.Errorf("figures %+v", f)
		}
		if n, err := testutil.GatherAndCount(registry, "hamlet_answered_error_ratio", "hamlet_answered_roca_percent"); n != 6 || err != nil {
			t.Errorf("%d series, %v", n, err)
		}
	})
}

// A door and tenant whose labels contradict what was expected says so, for seven days of answers.
func TestServiceShowsContradictions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, registry := &fakeJournal{}, prometheus.NewRegistry()
		s := NewService("default", j.follow, j.append, 10_000, registry, slog.New(slog.DiscardHandler))
		begin := time.Now()
		for i := range 200 {
			e := decided(i, .001, 0)
			e.Time = begin
			if i%2 == 1 {
				e.Door = "spamd"
			}
			s.take(e)
			if i%2 == 1 && i < 60 {
				s.Labelled(stream.JournalEntry{Time: begin.Add(time.Second), ID: e.ID, Label: stream.Spam, Source: "users"})
			}
		}
		const help = `
# HELP hamlet_answered_contradicted 1 if labels show far more errors of the last seven days' answers than p said, in an incident or not, else 0.
# TYPE hamlet_answered_contradicted gauge
hamlet_answered_contradicted{door="milter",tenant="example.org"} 0
hamlet_answered_contradicted{door="spamd",tenant="example.org"} `
		for _, want := range []string{"1", "0"} {
			if err := testutil.GatherAndCompare(registry, strings.NewReader(help+want+"\n"), "hamlet_answered_contradicted"); err != nil {
				t.Error(err)
			}
			time.Sleep(contradictedFor + time.Second) // of the test's clock
		}
	})
}

// Any number of tenants makes a bounded number of series.
func TestServiceIsBounded(t *testing.T) {
	j := &fakeJournal{}
	s := NewService("default", j.follow, j.append, 1000, nil, slog.New(slog.DiscardHandler))
	for i := range 5000 {
		e := decided(i, .99, 0)
		e.Tenant = fmt.Sprint("tenant ", i%100)
		s.take(e)
		s.Labelled(*labelled(i, stream.Spam, 0))
	}
	if n := testutil.CollectAndCount(s.total); n != mostGroups+1 || len(s.groups) != mostGroups+1 {
		t.Errorf("%d series and %d groups of 100 tenants", n, len(s.groups))
	}
	if n := len(s.groups[group{others, others}].matches); n != recent {
		t.Errorf("%d answers of the others are kept, want %d", n, recent)
	}
}

// A match says which model answered, and when: the first answer counts.
func TestMatchesNameTheModel(t *testing.T) {
	m := NewMatcher(10)
	first, again := decided(1, .99, 0), decided(1, .2, time.Minute)
	first.Model, again.Model = "default/0123456789ab", "default/ba9876543210"
	m.Add(first)
	m.Add(again)
	got, ok := m.Add(labelled(1, stream.Ham, time.Hour))
	if !ok || got.Model != first.Model || !got.Decided().Equal(noon) {
		t.Errorf("%+v, decided at %v", got, got.Decided())
	}
}
