package learner

import (
	"runtime"
	"sync"
	"sync/atomic"

	"hamlet/algos/model"
)

// A turn is turnSize records that are prepared by one goroutine. maxTurns bounds what is
// prepared ahead: a Reading of a mail takes 60 kB, at most 200.
const turnSize, maxTurns = 4, 4

// An ahead prepares records beside the goroutine that applies them. It belongs to one
// model, and one goroutine uses it.
type ahead struct {
	model  *model.Model // that reader reads for
	reader *model.Extractor
	free   chan *[turnSize]model.Extract
	ready  chan *[turnSize]model.Extract // in the order of the turns; the applier takes them
}

// each calls prepare, and after it apply, for records 0 to n−1. apply runs in the caller's
// goroutine, in order. prepare may run in another one, a few records ahead. It returns the
// body that the model will read, or nil.
//
// The caller prepares a turn itself that the other goroutine has not begun. So on one
// processor, or where the others are busy, little is lost.
func (a *ahead) each(m *model.Model, n int, prepare func(i int) *model.Body, apply func(i int)) {
	var begun atomic.Int64 // turns
	var other sync.WaitGroup
	if n > turnSize && runtime.GOMAXPROCS(0) > 1 {
		a.readFor(m)
		other.Go(func() { a.prepare(n, &begun, prepare) })
	}
	for from := 0; from < n; from += turnSize {
		to := min(from+turnSize, n)
		turn := int64(from / turnSize)
		if begun.CompareAndSwap(turn, turn+1) {
			for i := from; i < to; i++ {
				prepare(i)
				apply(i)
			}
			continue
		}
		readings := <-a.ready
		for i := from; i < to; i++ {
			apply(i)
		}
		a.free <- readings
	}
	other.Wait()
}

// readFor makes readings for m, with new memory if it made them for another model.
func (a *ahead) readFor(m *model.Model) {
	if a.model == m {
		return
	}
	a.model, a.reader = m, m.NewExtractor()
	a.free, a.ready = make(chan *[turnSize]model.Extract, maxTurns), make(chan *[turnSize]model.Extract, maxTurns)
	for range maxTurns {
		a.free <- new([turnSize]model.Extract)
	}
}

// prepare prepares turns until all have begun.
func (a *ahead) prepare(n int, begun *atomic.Int64, prepare func(i int) *model.Body) {
	for {
		readings := <-a.free
		from := int(begun.Add(1)-1) * turnSize
		if from >= n {
			a.free <- readings
			return
		}
		for i := from; i < min(from+turnSize, n); i++ {
			if body := prepare(i); body != nil {
				a.reader.Read(&readings[i-from], body)
			}
		}
		a.ready <- readings
	}
}
