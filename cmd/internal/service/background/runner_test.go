package background

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/model"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var _ model.Runner = (*Runner)(nil)

// No more pieces of work are under way than there are processors, and each is
// done once and by the time that its wait returns.
func TestBounded(t *testing.T) {
	b := New(nil)
	defer b.Close()
	n := runtime.GOMAXPROCS(0)
	var under, most atomic.Int32
	release := make(chan struct{})
	began := make(chan struct{}, n)
	results := make([]int, 4*n)
	var waits []func()
	for i := range results {
		waits = append(waits, b.Go(func() {
			if now := under.Add(1); now > most.Load() {
				most.Store(now)
			}
			select {
			case began <- struct{}{}:
			default:
			}
			<-release
			results[i]++
			under.Add(-1)
		}))
	}
	for range n { // all slots are taken, and stay so
		<-began
	}
	if got := most.Load(); got > int32(n) {
		t.Errorf("%d pieces of work at once, want at most %d", got, n)
	}
	close(release)
	for i, wait := range waits {
		wait()
		if results[i] != 1 {
			t.Errorf("after its wait work %d was done %d times", i, results[i])
		}
	}
}

// Work whose turn has not come is done by who waits for it: every slot is held
// until after the wait.
func TestWaitingDoesTheWork(t *testing.T) {
	b := New(nil)
	release := make(chan struct{})
	n := runtime.GOMAXPROCS(0)
	began := make(chan struct{}, n)
	for range n {
		b.Go(func() { began <- struct{}{}; <-release })
	}
	for range n {
		<-began
	}
	done := false
	b.Go(func() { done = true })()
	if !done {
		t.Error("the wait returned before the work was done")
	}
	close(release)
	b.Close()
}

// Close waits for what had begun and begins nothing; a wait still gets its
// result.
func TestClose(t *testing.T) {
	b := New(nil)
	began, release := make(chan struct{}), make(chan struct{})
	ended := false
	b.Go(func() { close(began); <-release; ended = true })
	<-began
	closed := make(chan struct{})
	go func() { b.Close(); close(closed) }()
	<-b.closed
	done := false
	wait := b.Go(func() { done = true })
	close(release)
	<-closed
	if !ended {
		t.Error("Close returned before what had begun ended")
	}
	if done {
		t.Error("Close began new work")
	}
	if wait(); !done {
		t.Error("a wait after Close did not do the work")
	}
	b.Close()
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	b := New(registry)
	b.Go(func() {})()
	b.Go(func() {}) // never waited for
	b.Close()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, f := range families {
		counts[f.GetName()] = f.GetMetric()[0].GetHistogram().GetSampleCount()
	}
	if got := counts["hamlet_rebuild_wait_seconds"]; got != 1 {
		t.Errorf("%d waits were counted, want 1", got)
	}
	if got := counts["hamlet_background_seconds"]; got < 1 || got > 2 {
		t.Errorf("%d pieces of work were counted, want 1, or 2 if the second began before Close", got)
	}
}
