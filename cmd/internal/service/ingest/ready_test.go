package ingest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// Readiness follows Kafka and probes it at most once in probeEvery.
func TestReadinessFollowsKafka(t *testing.T) {
	topic := new(logtest.Memory)
	r := NewReadiness(func(ctx context.Context) error {
		_, err := follow.Bounds(ctx, follow.Config{Log: topic})
		return err
	})
	if err := r.Ready(); err != nil {
		t.Errorf("with Kafka: %v", err)
	}
	topic.Fail(stream.ErrAway)
	r.timeout = time.Millisecond // any wait is too short
	for range maxFailures {
		if err := r.err; err != nil {
			t.Errorf("unready too early: %v", err)
		}
		r.at = r.at.Add(-probeEvery) // as after a while
		_ = r.Ready()                // the last one counts
	}
	if err := r.Ready(); err == nil {
		t.Error("ready without Kafka")
	}
}

func TestReadinessIsAskedForOnceAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		answers := []bool{false, true, false, false, true, false, false, false, false, true} // to consecutive probes
		asked := 0
		r := NewReadiness(func(ctx context.Context) error {
			if asked++; answers[asked-1] {
				return nil
			}
			<-ctx.Done() // a Kafka that hangs
			return down
		})
		// The first no counts, a yes always does, and the third no in a row.
		for i, want := range []error{down, nil, nil, nil, nil, nil, nil, down, down, nil} {
			start := time.Now()
			for range 2 { // the second one does not ask
				if err := r.Ready(); err != want {
					t.Errorf("asking %d: %v, want %v", i, err, want)
				}
			}
			if took := time.Since(start); took > probeTimeout {
				t.Errorf("asking %d: it took %v", i, took)
			}
			if asked != i+1 {
				t.Errorf("asked %d times, want %d", asked, i+1)
			}
			<-time.After(probeEvery)
		}
	})
}
