package journal

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/stream"
)

func counters() Counters {
	counter := func() prometheus.Counter { return prometheus.NewCounter(prometheus.CounterOpts{Name: "lines"}) }
	return Counters{Written: counter(), Lost: counter(), Failing: prometheus.NewGauge(prometheus.GaugeOpts{Name: "failing"})}
}

// A fakeJournal does not answer until stuck is closed.
type fakeJournal struct {
	stuck chan struct{}
	mu    sync.Mutex
	got   []stream.JournalEntry
	most  int
}

func (f *fakeJournal) Append(ctx context.Context, _ string, entries []stream.JournalEntry) error {
	select {
	case <-f.stuck:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got, f.most = append(f.got, entries...), max(f.most, len(entries))
	return nil
}

// A flood costs the lines that do not fit, which are counted, and no time.
func TestKeeperIsBoundedInAFlood(t *testing.T) {
	to, c := &fakeJournal{stuck: make(chan struct{})}, counters()
	k := NewKeeper(to.Append, c, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); k.Run(ctx) }()
	const flood = 3 * maxWaiting
	for i := range flood {
		k.Offer(stream.JournalEntry{Request: fmt.Sprint(i)})
	}
	lost := testutil.ToFloat64(c.Lost)
	if lost < flood-maxWaiting-maxLines || lost > flood-maxWaiting {
		t.Errorf("%v of %d are lost, %d fit", lost, flood, maxWaiting)
	}
	close(to.stuck)
	cancel() // what waits is written at the end
	<-ended
	if got := float64(len(to.got)); got+lost != flood || got != testutil.ToFloat64(c.Written) || to.most > maxLines {
		t.Errorf("%v written and %v lost of %d; at most %d at once", got, lost, flood, to.most)
	}
	for i, e := range to.got[:maxWaiting] {
		if e.Request != fmt.Sprint(i) {
			t.Fatalf("line %d is of request %s", i, e.Request)
		}
	}
}

// A journal that never answers delays the end by flushTime at most.
func TestStuckJournalDelaysTheEndLittle(t *testing.T) {
	to, c := &fakeJournal{stuck: make(chan struct{})}, counters()
	k := NewKeeper(to.Append, c, slog.New(slog.DiscardHandler))
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	k.keep(stopped, stopped, make([]stream.JournalEntry, 7))
	if lost := testutil.ToFloat64(c.Lost); lost != 7 {
		t.Errorf("%v lines are lost, want 7", lost)
	}
	// Lines that the server will never take are not tried again.
	c = counters()
	k = NewKeeper(func(context.Context, string, []stream.JournalEntry) error { return stream.ErrTooLarge }, c, slog.New(slog.DiscardHandler))
	k.keep(t.Context(), t.Context(), make([]stream.JournalEntry, 3))
	if lost := testutil.ToFloat64(c.Lost); lost != 3 {
		t.Errorf("%v lines are lost, want 3", lost)
	}
}
