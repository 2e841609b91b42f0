package kafka_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/stream/kafka"
)

// A topic that is deleted and created again under a consumer that waits for records
// ends Run. No state with records of the new topic is saved: the group may begin another
// generation while the topic is away, or the new topic may be there and longer before the
// next fetch.
func TestReplacedUnderAConsumer(t *testing.T) {
	for name, more := range map[string][]int{
		"longer at once":  {300},
		"longer in steps": {50, 250}, // first the position is beyond the end
		"as long":         {100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, cfg := fakeCluster(t)
			const name = "t"
			ensure(t, cfg, name, 1)
			p := newProducer(t, cfg)
			if err := p.Publish(t.Context(), numbered(name, 0, 100, 1)...); err != nil {
				t.Fatal(err)
			}
			k := newKeeper()
			open := func(ctx context.Context, partition int) (kafka.Handler, error) {
				h, err := k.open("a")(ctx, partition)
				h.(*handler).idle = func() error {
					err := h.(*handler).save(within(t, 30*time.Second))
					if errors.Is(err, kafka.ErrUnconfirmed) { // no answer within a second: it saves later
						return nil
					}
					return err
				}
				return h, err
			}
			ended := make(chan error, 1)
			c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, PollInterval: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			go func() { ended <- c.Run(within(t, 30*time.Second), open) }()
			k.until(t, "the first log", func() bool { return k.next[0] == 100 })
			remove(t, cfg, name)
			ensure(t, cfg, name, 1)
			sent := 1000
			for _, n := range more {
				if err := p.Publish(within(t, 30*time.Second), numbered(name, sent, n, 1)...); err != nil {
					t.Fatal(err)
				}
				sent += n
			}
			if err := <-ended; !errors.Is(err, kafka.ErrReplaced) {
				t.Errorf("Run = %v, want ErrReplaced", err)
			}
			if k.next[0] != 100 {
				t.Errorf("saved up to %d, want 100: the first log", k.next[0])
			}
		})
	}
}

// The topic is replaced between two fetches on one connection, and the new one is
// longer: no request fails. A handler that asks before it saves is told.
//
// Follow is Run of one assignment that lasts. A group may begin another generation while
// the topic is away, and a handler that has saved nothing then reads the other log rightly.
func TestReplacedBetweenTwoFetches(t *testing.T) {
	_, cfg := fakeCluster(t)
	const name = "t"
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	// More than a batch and kafka-go's queue, so that the reader does not fetch again.
	const old, others = 400, 900
	if err := p.Publish(t.Context(), numbered(name, 0, old, 1)...); err != nil {
		t.Fatal(err)
	}
	began, goOn := make(chan struct{}), make(chan struct{})
	k := newKeeper()
	open := func(ctx context.Context, partition int) (kafka.Handler, error) {
		h, err := k.open("a")(ctx, partition)
		h.(*handler).handle = func(batch []kafka.Record) error {
			if batch[0].Offset == 0 {
				close(began)
				<-goOn
				return nil
			}
			// Of the other log, before this call.
			mixed := slices.ContainsFunc(k.taken[0], func(r kafka.Record) bool { return len(r.Value) > 3 })
			err := h.(*handler).confirm(within(t, 30*time.Second))
			if mixed && err == nil {
				t.Error("a mixed state was confirmed")
			}
			if errors.Is(err, kafka.ErrUnconfirmed) { // no answer within a second: it saves later
				return nil
			}
			return err
		}
		return h, err
	}
	ended := make(chan error, 1)
	go func() {
		consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, MaxBatch: 100, SessionTimeout: time.Minute}
		ended <- kafka.Follow(within(t, 30*time.Second), consumer, 0, open)
	}()
	<-began
	remove(t, cfg, name)
	ensure(t, cfg, name, 1)
	if err := p.Publish(within(t, 30*time.Second), numbered(name, 1000, others, 1)...); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-ended; !errors.Is(err, kafka.ErrReplaced) || !strings.Contains(err.Error(), "partition 0") {
		t.Errorf("Follow = %v, want ErrReplaced", err)
	}
	if slices.Contains(k.log, "a close 0") {
		t.Errorf("a handler with another log's records was closed, so it saved: %v", k.log)
	}
}
