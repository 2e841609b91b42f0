package withdraw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// chunk is how many records are written before they are acknowledged: at most 100 MiB.
const chunk = 100

// Write appends the withdrawals of the plan to the log of each label's partition, whatever
// the keys say: a topic may have got more partitions since. It returns how many are
// acknowledged. After an error, Write again writes all: a copy changes nothing.
func (p *Plan) Write(ctx context.Context, servers Servers, progress func(Progress)) (written int, err error) {
	producer, err := kafka.NewProducer(servers.Kafka)
	if err != nil {
		return 0, err
	}
	defer producer.Close()
	for _, of := range p.Partitions {
		n, err := of.write(ctx, producer, reporting(progress, "writing"))
		written += n
		if err != nil {
			return written, fmt.Errorf("partition %d: after %d of %d withdrawals: %w", of.Partition, n, len(of.offsets), err)
		}
	}
	_, end, err := kafka.Offsets(ctx, servers.Kafka, stream.EventsTopic(p.Model))
	if err != nil {
		return written, fmt.Errorf("all %d withdrawals are written, but not known is where the log ends: %w", written, err)
	}
	for _, of := range p.Partitions {
		if len(of.offsets) > 0 {
			of.Until = end[of.Partition]
		}
	}
	return written, nil
}

func (pl *PartitionPlan) write(ctx context.Context, producer *kafka.Producer, progress func(p *part, offset int64)) (written int, err error) {
	var records []kafka.Record
	flush := func() error {
		if err := producer.PublishTo(ctx, pl.part.topic, pl.part.number, records...); err != nil {
			return err
		}
		written, records = written+len(records), records[:0]
		return nil
	}
	err = pl.labels(ctx, func(r *record, e *stream.Event) error {
		progress(pl.part, r.Offset)
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

// labels calls each with the labels of the plan and their withdrawals. Another record in
// the place of one ends it.
func (pl *PartitionPlan) labels(ctx context.Context, each func(r *record, e *stream.Event) error) error {
	found := 0
	err := pl.part.readThese(ctx, pl.offsets, func(r *record) error {
		e := withdrawal(r)
		if pl.offsets[found] != r.Offset || pl.ids[found] != e.ID {
			return fmt.Errorf("topic %s has another record at offset %d than the plan found there", pl.part.topic, pl.offsets[found])
		}
		found++
		return each(r, &e)
	})
	if err == nil && found < len(pl.offsets) {
		err = fmt.Errorf("topic %s no longer has the label at offset %d", pl.part.topic, pl.offsets[found])
	}
	return err
}

// Saved waits until the learner has saved a model with what Write wrote. It returns false
// if that takes longer than patience.
func (p *Plan) Saved(ctx context.Context, servers Servers, patience time.Duration) (bool, error) {
	end := map[int]int64{}
	for _, of := range p.Partitions {
		if of.Until > 0 {
			end[of.Partition] = of.Until
		}
	}
	err := awaitSaved(ctx, servers.Store, end, patience)
	if errors.Is(err, errNotSaved) {
		return false, nil
	}
	return err == nil, err
}

// Unsaved returns the partitions of which no saved model has learnt what Write wrote.
func (p *Plan) Unsaved(ctx context.Context, store *redis.Store) (missing []int, err error) {
	for _, of := range p.Partitions {
		if of.Until == 0 {
			continue
		}
		next, err := learntUpTo(ctx, store)
		if err != nil {
			return nil, err
		}
		if next < of.Until {
			missing = append(missing, of.Partition)
		}
	}
	return missing, nil
}

// learntUpTo returns the offset up to which the saved model has learnt.
func learntUpTo(ctx context.Context, store *redis.Store) (int64, error) {
	h, err := store.Heading(ctx, state.Head)
	return h.Next, err
}

// errNotSaved says that the patience of awaitSaved is at its end.
var errNotSaved = errors.New("the learner has not yet saved a model with the withdrawals")

// awaitSaved waits until the saved model has learnt the log up to the offsets end, by partition.
func awaitSaved(ctx context.Context, store *redis.Store, end map[int]int64, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNotSaved)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for _, offset := range end {
		for {
			next, err := learntUpTo(ctx, store)
			if err == nil && next >= offset {
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
