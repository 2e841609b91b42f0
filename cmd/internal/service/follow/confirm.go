package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/stream"
)

const (
	// confirmEvery is how often a log is compared with what was read without a cause.
	confirmEvery = 5 * time.Second

	// confirmTimeout bounds the wait for a log that does not answer. The reads that follow
	// may carry two of the largest batches over a slow connection: both together have
	// compareTimeout.
	confirmTimeout = time.Second
	compareTimeout = 20 * time.Second
)

// An absorbedLog is what a reading remembers of its log, to notice that another log has taken its
// place. A read names a topic, and Kafka goes on at the same offset if the topic was deleted and
// created again.
//
// A log that has no ID is compared record by record. What a log has lost, with its end or as a whole,
// does not come back. So if the record that was absorbed last is in the log after the next batch was
// read, the batch follows it, and all that was absorbed is of one log. Each batch is admitted so, and
// the last one is confirmed before the handler saves.
type absorbedLog struct {
	confirming sync.Mutex // held where the fields below change, but not in a call of the handler

	// last is the last record handed over. known: there is one. It was in the log when the handler
	// last asked, if its offset is confirmed.
	known     bool
	last      stream.Record
	confirmed int64

	// seen are the log's bounds: the highest beginning and end that it has told, and its ID.
	seen      stream.Bounds
	watermark int64 // the highest end that came with a read, at most seen.End: a read is older than what was asked since

	// doubts counts what may mean another log: errors, and an end that moved back. settled is
	// the count that verify has seen, at verifiedAt.
	doubts     atomic.Int64
	settled    int64
	verifiedAt time.Time
}

// taken notes that a batch is handed over.
func (l *absorbedLog) taken(batch []stream.Record) {
	if !l.known {
		l.known, l.confirmed = true, -1
	}
	l.last = batch[len(batch)-1]
}

// told notes the end that came with a read.
func (l *absorbedLog) told(end int64) {
	if end < l.watermark {
		l.doubts.Add(1)
	}
	l.watermark = max(l.watermark, end)
	l.seen.End = max(l.seen.End, end)
}

// check verifies the log if there is a doubt, or if confirmEvery has passed. It is called before
// batch is handed over, and when there is none. With records at hand and a doubt it waits for the
// log. Otherwise a log that does not answer is asked again later, so that the handler can go on
// saving.
func (r *reading) check(ctx context.Context, batch []stream.Record) error {
	doubts := r.doubts.Load()
	doubtful := doubts != r.settled
	if !doubtful && time.Since(r.verifiedAt) < confirmEvery {
		return nil
	}
	if !doubtful || len(batch) == 0 {
		if _, err := r.ask(ctx); errors.Is(err, stream.ErrAway) {
			return nil
		}
	}
	if err := r.verify(ctx); err != nil {
		return err
	}
	r.settled, r.verifiedAt = doubts, time.Now()
	return nil
}

// ask asks for the log's bounds once, for at most confirmTimeout.
func (f *Follower) ask(ctx context.Context) (stream.Bounds, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	b, err := f.cfg.Log.Bounds(ctx)
	if err == nil {
		f.answers()
	}
	return b, err
}

// verify returns nil if the log is still the one that was read. It asks again during the grace
// period, because a broker that recovers its log shows an early end for a moment:
//
//	the log has another ID                   -> ErrReplaced, at once
//	the log ends before the position         -> ErrBehind
//	its end or its beginning has moved back  -> ErrReplaced
//	an absorbed record is another one        -> ErrReplaced, at once
//	an absorbed record is not in it          -> go on: retention or compaction took it
func (r *reading) verify(ctx context.Context) error {
	var doubt grace
	for pause := newPause(ctx); ; wait(ctx, pause) {
		now, err := r.bounds(ctx)
		if err != nil {
			return err
		}
		var wrong error
		switch {
		case now.ID != r.seen.ID:
			return r.replacedByID()
		case now.End < r.next:
			wrong = r.behind(now.End)
		case now.End < r.seen.End:
			wrong = r.replaced("the log's end moved back from %d to %d", r.seen.End, now.End)
		case now.First < r.seen.First:
			wrong = r.replaced("the log's beginning moved back from %d to %d", r.seen.First, now.First)
		default:
			r.seen = now
			if err := r.compareAbsorbed(ctx); !outside(err) {
				return err
			}
		}
		switch {
		case !doubt.over():
		case wrong != nil:
			return wrong
		default:
			r.cfg.Logger.Warn("follow: the record before the position should be in the log and is not: going on",
				"first", now.First, "end", now.End, "next", r.next)
			return nil
		}
	}
}

// confirm is the function that [Handler.Position] gets. It does not wait for the reader, which asks
// a log that does not answer for as long as it reads.
func (r *reading) confirm(ctx context.Context) error {
	if !r.confirming.TryLock() {
		return fmt.Errorf("%w: its reader is asking the log", ErrUnconfirmed)
	}
	defer r.confirming.Unlock()
	if !r.known || r.last.Offset == r.confirmed {
		return nil // nothing was handed over since
	}
	now, err := r.ask(ctx)
	switch {
	case err != nil:
	case now.ID != r.seen.ID:
		err = r.replacedByID()
	default:
		comparing, cancel := context.WithTimeout(ctx, compareTimeout)
		defer cancel()
		err = r.compareAbsorbed(comparing)
	}
	if err == nil || errors.Is(err, ErrReplaced) {
		return err
	}
	r.doubts.Add(1) // verify decides, before the next batch
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}

// compareAbsorbed compares the record that was handed over last with the log. One that retention or
// compaction took is left out. A record outside the log for no such reason is an error:
// [stream.ErrGone] or [stream.ErrBeyond]. Of a log with an ID there is nothing to compare.
func (r *reading) compareAbsorbed(ctx context.Context) error {
	if !r.known || r.seen.ID != "" {
		return nil
	}
	found, ok, err := r.recordAt(ctx, r.last.Offset)
	switch {
	case outside(err):
		now, boundsErr := r.bounds(ctx)
		if boundsErr != nil {
			return boundsErr
		}
		if now.First <= r.last.Offset {
			return err
		}
	case err != nil:
		return err
	case ok:
		if err := r.isLast(&found); err != nil {
			return err
		}
	}
	r.confirmed = r.last.Offset
	return nil
}

// outside reports whether an offset was outside the log.
func outside(err error) bool {
	return errors.Is(err, stream.ErrGone) || errors.Is(err, stream.ErrBeyond)
}

// isLast returns ErrReplaced unless a record of the log is the one that was handed over last.
func (r *reading) isLast(found *stream.Record) error {
	if sameRecord(found, &r.last) {
		return nil
	}
	return r.replaced("the log has another record at offset %d", found.Offset)
}

func (r *reading) replacedByID() error { return r.replaced("the log has another ID") }

// sameRecord compares what a handler compares: key, value and headers. nil equals empty.
func sameRecord(a, b *stream.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b stream.Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}
