package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hamlet/stream/embedded"
	"hamlet/stream/embedded/loopback"
	"hamlet/stream/kafka"
)

// A closer's Close fails a set number of times.
type closer struct {
	kafka.Handler
	close func(context.Context) error
}

func (c closer) Close(ctx context.Context) error {
	return errors.Join(c.close(ctx), c.Handler.Close(ctx))
}

// A save that fails when a partition is revoked does not end Run: the next owner reads
// the log from the saved state. If it did, each rebalance could end another process.
func TestCloseErrorSurvivesRebalance(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	k := newKeeper()
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}
	var failed atomic.Int64
	open := k.open("a")
	stopA := start(t, consumer, func(ctx context.Context, partition int) (kafka.Handler, error) {
		h, err := open(ctx, partition)
		return closer{h, func(context.Context) error {
			if failed.Add(1) > 2 {
				return nil
			}
			return errors.New("the state cannot be reached")
		}}, err
	})
	k.until(t, "a to own both", func() bool { return len(k.owner) == 2 })
	stopB := start(t, consumer, k.open("b"))
	k.until(t, "a and b to share", func() bool {
		return k.owner[0] != k.owner[1]
	})
	if err := stopB(); err != nil {
		t.Fatal(err)
	}
	k.until(t, "a to own both again", func() bool { return k.owner[0] == "a" && k.owner[1] == "a" })
	if err := stopA(); err != nil {
		t.Errorf("Run = %v, want nil: its last saves succeeded", err)
	}
	if failed.Load() < 4 {
		t.Errorf("%d handlers closed, want at least 4", failed.Load())
	}
}

// A last save that fails at an orderly stop is Run's error, for each partition.
func TestCloseErrorEndsStop(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	k := newKeeper()
	broken := errors.New("the state cannot be reached")
	open := k.open("a")
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, func(ctx context.Context, partition int) (kafka.Handler, error) {
		h, err := open(ctx, partition)
		return closer{h, func(context.Context) error { return fmt.Errorf("save: %w", broken) }}, err
	})
	k.until(t, "both partitions", func() bool { return len(k.owner) == 2 })
	err := stop()
	if !errors.Is(err, broken) {
		t.Fatalf("Run = %v, want the error of Close", err)
	}
	for _, want := range []string{"partition 0: close", "partition 1: close"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// A batch that is not finished within Drain is Run's error too.
func TestDrainPassed(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	if err := newProducer(t, cfg).Publish(t.Context(), numbered(name, 0, 1, 1)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	entered := make(chan struct{})
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, Drain: 50 * time.Millisecond},
		k.hooked("a", func(working context.Context, _ int, _ []kafka.Record) error {
			close(entered)
			<-working.Done()
			return working.Err()
		}))
	<-entered
	if err := stop(); err == nil || !strings.Contains(err.Error(), "offsets 0 to 0") {
		t.Errorf("Run = %v, want the batch that was not finished", err)
	}
}

// An unhurried handler's Close ignores its deadline, which may have passed before it
// runs.
type unhurried struct{ kafka.Handler }

func (u unhurried) Close(ctx context.Context) error {
	return u.Handler.Close(context.WithoutCancel(ctx))
}

// After a request to stop, a handler finishes its batch, under a deadline.
func TestDrain(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	if err := newProducer(t, cfg).Publish(t.Context(), numbered(name, 0, 1, 1)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	entered, ended := make(chan struct{}), make(chan error)
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, Drain: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		open := k.hooked("a", func(working context.Context, _ int, _ []kafka.Record) error {
			close(entered)
			<-working.Done()
			return nil
		})
		ended <- c.Run(ctx, func(ctx context.Context, partition int) (kafka.Handler, error) {
			h, err := open(ctx, partition)
			return unhurried{h}, err
		})
	}()
	<-entered
	began := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("drained for %v, want 300 ms", took)
	}
	if !slices.Contains(k.log, "a close 0") || k.next[0] != 1 {
		t.Errorf("log %v, saved position %d: want closed at 1", k.log, k.next[0])
	}
}

func TestIdle(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	idle := make(chan struct{})
	start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, PollInterval: 20 * time.Millisecond},
		func(context.Context, int) (kafka.Handler, error) { return idler(idle), nil })
	for range 3 {
		select {
		case <-idle:
		case <-within(t, 30*time.Second).Done():
			t.Fatal("not called")
		}
	}
}

type idler chan<- struct{}

func (i idler) Position(func(context.Context) error) (int64, bool) { return 0, false }
func (idler) Follows(kafka.Record) bool                            { return true }
func (i idler) Handle(context.Context, []kafka.Record) error       { return nil }
func (i idler) Close(context.Context) error                        { return nil }
func (i idler) Idle(ctx context.Context) error {
	select {
	case i <- struct{}{}:
	case <-ctx.Done():
	}
	return nil
}

// Stopping is prompt even if the broker is gone and the group waits for it.
func TestStopWithoutBroker(t *testing.T) {
	broker, err := embedded.StartKafka(embedded.KafkaOptions{Addr: loopback.Hold(t), Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: kafka.Config{Brokers: []string{broker.Addr()}}, Topic: "t", Group: "g"}, k.open("a"))
	k.until(t, "the partition", func() bool { return len(k.owner) == 1 })
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	k.until(t, "the loss to be noticed", func() bool { return slices.Contains(k.log, "a close 0") })
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	// A join that nothing interrupts is cut after 34 s: twice Drain, which is 12 s
	// here, and 10 s.
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("stopping took %v", took)
	}
}
