package learner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hamlet/cmd/internal/process/clock"
	"hamlet/stream"
)

const (
	// maxAlerts bounds the alerts that a learner holds: a few megabytes.
	maxAlerts = 1000
	// alertTimeout bounds an attempt to publish while learning waits. An
	// acknowledgement takes one write to a disk.
	alertTimeout = 2 * time.Second
	// After a failure the next attempt may take alertRetryTimeout, or the pause
	// before it divided by alertPauseRatio if that is longer. So a server that is
	// down takes at most a sixteenth of the time once the pauses are long, and a slow
	// one gets the time that it needs.
	alertRetryTimeout = 500 * time.Millisecond
	alertPauseRatio   = 15
)

// An outbox holds a model's alerts until they are acknowledged. No save is made
// before: a save covers the events that raised them, so that after it nothing would
// publish them again. After a crash those events are read again and raise the same.
//
//	state     what holds                    an attempt to publish
//	─────────┼─────────────────────────────┼──────────────────────────────────────
//	empty     pending is empty              none
//	waiting   the last attempt succeeded    at once, for at most alertTimeout
//	retrying  the last attempt failed       after the pause; its length bounds the attempt
//	full      maxAlerts are pending         at once, without bound: learning stops
//
//	empty ──add──> waiting ──failure──> retrying ──add──> full
//	  ^               └──success──┐        │ success        │
//	  └───────────────────────────┴────────┴────────────────┘
type outbox struct {
	publisher stream.AlertPublisher // nil: nobody hears alerts, and none is pending
	log       *slog.Logger

	pending []stream.Alert              // in order; only add and flush write it
	pauses  *backoff.ExponentialBackOff // nil if the last attempt succeeded
	pause   time.Duration               // the last of pauses
	next    time.Time                   // retrying: no attempt before
}

type outboxState uint8

const (
	outboxEmpty outboxState = iota
	outboxWaiting
	outboxRetrying
	outboxFull
)

func (o *outbox) state() outboxState {
	switch {
	case len(o.pending) == 0:
		return outboxEmpty
	case len(o.pending) >= maxAlerts:
		return outboxFull
	case o.pauses != nil:
		return outboxRetrying
	}
	return outboxWaiting
}

func (o *outbox) add(a stream.Alert) {
	if o.publisher != nil {
		o.pending = append(o.pending, a)
	}
}

// publish makes an attempt to empty the outbox, if it is time for one, and reports
// whether it did. A failure that may pass is no error.
func (o *outbox) publish(ctx context.Context) (tried bool, err error) {
	attempt, cancel := ctx, context.CancelFunc(func() {})
	switch o.state() {
	case outboxEmpty:
		return false, nil
	case outboxWaiting:
		attempt, cancel = context.WithTimeout(ctx, alertTimeout)
	case outboxRetrying:
		if time.Now().Before(o.next) {
			return false, nil
		}
		attempt, cancel = context.WithTimeout(ctx, min(max(alertRetryTimeout, o.pause/alertPauseRatio), alertTimeout))
	case outboxFull:
		if o.pauses != nil {
			o.log.Warn("no more alerts can wait to be published: learning stops until they are out", "alerts", len(o.pending))
		}
	default:
		panic("learner: unknown state of an outbox")
	}
	defer cancel()
	err = o.flush(attempt)
	if err == nil || errors.Is(err, stream.ErrAlerts) || ctx.Err() != nil {
		return true, err
	}
	if o.pauses == nil {
		o.pauses = backoff.NewExponentialBackOff()
		o.pauses.RandomizationFactor = clock.Jitter(ctx)
		o.pauses.InitialInterval, o.pauses.MaxInterval, o.pauses.Multiplier = 250*time.Millisecond, 30*time.Second, 2
		o.pauses.Reset()
		o.log.Warn("alerts cannot be published: learning goes on, saving waits for them",
			"alerts", len(o.pending), "error", err)
	}
	o.pause = o.pauses.NextBackOff()
	o.next = time.Now().Add(o.pause)
	return true, nil
}

// flush publishes what is pending, trying until ctx ends.
func (o *outbox) flush(ctx context.Context) error {
	n := len(o.pending)
	for len(o.pending) > 0 {
		if err := o.publisher.Publish(ctx, o.pending[0]); err != nil {
			return fmt.Errorf("%d of %d alerts acknowledged: %w", n-len(o.pending), n, err)
		}
		o.pending = o.pending[1:]
	}
	if n > 0 && o.pauses != nil {
		o.pauses = nil
		o.log.Info("alerts are published again", "alerts", n)
	}
	o.pending = nil
	return nil
}
