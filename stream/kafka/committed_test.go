package kafka_test

import (
	"context"
	"fmt"
	"testing"

	"hamlet/stream/kafka"
)

// A group's offset is that of what its handler has taken, and there is none before.
func TestCommittedOffset(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	if at, ok, err := kafka.CommittedOffset(t.Context(), cfg, name, name, 0); ok || err != nil {
		t.Errorf("before the group: %d, %v, %v", at, ok, err)
	}
	if ok, err := kafka.Committed(t.Context(), cfg, name, name, 3); ok || err != nil {
		t.Errorf("before the group: %v, %v", ok, err)
	}
	if err := newProducer(t, cfg).Publish(t.Context(), numbered(name, 0, 70, 5)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, k.open("a"))
	k.until(t, "all", func() bool { return k.count == 70 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if at, ok, err := kafka.CommittedOffset(t.Context(), cfg, name, name, 0); at != 70 || !ok || err != nil {
		t.Errorf("after 70 records: %d, %v, %v", at, ok, err)
	}
	if ok, err := kafka.Committed(t.Context(), cfg, name, name, 3); !ok || err != nil {
		t.Errorf("after 70 records: %v, %v", ok, err)
	}
	if ok, err := kafka.Committed(t.Context(), cfg, name, "no-"+name, 3); ok || err != nil {
		t.Errorf("of a topic that is not there: %v, %v", ok, err)
	}
}

// With CommitEach nothing that a handler has taken before a batch is uncommitted, so that a
// kill leaves no more than the batch to be read again.
func TestCommitEach(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	if err := newProducer(t, cfg).Publish(t.Context(), numbered(name, 0, 50, 5)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, CommitEach: true, MaxBatch: 10},
		k.hooked("a", func(ctx context.Context, partition int, batch []kafka.Record) error {
			at, _, err := kafka.CommittedOffset(ctx, cfg, name, name, partition)
			if err == nil && batch[0].Offset > 0 && at != batch[0].Offset {
				err = fmt.Errorf("the group is at %d where offset %d begins a batch", at, batch[0].Offset)
			}
			return err
		}))
	k.until(t, "all", func() bool { return k.count == 50 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
