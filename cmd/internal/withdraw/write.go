package withdraw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/state"
	"hamlet/stream/kafka"
)

// chunk is how many records are written before they are acknowledged: at most 100 MiB.
const chunk = 100

// write appends the withdrawals of a plan to the log of its partition, whatever the keys
// say: a topic may have got more partitions since. It returns how many are acknowledged.
func (pl *plan) write(ctx context.Context, producer *kafka.Producer, progress func(p *part, offset int64)) (written int, err error) {
	var records []kafka.Record
	flush := func() error {
		if err := producer.PublishTo(ctx, pl.part.topic, pl.part.number, records...); err != nil {
			return fmt.Errorf("partition %d: after %d of %d withdrawals: %w", pl.part.number, written, len(pl.offsets), err)
		}
		written, records = written+len(records), records[:0]
		return nil
	}
	err = pl.part.readThese(ctx, pl.offsets, func(r *record) error {
		progress(pl.part, r.Offset)
		e := withdrawal(r)
		value, headers, err := e.EncodeRecord()
		if err != nil {
			return err
		}
		records = append(records, kafka.Record{Topic: pl.part.topic, Key: r.Key, Value: value, Headers: headers})
		if len(records) < chunk {
			return nil
		}
		return flush()
	})
	if err != nil || len(records) == 0 {
		return written, err
	}
	return written, flush()
}

// A headReader says what is saved of a partition's model.
type headReader interface {
	Heading(ctx context.Context, partition int, which state.Pointer) (state.Heading, error)
}

// errNotSaved says that the patience of awaitSaved is at its end.
var errNotSaved = errors.New("the learner has not yet saved a model with the withdrawals")

// awaitSaved waits until the saved models have learnt their logs up to the offsets end, by
// partition.
func awaitSaved(ctx context.Context, store headReader, end map[int]int64, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNotSaved)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for partition, offset := range end {
		for {
			h, err := store.Heading(ctx, partition, state.Head)
			if err == nil && h.Next >= offset {
				break
			}
			if err != nil && !errors.Is(err, state.ErrTransient) && !errors.Is(err, state.ErrNone) {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
