// Package eventlog reads and fills the log of a model: its events topic, which has one
// partition. A log can be exported to a file, and a new log be filled from such a file, or from
// a topic of several partitions.
//
//	log, err := eventlog.Open(ctx, brokers, "default")
//	n, err := eventlog.Export(log.Records(ctx), "default", log.Topic, "default.jsonl.zst")
//	…
//	copied := eventlog.Of(brokers, "copy")
//	filled, err := copied.Fill(ctx, eventlog.File("default.jsonl.zst"), eventlog.New{}, nil)
//
// # Invariants
//
//   - What is copied is copied verbatim: keys, values, headers, times and order. So the model of
//     the copy has the same SHA-256.
//   - A log that is being filled is a prefix of its source. So a copy that was killed goes on where
//     it stopped, and no other record comes into it.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"hamlet/stream"
	"hamlet/stream/kafka"
)

// Records are those of a log, in order. An error is the last that they have. A record is the
// caller's: it stays as it is.
type Records = iter.Seq2[*kafka.Record, error]

// A Log is the events topic of a model.
type Log struct {
	Kafka kafka.Config
	Topic string
}

// Of returns the log of a model, whether it exists or not.
func Of(brokers kafka.Config, model string) Log { return Log{brokers, stream.EventsTopic(model)} }

var (
	// ErrNone: the model has no log. Its name is another one, or the cluster is.
	ErrNone = errors.New("there is no log")

	// ErrForeign: a log that is to be filled has records that its source has not at that place.
	// Fill another log, or delete this one and fill it from its beginning.
	ErrForeign = errors.New("the log is not the beginning of what is copied")

	// ErrOld: Kafka would delete a record while it is copied. Keep the new log for longer.
	ErrOld = errors.New("the record is older than the log keeps records")
)

// A PartitionsError says that a topic has several partitions, and so is no log.
type PartitionsError struct {
	Topic      string
	Partitions int
	Ordered    bool // one model learnt them, in the order of a log that 0.1.0 reads
}

func (e *PartitionsError) Error() string {
	return fmt.Sprintf("topic %s has %d partitions, and the log of a model has one", e.Topic, e.Partitions)
}

// Open returns the log of a model. Its error is a *PartitionsError, or wraps ErrNone or
// kafka.ErrNoBeginning, if there is none that can be read from its beginning.
func Open(ctx context.Context, brokers kafka.Config, model string) (Log, error) {
	log := Of(brokers, model)
	switch n, err := kafka.Partitions(ctx, brokers, log.Topic); {
	case err != nil:
		return log, err
	case n == 0:
		return log, fmt.Errorf("%w: there is no topic %s", ErrNone, log.Topic)
	case n > 1:
		ordered, err := hasOrder(ctx, brokers, model)
		return log, errors.Join(&PartitionsError{log.Topic, n, ordered}, err)
	}
	first, _, err := log.bounds(ctx)
	if err == nil && first > 0 {
		err = fmt.Errorf("%w: topic %s begins at offset %d, so the model cannot be learnt again",
			kafka.ErrNoBeginning, log.Topic, first)
	}
	return log, err
}

// hasOrder reports whether 0.1.0 wrote in which order the model learnt several partitions.
func hasOrder(ctx context.Context, brokers kafka.Config, model string) (bool, error) {
	n, err := kafka.Partitions(ctx, brokers, "hamlet.order."+model)
	if err != nil {
		return false, fmt.Errorf("ask whether one model learnt all partitions: %w", err)
	}
	return n > 0, nil
}

func (l Log) bounds(ctx context.Context) (first, end int64, err error) {
	firsts, ends, err := kafka.Offsets(ctx, l.Kafka, l.Topic)
	return firsts[0], ends[0], err
}

// errEnough: whoever takes the records wants no more.
var errEnough = errors.New("enough")

// Records returns the records from the log's beginning to its end of now. It keeps one fetch in
// memory, and retries until ctx ends.
func (l Log) Records(ctx context.Context) Records {
	return func(yield func(*kafka.Record, error) bool) {
		_, end, err := l.bounds(ctx)
		if err == nil {
			err = kafka.ReadRange(ctx, l.Kafka, l.Topic, 0, 0, end, func(r *kafka.Record) error {
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

// A cursor reads a partition, one record after another. It holds a chunk of them, so that it may
// wait as long as it likes between two records.
type cursor struct {
	log       Log
	partition int
	most      int // bytes of a chunk; it has one record at least
	next, end int64
	chunk     []kafka.Record // those before next that were not taken
}

// peek returns the next record, nil at the end.
func (c *cursor) peek(ctx context.Context) (*kafka.Record, error) {
	if len(c.chunk) == 0 && c.next < c.end {
		bytes := 0
		err := kafka.ReadRange(ctx, c.log.Kafka, c.log.Topic, c.partition, c.next, c.end, func(r *kafka.Record) error {
			c.chunk, c.next = append(c.chunk, *r), r.Offset+1
			if bytes += sizeOf(r); bytes >= c.most {
				return errEnough
			}
			return nil
		})
		switch {
		case err == nil:
			c.next = c.end
		case !errors.Is(err, errEnough):
			return nil, err
		}
	}
	if len(c.chunk) == 0 {
		return nil, nil
	}
	return &c.chunk[0], nil
}

// take takes the record that peek returned.
func (c *cursor) take() { c.chunk = c.chunk[1:] }

// sizeOf returns about how many bytes a record has in memory.
func sizeOf(r *kafka.Record) int {
	n := 128 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 40 + len(h.Key) + len(h.Value)
	}
	return n
}
