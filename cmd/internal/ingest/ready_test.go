package ingest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
)

// Readiness follows Kafka, and asks it no more often than it must.
func TestReadinessFollowsKafka(t *testing.T) {
	k, err := embedded.StartKafka(embedded.KafkaOptions{Topics: []string{topic}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	r := NewReadiness(func(ctx context.Context) error {
		_, _, err := kafka.Offsets(ctx, cfg, topic)
		return err
	})
	if err := r.Ready(); err != nil {
		t.Errorf("with Kafka: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	r.at = time.Time{} // as after a while
	if err := r.Ready(); err == nil {
		t.Error("ready without Kafka")
	}
}

func TestReadinessIsAskedForOnceAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, down := 0, errors.New("down")
		r := NewReadiness(func(ctx context.Context) error {
			if asked++; asked == 1 {
				return nil
			}
			<-ctx.Done() // a Kafka that hangs
			return down
		})
		for at, want := range []error{nil, nil, nil, nil, nil, down, down} { // second by second
			start := time.Now()
			if err := r.Ready(); err != want {
				t.Errorf("after %d s: %v, want %v", at, err, want)
			}
			if took := time.Since(start); took > probePatience {
				t.Errorf("after %d s: it took %v", at, took)
			}
			<-time.After(time.Second)
		}
		if asked != 2 {
			t.Errorf("asked %d times, want 2", asked)
		}
	})
}
