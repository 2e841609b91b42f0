// Package journal writes lines of the journal of decisions without making anybody wait.
package journal

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/process/writebehind"
	"hamlet/cmd/internal/service/advice"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// Bounds of a Keeper.
const (
	maxWaiting = 8192                  // lines; at most some 8 MiB, usually 4
	maxLines   = 200                   // of one write
	gathering  = 50 * time.Millisecond // from a line to its write, so that a busy scorer writes few messages
)

var retry = writebehind.Retry{
	First: writebehind.FirstPause, Lasting: nats.ErrRefused, Final: []error{stream.ErrTooLarge},
}

// A Keeper writes lines in the order in which they come. While it cannot write,
// maxWaiting of them wait and the further ones are lost.
type Keeper struct {
	Counters
	queue   chan *stream.JournalEntry // of pointers: the places alone would take 1.7 MB
	write   Write
	health  *writebehind.Health
	prefix  string // of the ids of write
	batches int    // only Run's goroutine uses it
}

// A Write writes lines, once and for a bounded time. The same id may come again after an
// error: then it is the same lines. [*nats.Journal.Append] is one.
type Write func(ctx context.Context, id string, lines []stream.JournalEntry) error

// Counters are what a Keeper shows.
type Counters struct {
	Written, Lost prometheus.Counter // lines
	Failing       prometheus.Gauge   // 1 while lines cannot be written
}

// NewKeeper returns a Keeper. Run writes what Offer takes.
func NewKeeper(write Write, counters Counters, log *slog.Logger) *Keeper {
	return &Keeper{
		Counters: counters, queue: make(chan *stream.JournalEntry, maxWaiting), write: write, prefix: rand.Text(),
		health: &writebehind.Health{
			Gauge: counters.Failing, Log: log, Attrs: []any{"waiting_at_most", maxWaiting},
			Fails: "lines of the journal are not written for now; nothing else depends on it",
			Works: "lines of the journal are written again",
		},
	}
}

// Offer never waits.
func (k *Keeper) Offer(e stream.JournalEntry) {
	select {
	case k.queue <- &e:
	default:
		k.Lost.Inc()
	}
}

// Run writes lines until ctx ends, and then what waits, for at most writebehind.Flush. Nothing may
// be offered after ctx has ended.
func (k *Keeper) Run(ctx context.Context) {
	work, stop := writebehind.Linger(ctx, writebehind.Flush)
	defer stop()
	for batch := k.gather(ctx); len(batch) > 0; batch = k.gather(ctx) {
		k.keep(ctx, work, batch)
	}
}

// gather waits for a line, and a moment for more. It returns nothing once ctx has ended
// and none is left.
func (k *Keeper) gather(ctx context.Context) (batch []stream.JournalEntry) {
	e, ok := writebehind.Next(ctx, k.queue)
	soon, cancel := context.WithTimeout(ctx, gathering)
	defer cancel()
	for ; ok; e, ok = writebehind.Next(soon, k.queue) {
		batch = append(batch, *e)
		if len(batch) == maxLines {
			break
		}
	}
	return batch
}

// keep writes a batch, and tries again until stopping ends. Each attempt ends with work.
func (k *Keeper) keep(stopping, work context.Context, batch []stream.JournalEntry) {
	k.batches++
	id := fmt.Sprintf("%s.%d", k.prefix, k.batches)
	err := retry.Do(stopping, func() error {
		err := k.write(work, id, batch)
		k.health.Note(advice.Add(err))
		return err
	})
	if err != nil {
		k.Lost.Add(float64(len(batch)))
		return
	}
	k.Written.Add(float64(len(batch)))
}
