package kafka_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hamlet/stream/kafka"
)

// One of two members holds the partition at a time. The other one gets it when the first has
// let go of it. Nothing is read.
func TestHold(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	if err := newProducer(t, cfg).Publish(t.Context(), numbered(name, 0, 10, 1)...); err != nil {
		t.Fatal(err)
	}
	ctx := within(t, time.Minute)
	held := make(chan string)
	letGo := errors.New("not saved")
	start := func(who string, last error) (stop func() error) {
		c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, SessionTimeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- c.Hold(ctx, func(ctx context.Context, partition int) error {
				held <- who
				<-ctx.Done()
				held <- who + " let go"
				return last
			})
		}()
		return func() error { cancel(); return <-ended }
	}
	next := func() string {
		select {
		case who := <-held:
			return who
		case <-ctx.Done():
			t.Fatal("nobody holds the partition")
			return ""
		}
	}
	stops := map[string]func() error{"a": start("a", nil)}
	if who := next(); who != "a" {
		t.Fatal(who)
	}
	stops["b"] = start("b", letGo)
	if who := next(); who != "a let go" { // the group forms again
		t.Fatal(who)
	}
	first := next()
	second := map[string]string{"a": "b", "b": "a"}[first]
	stopped := make(chan error, 1)
	go func() { stopped <- stops[first]() }()
	if who := next(); who != first+" let go" {
		t.Fatal(who)
	}
	if who := next(); who != second {
		t.Fatal(who)
	}
	want := map[string]error{"a": nil, "b": letGo}
	if err := <-stopped; !errors.Is(err, want[first]) {
		t.Errorf("%s ended with %v, want %v", first, err, want[first])
	}
	go func() { stopped <- stops[second]() }()
	if who := next(); who != second+" let go" {
		t.Fatal(who)
	}
	if err := <-stopped; !errors.Is(err, want[second]) {
		t.Errorf("%s ended with %v, want %v", second, err, want[second])
	}
}

// What is returned before the assignment ends, ends all.
func TestHoldFails(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, SessionTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	err = c.Hold(within(t, time.Minute), func(context.Context, int) error { return failed })
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "partition 0") {
		t.Errorf("Hold = %v, want the error", err)
	}
}
