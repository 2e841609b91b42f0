package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/process/writebehind"
	"hamlet/stream"
)

// batchBytes ends a batch before MaxBatch does, if its mails are large. Two batches are in memory
// at a time: one is handled, and one waits.
const batchBytes = 4 << 20

// A reading feeds one handler:
//
//	open ──> locate ──> read <──> verify the log
//	 │          │         ├─ handler failed, or another log ──> dropped
//	 │ failed   └─────────┴─ ctx ended, or the log failed ──> close
//	 └──> nothing to close
//
// Records that were read and not handed over when ctx ends are read again. One goroutine uses a
// reading. Another one reads ahead, see fetcher.
type reading struct {
	*Follower
	pause   backoff.BackOff // between openings and failed reads; reset by each handled batch
	failing outage          // of reads

	handler Handler
	next    int64 // no record below it will be handed over; set by locate, advanced by read

	absorbedLog
}

// run opens a handler, feeds it until ctx ends, and closes it. again means that a new handler is
// to be opened.
func (r *reading) run(ctx context.Context, open func(context.Context) (Handler, error)) (again bool, err error) {
	if r.handler, err = open(ctx); err != nil {
		if ctx.Err() != nil {
			return false, nil // nothing was begun
		}
		return errors.Is(err, ErrReload), fmt.Errorf("open: %w", err)
	}
	working, cancel := writebehind.Linger(ctx, r.cfg.Drain)
	defer cancel()
	err = r.locate(ctx)
	if err == nil {
		var dropped bool
		if dropped, err = r.read(ctx, working); dropped {
			return errors.Is(err, ErrReload) || anotherLog(err), err
		}
	}
	if ctx.Err() != nil {
		err = nil // what is left is read again
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Drain)
	defer cancel()
	asking, cancel := context.WithTimeout(closing, confirmTimeout) // Close needs the rest
	defer cancel()
	if e := r.confirm(asking); errors.Is(e, ErrReplaced) {
		return false, errors.Join(err, e) // what the handler would save is partly of another log
	}
	if e := r.handler.Close(closing); e != nil {
		return false, errors.Join(err, fmt.Errorf("close at offset %d: %w", r.next, e))
	}
	return false, err
}

// anotherLog reports whether err says that the log is not the one that was read.
func anotherLog(err error) bool { return errors.Is(err, ErrReplaced) || errors.Is(err, ErrBehind) }

// read hands records to the handler until ctx ends. dropped means that the handler must not be
// closed: it failed, or the log is another one.
func (r *reading) read(ctx, working context.Context) (dropped bool, err error) {
	fetching, stop := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer stop()
	results := make(chan fetched)
	fetch := func(pause time.Duration) {
		f := fetcher{Follower: r.Follower, from: r.next, last: -1, compares: r.seen.ID == ""}
		if r.known {
			f.last = r.last.Offset
		}
		reader.Go(func() { f.run(fetching, pause, results) })
	}
	fetch(0)
	quiet := time.NewTimer(r.cfg.PollInterval)
	defer quiet.Stop()
	for {
		var got fetched
		select {
		case <-ctx.Done():
			return false, nil
		case got = <-results:
		case <-quiet.C:
			if dropped, err := r.idle(ctx, working); err != nil {
				return dropped, err
			}
			quiet.Reset(r.cfg.PollInterval)
			continue
		}
		switch {
		case ctx.Err() != nil:
			return false, nil
		case got.err != nil:
			pause, err := r.failed(ctx, got.err)
			if err != nil {
				return anotherLog(err), err
			}
			fetch(pause)
		case len(got.records) == 0:
			r.failing.over(&r.cfg)
			if r.confirming.TryLock() { // or the next batch tells the end
				r.told(got.end)
				r.confirming.Unlock()
			}
		default:
			r.failing.over(&r.cfg)
			if dropped, err := r.hand(ctx, working, &got); err != nil {
				return dropped, err
			}
			quiet.Reset(r.cfg.PollInterval)
		}
	}
}

// hand gives a batch to the handler.
func (r *reading) hand(ctx, working context.Context, got *fetched) (dropped bool, err error) {
	batch := got.records
	if err := r.admit(ctx, got); err != nil {
		return anotherLog(err), err
	}
	if err := r.handler.Handle(working, batch, got.end); err != nil {
		return true, fmt.Errorf("offsets %d to %d: %w", batch[0].Offset, batch[len(batch)-1].Offset, err)
	}
	r.next = batch[len(batch)-1].Offset + 1
	r.pause.Reset()
	return false, nil
}

