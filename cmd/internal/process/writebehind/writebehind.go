// Package writebehind writes to a store in the background, so that nobody waits for the store. The
// caller has a bounded queue, and one of its Writes for each item:
//
//	writebehind.Run(ctx, writebehind.Flush, 4, queue, func(work context.Context, item *Item) {
//		err := retry.Do(ctx, func() error {
//			err := store.Put(work, item)
//			health.Note(err)
//			return err
//		})
//		…
//	})
//
// When ctx ends, what is in the queue is written, and nothing is tried again. Nothing may be queued
// after that.
package writebehind

import (
	"context"
	"errors"
	"hamlet/cmd/internal/process/clock"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How long things take.
const (
	Flush      = 2 * time.Second        // after the end of Run's ctx
	FirstPause = 250 * time.Millisecond // after a failure; it doubles
	LastPause  = 10 * time.Second
	longPause  = 5 * time.Minute // the last where somebody must change the server first
)

// Linger returns a context that ends some time after ctx. The caller calls stop.
func Linger(ctx context.Context, flush time.Duration) (work context.Context, stop context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		end := time.AfterFunc(flush, cancel)
		context.AfterFunc(work, func() { end.Stop() })
	})
	return work, func() { unhook(); cancel() }
}

// Next waits for the next item of a queue. It reports false once ctx has ended and none is left.
func Next[T any](ctx context.Context, queue <-chan T) (item T, ok bool) {
	select {
	case item = <-queue:
		return item, true
	case <-ctx.Done():
	}
	select {
	case item = <-queue:
		return item, true
	default:
		return item, false
	}
}

// Run calls write for the items of a queue, in some goroutines, until ctx has ended and none is
// left. Their work ends a flush after ctx.
func Run[T any](
	ctx context.Context, flush time.Duration, writers int, queue <-chan T, write func(work context.Context, item *T),
) {
	work, stop := Linger(ctx, flush)
	defer stop()
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for item, ok := Next(ctx, queue); ok; item, ok = Next(ctx, queue) {
				write(work, &item)
			}
		})
	}
	all.Wait()
}

// A Retry says how often something is tried.
type Retry struct {
	First   time.Duration // pause after a failure; it doubles
	Lasting error         // somebody must change the server first, and pauses grow to longPause
	Final   []error       // to try again is of no use
}

// Do tries until that succeeds, stopping has ended, or an error is final. It returns the last error.
func (r *Retry) Do(stopping context.Context, try func() error) error {
	for pause := r.First; ; pause *= 2 {
		err := try()
		final := func(target error) bool { return errors.Is(err, target) }
		if err == nil || stopping.Err() != nil || slices.ContainsFunc(r.Final, final) {
			return err
		}
		pause = r.Sleep(stopping, pause, err)
	}
}

// Sleep waits for a pause after err, until ctx ends at most, and returns how long it meant to.
func (r *Retry) Sleep(ctx context.Context, pause time.Duration, err error) time.Duration {
	most := LastPause
	if errors.Is(err, r.Lasting) {
		most = longPause
	}
	pause = min(pause, most)
	clock.Sleep(ctx, pause)
	return pause
}

// A Health tells once that something fails, and once that it works again.
type Health struct {
	Gauge        prometheus.Gauge // 1 while it fails
	Log          *slog.Logger
	Fails, Works string // messages
	Attrs        []any  // of Fails, before the error

	mu      sync.Mutex
	failing bool // the last note was of a failure; guarded by mu
}

// Note takes what came of an attempt.
func (h *Health) Note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if (err != nil) == h.failing {
		return
	}
	h.failing = err != nil
	if h.failing {
		h.Gauge.Set(1)
		h.Log.Warn(h.Fails, append(slices.Clone(h.Attrs), "error", err)...)
		return
	}
	h.Gauge.Set(0)
	h.Log.Info(h.Works)
}
