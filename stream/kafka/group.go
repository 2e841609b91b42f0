package kafka

import (
	"context"

	kafkago "github.com/segmentio/kafka-go"
)

// An Assignment is a partition that a consumer group has assigned to this process.
type Assignment struct {
	Log       *Log // the partition; it is closed after the assignment
	Partition int
	Next      int64 // the offset that the group committed: that of the record to read next
	Known     bool  // it has committed one

	generation *kafkago.Generation
	committed  int64 // the offset last committed, or Next
}

// Commit tells the group how far its records are dealt with. After a failure it is told with the
// next call: it may be behind, and never ahead.
func (a *Assignment) Commit(next int64) {
	if next == a.committed {
		return
	}
	l := a.Log
	if err := a.generation.CommitOffsets(map[string]map[int]int64{l.topic: {a.Partition: next}}); err != nil {
		l.cfg.Log.Debug("kafka: committing the group's offset", "partition", a.Partition, "offset", next, "error", err)
		return
	}
	a.committed = next
}

// Consume takes part in a consumer group that reads a topic, until ctx ends. It calls read for
// each partition that the group assigns to it, with a context that ends with the assignment. The
// group waits until read has returned. What read returns before its context ends, nil too, ends
// Consume. An error after a request to stop is returned as well; one after a revocation is
// logged.
func Consume(ctx context.Context, cfg Config, group, topic string, read func(ctx context.Context, a *Assignment) error) error {
	c, err := NewConsumer(ConsumerConfig{Config: cfg, Topic: topic, Group: group})
	if err != nil {
		return err
	}
	return c.takePart(ctx, func(m *member) {
		m.serve = func(running, ended context.Context, generation *kafkago.Generation, partition int) {
			m.hold(running, ended, partition, func(ctx context.Context, partition int) error {
				log, err := NewPartition(m.cfg.Config, topic, partition)
				if err != nil {
					return err
				}
				defer log.Close()
				a := &Assignment{Log: log, Partition: partition, generation: generation}
				if a.Next, a.Known, err = CommittedOffset(ctx, m.cfg.Config, group, topic, partition); err != nil {
					return err
				}
				a.committed = a.Next
				return read(ctx, a)
			})
		}
	})
}
