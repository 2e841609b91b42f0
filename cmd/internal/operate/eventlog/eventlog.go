// Package eventlog reads and fills the log of a model: its events topic, which has one
// partition. A log can be exported to a file, and a new log be filled from such a file, or from
// a topic of several partitions.
//
//	log, err := eventlog.Open(ctx, brokers, "default")
//	n, err := eventlog.Export(log.Records(ctx), "default", "default.jsonl.zst")
//	…
//	records := eventlog.File("default.jsonl.zst")
//	copied, oldest, err := eventlog.Make(ctx, brokers, "copy", records, settings.Topic{})
//	filled, err := copied.Fill(ctx, records, oldest, nil)
//
// # Invariants
//
//   - What is copied is copied verbatim: keys, values, headers, times and order. So the model of
//     the copy has the same SHA-256.
//   - A log that is being filled is a prefix of its source. So a copy that was killed can continue
//     where it stopped. If the log has any other record, filling it is an error.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
)

// Records are those of a log, in order. They end after an error. They can be read several times.
// A record belongs to the caller, and nobody changes it later.
type Records = iter.Seq2[*stream.Record, error]

// A Log is the log of a model.
type Log struct {
	follow.Config

	// to appends to the log. It does not try again: after one failure Append returns ErrAway.
	to    stream.Appender
	close func() error
}

// Close closes its connections.
func (l *Log) Close() error { return l.close() }

var (
	// ErrNone: the model has no log. Give another name, or another cluster.
	ErrNone = errors.New("there is no log")

	// ErrForeign: a log that is to be filled has records that differ from its source's at their place.
	// Fill another log, or delete this one and fill it from its beginning.
	ErrForeign = errors.New("the log is not the beginning of what is copied")

	// ErrOld: Kafka would delete a record while it is copied. Keep the new log for longer.
	ErrOld = errors.New("the record is older than the log keeps records")

	// errEnough ends reading, because the caller wants no more records.
	errEnough = errors.New("enough")
)

// Records returns the records from the log's beginning to where it ends now. It keeps what one read
// returned in memory, and retries until ctx ends.
func (l *Log) Records(ctx context.Context) Records {
	return func(yield func(*stream.Record, error) bool) {
		b, err := follow.Bounds(ctx, l.Config)
		if err == nil {
			err = follow.Range(ctx, l.Config, 0, b.End, func(r *stream.Record) error {
				if !yield(r, nil) {
					return errEnough
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// A cursor reads a log, one record after another. It holds what one read returned, so any time may
// pass between two records.
type cursor struct {
	log       follow.Config
	most      int // bytes of a read; it returns one record at least
	next, end int64
	chunk     []stream.Record // what the last read returned and take has not taken; next is the offset after it
}

// peek returns the next record, nil at the end.
func (c *cursor) peek(ctx context.Context) (*stream.Record, error) {
	if len(c.chunk) == 0 && c.next < c.end {
		var err error
		if c.chunk, err = follow.Some(ctx, c.log, c.next, c.end, c.most); err != nil {
			return nil, err
		}
		if c.next = c.end; len(c.chunk) > 0 {
			c.next = c.chunk[len(c.chunk)-1].Offset + 1
		}
	}
	if len(c.chunk) == 0 {
		return nil, nil
	}
	return &c.chunk[0], nil
}

// take takes the record that peek returned.
func (c *cursor) take() { c.chunk = c.chunk[1:] }

// Items returns the records of a log as a labelled source returns its events. name is the log's, for
// errors. A record that cannot be decoded is a *source.Rejection: the learner makes it a dead letter.
func Items(name string, records Records) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		n := 0
		for r, err := range records {
			if err != nil {
				yield(source.Item{}, err)
				return
			}
			item, err := itemOf(r)
			if err != nil {
				err = &source.Rejection{Ordinal: n, Place: fmt.Sprintf("%s, offset %d", name, r.Offset), Err: err}
			}
			item.Ordinal = n
			if n++; !yield(item, err) {
				return
			}
		}
	}
}

func itemOf(r *stream.Record) (item source.Item, err error) {
	if stream.IsStanding(r.Headers) {
		s, err := stream.DecodeStandingRecord(r.Headers, r.Value)
		item.Standing = &s
		return item, err
	}
	if item.Event, err = stream.DecodeRecord(r.Headers, r.Value); err != nil {
		return item, err
	}
	item.Truth = item.Event.Label
	return item, nil
}
