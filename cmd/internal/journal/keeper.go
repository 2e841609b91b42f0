// Package journal writes lines of the journal of decisions without making anybody wait.
package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// Bounds of a Keeper.
const (
	maxWaiting = 8192                   // lines; at most some 8 MiB, usually 4
	maxLines   = 200                    // of one write
	gathering  = 50 * time.Millisecond  // from a line to its write, so that a busy scorer writes few messages
	flushTime  = 2 * time.Second        // after the end of Run's ctx
	firstPause = 250 * time.Millisecond // after a failure; it doubles
	lastPause  = 10 * time.Second
	longPause  = 5 * time.Minute // the last where somebody must change the server first
)

// A Keeper writes lines in the order in which they come. While it cannot write,
// maxWaiting of them wait and the further ones are lost.
type Keeper struct {
	Counters
	queue   chan stream.JournalEntry
	write   Write
	log     *slog.Logger
	prefix  string // of the ids of write
	batches int    // only Run's goroutine uses it
	broken  bool   // the last write failed, and the log has said so; only Run's goroutine uses it
}

// A Write writes lines, once and for a bounded time. The same id may come again after an
// error: then it is the same lines. [*nats.Journal.Append] is one.
type Write func(ctx context.Context, id string, lines []stream.JournalEntry) error

// Counters are what a Keeper shows.
type Counters struct {
	Kept, Lost prometheus.Counter // lines
	Failing    prometheus.Gauge   // 1 while lines cannot be written
}

// NewKeeper returns a Keeper. Run writes what Offer takes.
func NewKeeper(write Write, counters Counters, log *slog.Logger) *Keeper {
	return &Keeper{Counters: counters, queue: make(chan stream.JournalEntry, maxWaiting), write: write, log: log, prefix: rand.Text()}
}

// Offer never waits.
func (k *Keeper) Offer(e stream.JournalEntry) {
	select {
	case k.queue <- e:
	default:
		k.Lost.Inc()
	}
}

// Run writes lines until ctx ends, and then what waits, for at most flushTime. Nothing may be
// offered after ctx has ended.
func (k *Keeper) Run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		end := time.AfterFunc(flushTime, cancel)
		context.AfterFunc(work, func() { end.Stop() })
	})()
	for {
		batch := k.gather(ctx)
		if len(batch) == 0 {
			return
		}
		k.keep(ctx, work, batch)
	}
}

// gather waits for a line, and a moment for more. It returns nothing once ctx has ended
// and none is left.
func (k *Keeper) gather(ctx context.Context) (batch []stream.JournalEntry) {
	select {
	case e := <-k.queue:
		batch = append(batch, e)
	case <-ctx.Done():
	}
	full := time.NewTimer(gathering)
	defer full.Stop()
	for len(batch) < maxLines {
		select {
		case e := <-k.queue:
			batch = append(batch, e)
			continue
		default:
		}
		select {
		case e := <-k.queue:
			batch = append(batch, e)
		case <-full.C:
			return batch
		case <-ctx.Done():
			select {
			case e := <-k.queue:
				batch = append(batch, e)
			default:
				return batch
			}
		}
	}
	return batch
}

// keep writes a batch, and tries again until stopping ends. Each attempt ends with work.
func (k *Keeper) keep(stopping, work context.Context, batch []stream.JournalEntry) {
	k.batches++
	id := fmt.Sprintf("%s.%d", k.prefix, k.batches)
	for pause := firstPause; ; pause *= 2 {
		err := k.write(work, id, batch)
		k.note(err)
		switch {
		case err == nil:
			k.Kept.Add(float64(len(batch)))
			return
		case stopping.Err() != nil, errors.Is(err, nats.ErrJournalTooLarge):
			k.Lost.Add(float64(len(batch)))
			return
		case errors.Is(err, nats.ErrNoJournal):
			pause = min(pause, longPause)
		default:
			pause = min(pause, lastPause)
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-stopping.Done():
			wait.Stop()
		}
	}
}

// note says once that writing fails, and once that it works again.
func (k *Keeper) note(err error) {
	if (err != nil) == k.broken {
		return
	}
	k.broken = err != nil
	if k.broken {
		k.Failing.Set(1)
		k.log.Warn("lines of the journal are not written for now; nothing else depends on it", "waiting_at_most", maxWaiting, "error", err)
		return
	}
	k.Failing.Set(0)
	k.log.Info("lines of the journal are written again")
}