// idle tells the handler that no record came.
func (r *reading) idle(ctx, working context.Context) (dropped bool, err error) {
	if err := r.admit(ctx, &fetched{}); err != nil {
		return anotherLog(err), err
	}
	if err := r.handler.Idle(working); err != nil {
		return true, fmt.Errorf("idle at offset %d: %w", r.next, err)
	}
	return false, nil
}

// admit checks the log and the offsets of a batch, which may be empty, before it is handed over.
func (r *reading) admit(ctx context.Context, got *fetched) error {
	r.confirming.Lock()
	defer r.confirming.Unlock()
	if len(got.records) > 0 {
		r.told(got.end)
	}
	if err := r.check(ctx, got.records); err != nil || len(got.records) == 0 {
		return err
	}
	if got.before != nil && r.known && got.before.Offset == r.last.Offset {
		if err := r.isLast(got.before); err != nil {
			return err
		}
	}
	next := r.next
	for i := range got.records {
		offset := got.records[i].Offset
		if offset < next {
			return fmt.Errorf("offset %d after %d: the log went back", offset, next-1)
		}
		next = offset + 1
	}
	r.taken(got.records)
	return nil
}

// failed takes the error of a read. It returns the pause before the next one, from r.next on, or
// why there is to be none.
func (r *reading) failed(ctx context.Context, err error) (pause time.Duration, final error) {
	r.doubts.Add(1)
	switch {
	case outside(err):
		r.confirming.Lock()
		defer r.confirming.Unlock()
		if err := r.verify(ctx); err != nil { // first, because another log may look like a gap
			return 0, err
		}
		if err := r.acceptGap(); err != nil {
			return 0, err
		}
	case errors.Is(err, stream.ErrAway):
		if err := r.failing.failed(&r.cfg, fmt.Sprintf("read from offset %d", r.next), err); err != nil {
			return 0, err
		}
	default:
		return 0, err
	}
	return r.pause.NextBackOff(), nil
}

// fetched is what one read returned.
type fetched struct {
	records []stream.Record
	before  *stream.Record // the log's record where the last one of the batch before was; nil: not asked, or not there
	end     int64
	err     error
}

// A fetcher reads ahead.
type fetcher struct {
	*Follower
	from     int64
	last     int64 // offset of the record that was read last; -1: none was
	compares bool  // the log has no ID, so each batch comes with the record before it
}

// run gives what it has read to results, and then reads on. It ends with an error of the log, after
// it was given, and when ctx ends. While the handler is busy it asks the log whether it is there.
func (f *fetcher) run(ctx context.Context, pause time.Duration, results chan<- fetched) {
	if pause > 0 {
		clock.Sleep(ctx, pause)
	}
	for ctx.Err() == nil {
		got := f.read(ctx)
		if got.err == nil {
			f.answers()
		}
		for given := false; !given; {
			busy := time.NewTimer(f.cfg.PollInterval)
			select {
			case results <- got:
				given = true
			case <-ctx.Done():
				given = true
			case <-busy.C:
				_, _ = f.ask(ctx)
			}
			busy.Stop()
		}
		if got.err != nil {
			return
		}
		if n := len(got.records); n > 0 {
			f.last = got.records[n-1].Offset
			f.from = f.last + 1
		}
	}
}

// read reads a batch, and then the record before it: see absorbedLog.
func (f *fetcher) read(ctx context.Context) (got fetched) {
	limit := stream.Limit{Records: f.cfg.MaxBatch, Bytes: batchBytes}
	got.records, got.end, got.err = f.cfg.Log.Read(ctx, f.from, limit, f.cfg.PollInterval)
	if got.err != nil || len(got.records) == 0 || !f.compares || f.last < 0 {
		return got
	}
	before, _, err := f.cfg.Log.Read(ctx, f.last, stream.Limit{Records: 1, Bytes: 1}, 0)
	switch {
	case errors.Is(err, stream.ErrGone): // retention took it
	case err != nil:
		return fetched{err: err}
	case len(before) > 0 && before[0].Offset == f.last:
		got.before = &before[0]
	}
	return got
}
