package learner

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/stream"
)

// Every transition of the table in outbox's comment.
func TestOutboxTransitions(t *testing.T) {
	down, final := errors.New("down"), stream.ErrAlerts
	for _, c := range []struct {
		name    string
		pending int           // added before
		failed  bool          // and an attempt has failed
		wait    time.Duration // after it
		answer  error
		want    outboxState
		tried   bool
		bound   time.Duration // of the attempt; 0: none
		err     error
	}{
		{"empty", 0, false, 0, nil, outboxEmpty, false, 0, nil},
		{"waiting, success", 2, false, 0, nil, outboxEmpty, true, alertTimeout, nil},
		{"waiting, failure", 2, false, 0, down, outboxRetrying, true, alertTimeout, nil},
		{"waiting, final failure", 2, false, 0, final, outboxWaiting, true, alertTimeout, final},
		{"retrying, before its time", 2, true, 0, nil, outboxRetrying, false, 0, nil},
		{"retrying, success", 2, true, time.Minute, nil, outboxEmpty, true, alertRetryTimeout, nil},
		{"retrying, failure", 2, true, time.Minute, down, outboxRetrying, true, alertRetryTimeout, nil},
		{"full, success", maxAlerts, false, 0, nil, outboxEmpty, true, 0, nil},
		{"full, failure", maxAlerts, false, 0, down, outboxFull, true, 0, nil},
		{"full, success before its time", maxAlerts, true, 0, nil, outboxEmpty, true, 0, nil},
		{"full, final failure", maxAlerts, true, 0, final, outboxFull, true, 0, final},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []context.Context
				answer := down
				o := outbox{log: slog.New(slog.DiscardHandler), publisher: publishFunc(func(ctx context.Context, _ ...stream.Alert) error {
					asked = append(asked, ctx)
					return answer
				})}
				if c.failed {
					o.add(stream.Alert{})
					if _, err := o.publish(t.Context()); err != nil || o.state() != outboxRetrying {
						t.Fatalf("state %d, %v; want %d", o.state(), err, outboxRetrying)
					}
				}
				for len(o.pending) < c.pending {
					o.add(stream.Alert{})
				}
				<-time.After(c.wait)
				asked, answer = nil, c.answer
				start := time.Now()
				tried, err := o.publish(t.Context())
				if tried != c.tried || !errors.Is(err, c.err) || o.state() != c.want {
					t.Errorf("tried %v, error %v, state %d; want %v, %v, %d", tried, err, o.state(), c.tried, c.err, c.want)
				}
				if len(asked) == 0 {
					return
				}
				deadline, bounded := asked[0].Deadline()
				if bounded != (c.bound > 0) || bounded && !deadline.Equal(start.Add(c.bound)) {
					t.Errorf("the attempt ends at %v after %v, want after %v", deadline, deadline.Sub(start), c.bound)
				}
			})
		})
	}
}
