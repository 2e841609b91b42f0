package eventlog

import (
	"context"
	"fmt"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// mergeBytes is about what a merge holds in memory of all partitions.
const mergeBytes = 64 << 20

// A LostError says that retention has deleted the beginning of a partition.
type LostError struct {
	Topic     string
	Partition int
	First     int64
}

func (e *LostError) Error() string {
	return fmt.Sprintf("partition %d of topic %s begins at offset %d: retention has deleted what was before",
		e.Partition, e.Topic, e.First)
}

// An OrderedError says that one model learnt a topic of several partitions, in an order that is
// another than that of the records' times, or that this is not known.
type OrderedError struct {
	Topic string
	Order Order // Ordered or OrderUnknown
}

func (e *OrderedError) Error() string {
	if e.Order == OrderUnknown {
		return "it is not known whether one model has learnt all partitions of topic " + e.Topic
	}
	return fmt.Sprintf("one model has learnt all partitions of topic %s, in an order of its own, "+
		"and the order of the records' times makes another model", e.Topic)
}

// Merge returns the records of all partitions of a model's topic up to their ends of now, by the
// time of the records, and where that is equal by partition. Those of a partition keep their
// order. So two merges of one topic are equal. If the topic grows meanwhile, the first merge is a
// prefix of the second as long as no new record is older than one that was merged before. What it
// holds in memory does not grow with the topic.
//
// It returns a *LostError or an *OrderedError for what makes another model than the one that was
// learnt, or may do so, unless lost is accepted.
func Merge(ctx context.Context, brokers kafka.Config, model string, acceptLost bool) (
	records Records, total int64, err error) {
	topic := stream.EventsTopic(model)
	n, err := brokers.Partitions(ctx, topic)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: there is no topic %s", ErrNone, topic)
	}
	if err != nil {
		return nil, 0, err
	}
	if !acceptLost && n > 1 {
		order, err := orderOf(ctx, brokers, model)
		if err != nil {
			return nil, 0, err
		}
		if order != NoOrder {
			return nil, 0, &OrderedError{topic, order}
		}
	}
	bounds := make([]stream.Bounds, n)
	for p := range bounds {
		reads, log, err := partition(brokers, topic, p)
		if err != nil {
			return nil, 0, err
		}
		bounds[p], err = follow.Bounds(ctx, reads)
		log.Close()
		switch {
		case err != nil:
			return nil, 0, err
		case bounds[p].First > 0 && !acceptLost:
			return nil, 0, &LostError{topic, p, bounds[p].First}
		}
		total += bounds[p].End - bounds[p].First
	}
	return func(yield func(*stream.Record, error) bool) {
		cursors := make([]cursor, n)
		for p := range cursors {
			reads, log, err := partition(brokers, topic, p)
			if err != nil {
				yield(nil, err)
				return
			}
			defer log.Close()
			cursors[p] = cursor{log: reads, most: min(chunkBytes, mergeBytes/n), next: bounds[p].First, end: bounds[p].End}
		}
		for {
			r, err := oldest(ctx, cursors)
			if r == nil && err == nil || !yield(r, err) || err != nil {
				return
			}
		}
	}, total, nil
}

// partition returns a partition of a topic, which the caller closes, and how it is read.
func partition(brokers kafka.Config, topic string, n int) (follow.Config, stream.Topic, error) {
	log, err := kafka.NewPartition(brokers, topic, n)
	if err != nil {
		return follow.Config{}, nil, err
	}
	return reads(brokers, log, fmt.Sprintf("%s, partition %d", topic, n)), log, nil
}

// oldest takes the oldest of the next records of all partitions; nil at the end of all.
func oldest(ctx context.Context, cursors []cursor) (oldest *stream.Record, err error) {
	var of *cursor
	for p := range cursors {
		r, err := cursors[p].peek(ctx)
		if err != nil {
			return nil, err
		}
		if r != nil && (oldest == nil || r.Time.Before(oldest.Time)) {
			oldest, of = r, &cursors[p]
		}
	}
	if of != nil {
		of.take()
	}
	return oldest, nil
}
