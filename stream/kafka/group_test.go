package kafka_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/loopback"
	"hamlet/stream/servertest/topics"
)

// The members of a group share the partitions of a topic, one has each at a time, and who gets one
// goes on where the group is.
func TestGroupMovesPartitions(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	const partitions = 4
	topics.Make(t, cfg, name, partitions)
	var logs []*kafka.Log
	for i := range partitions {
		log, err := kafka.NewPartition(cfg, name, i)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		logs = append(logs, log)
	}
	k := newKeeper()
	total := 0
	more := func() {
		t.Helper()
		for _, log := range logs {
			add(t, log, numbered(total, 250)...)
			total += 250
		}
		k.until(t, "a thousand more", func() bool { return k.count() == total })
	}
	owned := func(who string) (n int) {
		for _, w := range k.held {
			if w == who {
				n++
			}
		}
		return n
	}
	stopA := consume(t, cfg, name, k.read("a"))
	k.until(t, "a to own all", func() bool { return owned("a") == partitions })
	more()
	stopB := consume(t, cfg, name, k.read("b"))
	k.until(t, "a and b to share", func() bool { return owned("a") == 2 && owned("b") == 2 })
	more()
	if err := stopA(); err != nil {
		t.Fatal(err)
	}
	k.until(t, "b to own all", func() bool { return owned("b") == partitions })
	more()
	if err := stopB(); err != nil {
		t.Fatal(err)
	}
	if k.clash != "" {
		t.Error(k.clash)
	}
	for i := range partitions {
		if at, ok, err := cfg.CommittedOffset(t.Context(), "group-"+name, name, i); at != 750 || !ok || err != nil {
			t.Errorf("the group is at offset %d of partition %d, %v, %v; want 750", at, i, ok, err)
		}
	}
}

// A group has no offset before it commits one, and each reader is told what the one before it has
// committed.
func TestCommittedOffset(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name)
	group := "group-" + name
	if at, ok, err := cfg.CommittedOffset(t.Context(), group, name, 0); ok || err != nil {
		t.Errorf("before the group: %d, %v, %v", at, ok, err)
	}
	enough := errors.New("enough")
	for _, want := range []struct {
		next  int64
		known bool
	}{{0, false}, {7, true}, {70, true}} {
		err := kafka.Consume(within(t, 30*time.Second), cfg, group, name, func(_ context.Context, a *kafka.Assignment) error {
			if a.Known != want.known || a.Known && a.Next != want.next {
				t.Errorf("assigned at %d, %v; want %+v", a.Next, a.Known, want)
			}
			a.Commit(max(7, want.next*10))
			return enough
		})
		if !errors.Is(err, enough) || !strings.Contains(err.Error(), "partition 0") {
			t.Errorf("Consume = %v, want the error of its reader", err)
		}
	}
	if at, ok, err := cfg.CommittedOffset(t.Context(), group, name, 0); at != 700 || !ok || err != nil {
		t.Errorf("at the end: %d, %v, %v", at, ok, err)
	}
}

// An error after a revocation does not end Consume: the next owner goes on. One after the request
// to stop is returned.
func TestLateErrors(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	topics.Make(t, cfg, name, 2)
	k := newKeeper()
	broken := errors.New("the copy cannot be written")
	var late atomic.Int64
	read := k.read("a")
	stopA := consume(t, cfg, name, func(ctx context.Context, a *kafka.Assignment) error {
		if err := read(ctx, a); err != nil {
			return err
		}
		late.Add(1)
		return broken
	})
	k.until(t, "a to own both", func() bool { return k.held[0] == "a" && k.held[1] == "a" })
	stopB := consume(t, cfg, name, k.read("b"))
	k.until(t, "a and b to share", func() bool { return k.held[0] != "" && k.held[1] != "" && k.held[0] != k.held[1] })
	if err := stopB(); err != nil {
		t.Fatal(err)
	}
	k.until(t, "a to own both again", func() bool { return k.held[0] == "a" && k.held[1] == "a" })
	err := stopA()
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "partition 0") || !strings.Contains(err.Error(), "partition 1") {
		t.Errorf("Consume = %v, want the errors of both partitions", err)
	}
	if late.Load() < 4 {
		t.Errorf("%d late errors, want at least 4", late.Load())
	}
}

func TestUnknownTopicEndsConsume(t *testing.T) {
	t.Parallel()
	cfg, name := cluster(t), topic(t)
	err := kafka.Consume(within(t, 30*time.Second), cfg, name, name, newKeeper().read("a"))
	if !errors.Is(err, stream.ErrNoLog) || !strings.Contains(err.Error(), name) {
		t.Fatalf("Consume = %v, want ErrNoLog with the name", err)
	}
	for _, c := range [][2]string{{"", name}, {name, ""}} {
		if err := kafka.Consume(t.Context(), cfg, c[0], c[1], newKeeper().read("a")); err == nil {
			t.Errorf("group %q, topic %q: no error", c[0], c[1])
		}
	}
}

// Stopping is prompt even if the broker is gone and the group waits for it.
func TestStopWithoutBroker(t *testing.T) {
	t.Parallel()
	broker, err := servertest.StartKafka(servertest.KafkaOptions{Addr: loopback.Hold(t), Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	stop := consume(t, kafka.Config{Brokers: []string{broker.Addr()}}, "t", k.read("a"))
	k.until(t, "the partition", func() bool { return k.held[0] == "a" })
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	k.until(t, "the loss to be noticed", func() bool { return k.held[0] == "" })
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	// A join that nothing interrupts is cut after 18 s.
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("stopping took %v", took)
	}
}
