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
// A deletion is final. So if an absorbed record is in the log now, all records that were read
// after it and before now are of that log. That is why records are compared after a read and
// before the records are used, and why a record that was confirmed before is compared too: the
// last record may be of the other log already.
type absorbedLog struct {
	confirming sync.Mutex // held where the fields below change, but not in a call of the handler

	// All records handed over up to confirmed are of one log. last is the last record
	// handed over, at or after confirmed. known: there are such records.
	known           bool
	confirmed, last stream.Record

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
		l.known, l.confirmed = true, batch[0]
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
	for pause := newPause(); ; wait(ctx, pause) {
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
	if r.last.Offset == r.confirmed.Offset {
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

// compareAbsorbed compares two absorbed records with the log: the one confirmed last and the one
// handed over last. Those that retention or compaction took are left out. A record outside the log
// for no such reason is an error: [stream.ErrGone] or [stream.ErrBeyond]. Of a log with an ID
// there is nothing to compare.
func (r *reading) compareAbsorbed(ctx context.Context) error {
	if !r.known {
		return nil
	}
	for _, absorbed := range []*stream.Record{&r.confirmed, &r.last} {
		if r.seen.ID != "" || absorbed == &r.last && r.last.Offset == r.confirmed.Offset {
			continue
		}
		found, ok, err := r.recordAt(ctx, absorbed.Offset)
		switch {
		case outside(err):
			now, boundsErr := r.bounds(ctx)
			if boundsErr != nil {
				return boundsErr
			}
			if now.First <= absorbed.Offset {
				return err
			}
		case err != nil:
			return err
		case ok && !sameRecord(&found, absorbed):
			return r.replaced("the log has another record at offset %d", absorbed.Offset)
		}
	}
	r.confirmed = r.last
	return nil
}

// outside reports whether an offset was outside the log.
func outside(err error) bool {
	return errors.Is(err, stream.ErrGone) || errors.Is(err, stream.ErrBeyond)
}

func (r *reading) replacedByID() error { return r.replaced("the log has another ID") }

// sameRecord compares what a handler compares: key, value and headers. nil equals empty.
func sameRecord(a, b *stream.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b stream.Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}
