package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

const (
	// confirmEvery is how often a partition is compared with its log without a cause.
	confirmEvery = 5 * time.Second

	// confirmTimeout bounds the wait for a broker that does not answer. The fetches that
	// follow may carry two of the largest batches over a slow connection: each has
	// requestTimeout.
	confirmTimeout = time.Second
)

// An absorbedLog is what a partitionReader remembers of its log, to notice that another
// log has taken its place. A fetch names a topic, and the broker goes on at the same
// offset if the topic was deleted and created again.
//
// A deletion is final. So if an absorbed record is in the log now, all records that were
// fetched after it and before now are of that log. That is why records are compared
// after a fetch and before the records are used, and why a record that was confirmed
// before is compared too: the last record may be of the other log already.
type absorbedLog struct {
	confirming sync.Mutex // held where the fields below change, but not in a call of the handler

	// All records handed over up to confirmed are of one log. last is the last record
	// handed over, at or after confirmed. known: there are such records.
	known           bool
	confirmed, last Record

	first     int64 // the highest beginning of the log that the broker has listed
	end       int64 // the highest end of the log that the broker has told
	watermark int64 // the highest end that came with a fetched record, at most end

	// doubts counts what may mean another log: each connection and each error of the
	// kafka-go reader, which hides most of them. settled is the count that verify has
	// seen, at verifiedAt.
	doubts     atomic.Int64
	settled    int64
	verifiedAt time.Time
}

// taken notes that a batch is handed over.
func (l *absorbedLog) taken(batch []Record) {
	if !l.known {
		l.known, l.confirmed = true, batch[0]
	}
	l.last = batch[len(batch)-1]
	l.watermark = max(l.watermark, l.last.HighWatermark)
	l.end = max(l.end, l.watermark)
}

// check verifies the log if there is a doubt, or if confirmEvery has passed. It is
// called after each poll, before batch is handed over. With records at hand and a
// doubt it waits for the broker. Otherwise a broker that does not answer is asked again
// after the next poll, so that the handler can go on saving.
func (r *partitionReader) check(ctx context.Context, batch []Record) error {
	doubts := r.doubts.Load()
	doubtful := doubts != r.settled
	if n := len(batch); n > 0 && batch[n-1].HighWatermark < r.watermark {
		doubtful = true
	}
	if !doubtful && time.Since(r.verifiedAt) < confirmEvery {
		return nil
	}
	if !doubtful || len(batch) == 0 {
		asking, cancel := context.WithTimeout(ctx, confirmTimeout)
		_, _, err := listOffsets(asking, r.client, r.cfg.Topic, r.partition)
		cancel()
		if err != nil {
			invalidateMetadata(r.client, err)
			return nil
		}
	}
	if err := r.verify(ctx); err != nil {
		return err
	}
	r.settled, r.verifiedAt = doubts, time.Now()
	return nil
}

// verify returns nil if the log is still the one that was read. It asks again during the
// grace period, because a broker that recovers its log shows an early end for a moment:
//
//	the log ends before the position         -> ErrBehind
//	its end or its beginning has moved back  -> ErrReplaced
//	an absorbed record is another one        -> ErrReplaced, at once
//	an absorbed record is not in it          -> go on: retention or compaction took it
func (r *partitionReader) verify(ctx context.Context) error {
	var doubt grace
	for pause := newPause(); ; wait(ctx, pause) {
		first, end, err := offsetsOf(ctx, &r.cfg.Config, r.client, r.cfg.Topic, r.partition)
		if err != nil {
			return err
		}
		var wrong error
		switch {
		case end < r.next:
			wrong = r.behind(end)
		case end < r.end:
			wrong = r.replaced("the log's end moved back from %d to %d", r.end, end)
		case first < r.first:
			wrong = r.replaced("the log's beginning moved back from %d to %d", r.first, first)
		default:
			r.first, r.end = first, end
			if err := r.compareAbsorbed(ctx); !errors.Is(err, kafkago.OffsetOutOfRange) {
				return err
			}
		}
		switch {
		case !doubt.over():
		case wrong != nil:
			return wrong
		default:
			r.cfg.Log.Warn("kafka: the record before the position should be in the log and is not: going on",
				"topic", r.cfg.Topic, "partition", r.partition, "first", first, "end", end, "next", r.next)
			return nil
		}
	}
}

// confirm is the function that [Handler.Position] gets. It does not wait for the reader, which
// asks a broker that does not answer for as long as it reads.
func (r *partitionReader) confirm(ctx context.Context) error {
	if !r.confirming.TryLock() {
		return fmt.Errorf("%w: its reader is asking the broker", ErrUnconfirmed)
	}
	defer r.confirming.Unlock()
	if r.last.Offset == r.confirmed.Offset {
		return nil // nothing was handed over since
	}
	asking, cancel := context.WithTimeout(ctx, confirmTimeout)
	_, _, err := listOffsets(asking, r.client, r.cfg.Topic, r.partition)
	cancel()
	if err == nil {
		fetching, cancel := context.WithTimeout(ctx, 2*requestTimeout)
		defer cancel()
		err = r.compareAbsorbed(fetching)
	} else {
		invalidateMetadata(r.client, err)
	}
	if err == nil || errors.Is(err, ErrReplaced) {
		return err
	}
	r.doubts.Add(1) // verify decides, after the next poll
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}

// compareAbsorbed compares two absorbed records with the log: the one confirmed last and
// the one handed over last. Those that retention or compaction took are left out. A record
// outside the log for no such reason is an error that wraps kafkago.OffsetOutOfRange.
func (r *partitionReader) compareAbsorbed(ctx context.Context) error {
	if !r.known {
		return nil
	}
	for _, absorbed := range []*Record{&r.confirmed, &r.last} {
		if absorbed == &r.last && r.last.Offset == r.confirmed.Offset {
			continue
		}
		found, ok, err := recordAt(ctx, &r.cfg.Config, r.client, r.cfg.Topic, r.partition, absorbed.Offset)
		switch {
		case errors.Is(err, kafkago.OffsetOutOfRange):
			first, _, listErr := offsetsOf(ctx, &r.cfg.Config, r.client, r.cfg.Topic, r.partition)
			if listErr != nil {
				return listErr
			}
			if first <= absorbed.Offset {
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

// sameRecord compares what a handler compares: key, value and headers. nil equals empty.
func sameRecord(a, b *Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}

// replaced returns ErrReplaced with what was seen and what to do.
func (r *partitionReader) replaced(format string, seen ...any) error {
	return fmt.Errorf("%w: the state has absorbed offsets below %d, and %s; "+
		"the topic was deleted and created again or this is another cluster: name the right one, or start with an empty state (a model of another name, or a replay of this log)",
		ErrReplaced, r.next, fmt.Sprintf(format, seen...))
}
