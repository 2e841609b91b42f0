package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hamlet/cmd/internal/process/clock"
	"hamlet/stream"
)

const (
	// gracePeriod is how long we doubt "your position is beyond the log's end", which a Kafka
	// broker says for less than 0.4 s after kill −9 (4.3.1).
	gracePeriod = 2 * time.Second

	// Pauses between attempts: no burden for a log that recovers, and shorter than a restart.
	minPause, maxPause = 50 * time.Millisecond, 500 * time.Millisecond

	// A condition that lasts is logged after logAfter and then every logEvery.
	logAfter, logEvery = time.Second, 10 * time.Second
)

// retry calls attempt until it succeeds, fails with another error than [stream.ErrAway], has
// failed for MaxOutage, or ctx ends.
func retry(ctx context.Context, cfg *Config, what string, attempt func(context.Context) error) error {
	var failing outage
	for pause := newPause(ctx); ; wait(ctx, pause) {
		err := attempt(ctx)
		switch {
		case err == nil:
			failing.over(cfg)
			return nil
		case ctx.Err() != nil && failing.last != nil:
			return fmt.Errorf("%s: %w (last failure: %v)", what, context.Cause(ctx), failing.last)
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case !errors.Is(err, stream.ErrAway):
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := failing.failed(cfg, what, err); err != nil {
			return err
		}
	}
}

// An outage is the time since the log's first failure that no success has followed. Its zero
// value has not begun.
type outage struct {
	began  time.Time // the first failure; zero: none
	logged time.Time // the last line about it
	last   error
	times  int // failures since that line
}

// failed takes a failure, logs it from time to time, and returns ErrOutage after MaxOutage.
func (o *outage) failed(cfg *Config, what string, err error) error {
	now := time.Now()
	if o.began.IsZero() {
		o.began = now
	}
	o.last = err
	o.times++
	until := "it is stopped"
	if cfg.MaxOutage > 0 {
		if now.Sub(o.began) > cfg.MaxOutage {
			return fmt.Errorf("%w: nothing succeeded for %v, since %s (last failure: %w)",
				ErrOutage, cfg.MaxOutage, o.began.Format(time.RFC3339), err)
		}
		until = o.began.Add(cfg.MaxOutage).Format(time.RFC3339)
	}
	if now.Sub(o.began) >= logAfter && now.Sub(o.logged) >= logEvery {
		cfg.Logger.Warn("follow: trying again", "doing", what, "times", o.times, "error", err, "until", until)
		o.logged, o.times = now, 0
	}
	return nil
}

// over ends the outage after a success. It logs how long it was, if it was logged.
func (o *outage) over(cfg *Config) {
	if !o.logged.IsZero() {
		cfg.Logger.Info("follow: the log answers again", "after", time.Since(o.began).Round(time.Millisecond))
	}
	*o = outage{}
}

// A grace is the period in which an error is retried. Its zero value has not begun.
type grace struct{ began time.Time }

// over begins the period at its first call. Later calls report whether it has passed.
func (g *grace) over() bool {
	if g.began.IsZero() {
		g.began = time.Now()
		return false
	}
	return time.Since(g.began) > gracePeriod
}

func newPause(ctx context.Context) backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.RandomizationFactor = clock.Jitter(ctx)
	b.InitialInterval, b.MaxInterval, b.Multiplier = minPause, maxPause, 2
	b.Reset()
	return b
}

// wait pauses. It returns early when ctx ends.
func wait(ctx context.Context, pause backoff.BackOff) { clock.Sleep(ctx, pause.NextBackOff()) }
