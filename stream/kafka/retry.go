package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

const (
	// gracePeriod is how long we doubt "no such topic" and "your position is beyond
	// the log's end", which are wrong for a moment after a restart or a creation. A
	// broker started again after kill −9 gives them for less than 0.4 s (Kafka 4.3.1).
	gracePeriod = 2 * time.Second

	// Pauses between attempts: no burden for a broker that loads its logs, and shorter
	// than a restart.
	minPause, maxPause = 50 * time.Millisecond, 500 * time.Millisecond

	// A condition that lasts is logged after logAfter and then every logEvery.
	logAfter, logEvery = time.Second, 10 * time.Second
)

// retry calls attempt until it succeeds, fails for good as [outage] says, or ctx ends.
// The client is that of one topic. The error of an ended ctx names the last failure.
func retry(ctx context.Context, cfg *Config, client *kafkago.Client, what string,
	attempt func(context.Context) error) error {
	var (
		failing outage
		last    error
	)
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := attempt(ctx)
		if err == nil {
			failing.over(cfg, "doing", what)
			return struct{}{}, nil
		}
		if ctx.Err() != nil {
			return struct{}{}, err
		}
		err, final := failing.failed(ctx, cfg, client, err, "kafka: trying again", "doing", what)
		if final != nil {
			return struct{}{}, backoff.Permanent(final)
		}
		if ctx.Err() == nil {
			last = err
		}
		return struct{}{}, err
	}, backoff.WithBackOff(newPause()), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && last != nil:
		return fmt.Errorf("%s: %w (last failure: %v)", what, context.Cause(ctx), last)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// invalidateMetadata makes a client fetch the metadata again, if err says that it may
// be out of date.
func invalidateMetadata(client *kafkago.Client, err error) {
	if slices.ContainsFunc([]error{
		protocol.ErrNoTopic, protocol.ErrNoPartition, protocol.ErrNoLeader,
		kafkago.UnknownTopicOrPartition, kafkago.LeaderNotAvailable, kafkago.NotLeaderForPartition,
		kafkago.BrokerNotAvailable, kafkago.ReplicaNotAvailable, kafkago.FencedLeaderEpoch, kafkago.UnknownLeaderEpoch,
	}, func(outdated error) bool { return errors.Is(err, outdated) }) {
		closeIdle(client) // the transport has no other way
	}
}

func newPause() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = minPause, maxPause, 2
	b.Reset()
	return b
}

// wait pauses. It returns early when ctx ends.
func wait(ctx context.Context, pause backoff.BackOff) {
	t := time.NewTimer(pause.NextBackOff())
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
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

func (g *grace) reset() { g.began = time.Time{} }

// A rateLimiter limits the log lines about a condition that lasts: none in the first
// logAfter, in which elections end, then one every logEvery. One goroutine uses it.
type rateLimiter struct {
	began time.Time // of the condition; zero: it does not hold
	last  time.Time // of the last line
	times int       // calls of allow since the last line
}

// allow records that the condition holds. It reports whether to log it, and how often
// it was recorded since the last line.
func (l *rateLimiter) allow() (times int, ok bool) {
	now := time.Now()
	if l.began.IsZero() {
		l.began = now
	}
	l.times++
	if now.Sub(l.began) < logAfter || now.Sub(l.last) < logEvery {
		return 0, false
	}
	times, l.times, l.last = l.times, 0, now
	return times, true
}

// warn logs the condition if it is time, with how often it held since the last line.
func (l *rateLimiter) warn(log *slog.Logger, message string, attributes ...any) {
	if times, ok := l.allow(); ok {
		log.Warn(message, append(attributes, "times", times)...)
	}
}
