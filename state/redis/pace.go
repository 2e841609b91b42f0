package redis

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

const (
	// minLimit is what any request gets, however few bytes it moves. Redis answers in
	// milliseconds; a fork of a large server or a lost packet takes up to seconds.
	minLimit = 10 * time.Second
	// margin is how many times slower than measured a transfer may become while it
	// runs. Two clients that begin to share a link halve the speed of each; two more
	// halve it again.
	margin = 4
	// minMeasured is how many bytes a transfer must move to say something about speed.
	// Below, the time is that of the round trip.
	minMeasured = 64 << 10
)

// A pace is the measured speed of transfers in one direction. Their time limits follow
// it:
//
//	limit(n bytes) = max(minLimit, margin · n / speed)
//
// A transfer that meets its limit sets the speed so that the next one of this size
// gets twice the time. So at any speed some attempt succeeds. A server that hangs does
// not make the limits grow: Save and Load begin with small requests, whose limit is
// minLimit.
type pace struct {
	least time.Duration // what any request gets: minLimit, except in tests

	mu    sync.Mutex
	speed float64 // bytes a second; 0: not measured yet; only note writes it
}

// extra returns margin · n / speed, or 0 before the first measurement.
func (p *pace) extra(n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.speed == 0 {
		return 0
	}
	return time.Duration(margin * float64(n) / p.speed * float64(time.Second))
}

// limit returns how long a transfer of n bytes may take.
func (p *pace) limit(n int) time.Duration { return max(p.least, p.extra(n)) }

// window returns how many chunks one pipeline takes: about a second's, from 1 to
// pipelined; 1 before the first measurement.
func (p *pace) window() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(1, min(int(min(p.speed, 1<<40))/state.ChunkSize, pipelined))
}

// note takes in what a transfer of n bytes took. timedOut: it met its limit.
func (p *pace) note(n int, took time.Duration, timedOut bool) {
	if n < minMeasured {
		return
	}
	speed := float64(n) / max(took, time.Microsecond).Seconds()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case timedOut: // margin · n / speed is twice what it took
		if slower := speed * margin / 2; p.speed == 0 || slower < p.speed { // a dial's limit is shorter
			p.speed = slower
		}
	case p.speed == 0:
		p.speed = speed
	default:
		p.speed = (p.speed + speed) / 2
	}
}

// transfer executes a pipeline that moves about n bytes, under the limit of a pace. It
// returns the first error but redis.Nil and that of a key of another type.
func (s *Store) transfer(ctx context.Context, p *pace, n int, fill func(pipe redis.Pipeliner)) error {
	client := s.node(ctx)
	if limit := p.limit(n); limit != minLimit {
		client = client.WithTimeout(limit)
	}
	pipe := client.Pipeline()
	fill(pipe)
	start := time.Now()
	_, err := pipe.Exec(ctx)
	if errors.Is(err, redis.Nil) || otherType(err) { // the caller looks at each reply
		err = nil
	}
	var network net.Error
	timedOut := errors.As(err, &network) && network.Timeout() && ctx.Err() == nil
	if err == nil || timedOut {
		p.note(n, time.Since(start), timedOut)
	}
	return err
}

// grace returns how long Redis keeps n bytes that no kept version names: Grace, and
// what moving them may take.
func (s *Store) grace(n int) time.Duration { return s.cfg.Grace + s.writing.extra(n) }
