// Package background computes what is slow, rebuilds of ensembles and SNRs, while the
// stream goes on. A model starts the work at one event count and waits for it at a later
// one, so that its bytes do not depend on the speed of this package. The wait is
// measured.
//
//	runner := background.New(registry)
//	defer runner.Close()
//	model.SetRunner(runner)
package background

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// A Runner is a model.Runner that works in goroutines of its own, at most GOMAXPROCS at a
// time. Any number of models may share it. Its queue is bounded by them: each has a few
// pieces of work at a time. Whoever waits for work that has not begun does it, so that no
// wait is longer than one piece of work.
type Runner struct {
	slots   chan struct{} // semaphore: one for each worker
	closed  chan struct{}
	once    sync.Once
	workers sync.WaitGroup

	waits, works prometheus.Histogram
}

// New returns a runner that registers its metrics with r, if r is not nil. The caller
// closes it.
func New(r prometheus.Registerer) *Runner {
	factory := promauto.With(r)
	seconds := func(name, help string) prometheus.Histogram {
		return factory.NewHistogram(prometheus.HistogramOpts{Namespace: "hamlet", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9)}) // 0.1 ms to 6.6 s
	}
	return &Runner{
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)), closed: make(chan struct{}),
		waits: seconds("rebuild_wait_seconds", "How long the stream stood still for the result of a rebuild or an SNR."),
		works: seconds("background_seconds", "How long a rebuild or an SNR was computed."),
	}
}

// A task is a piece of work. Whoever claims it does it.
type task struct {
	claimed atomic.Bool
	done    chan struct{}
}

// Go queues work and returns a function that waits for it. After Close the waiter does
// the work.
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
		case <-b.closed: // also if there is a slot
			return
		default:
		}
		select {
		case b.slots <- struct{}{}:
			do()
			<-b.slots
		case <-t.done: // by the waiter
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

// Close lets no queued work begin and returns when all that had begun has ended.
func (b *Runner) Close() {
	b.once.Do(func() { close(b.closed) })
	b.workers.Wait()
}
