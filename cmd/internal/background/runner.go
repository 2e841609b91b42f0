// Package background computes beside the stream what is slow: ensembles that are
// rebuilt and SNRs. A model asks for a result at one event count and waits for it
// at a later one, so that its bytes do not depend on how fast this is; only the
// wait does, and that is measured.
package background

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Runner is a model.Runner that works in goroutines of its own, at most one a
// processor at a time. Any number of models may share it.
//
// Its queue is as long as what models have asked for and not fetched: a few
// pieces of work a partition. Work that is waited for before its turn came is
// done by who waits, so that no wait is longer than one piece of work.
type Runner struct {
	slots   chan struct{} // taken while work is done
	closed  chan struct{}
	once    sync.Once
	workers sync.WaitGroup

	waits, works prometheus.Histogram
}

// New returns a runner that registers its metrics with r, or with nobody if r is
// nil. Who makes it closes it.
func New(r prometheus.Registerer) *Runner {
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "hamlet", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9)}) // 0.1 ms to 6.6 s
	}
	b := &Runner{
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)), closed: make(chan struct{}),
		waits: seconds("rebuild_wait_seconds", "How long the stream stood still for the result of a rebuild or an SNR."),
		works: seconds("background_seconds", "How long a rebuild or an SNR was computed."),
	}
	if r != nil {
		r.MustRegister(b.waits, b.works)
	}
	return b
}

// A task is a piece of work. Whoever claims it does it.
type task struct {
	claimed atomic.Bool
	done    chan struct{}
}

// Go takes work up and returns a function that waits for it. After Close the work
// is done by who waits.
func (b *Runner) Go(work func()) (wait func()) {
	t := &task{done: make(chan struct{})}
	do := func() {
		if t.claimed.CompareAndSwap(false, true) {
			start := time.Now()
			work()
			b.works.Observe(time.Since(start).Seconds())
			close(t.done)
		}
	}
	b.workers.Go(func() {
		select {
		case <-b.closed: // even if there is a slot, too
			return
		default:
		}
		select {
		case b.slots <- struct{}{}:
			do()
			<-b.slots
		case <-t.done: // by who waited
		case <-b.closed:
		}
	})
	return func() {
		start := time.Now()
		do()
		<-t.done
		b.waits.Observe(time.Since(start).Seconds())
	}
}

// Close lets no more work begin but what is waited for, and returns when what had
// begun has ended. No model may ask for work any more.
func (b *Runner) Close() {
	b.once.Do(func() { close(b.closed) })
	b.workers.Wait()
}
