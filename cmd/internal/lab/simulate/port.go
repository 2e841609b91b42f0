package simulate

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A node is a process that can be killed, and be cut off from a port.
type node struct {
	name  string
	world *World
	dead  atomic.Bool // nothing that it does reaches anybody

	mu    sync.Mutex
	until map[string]time.Time // the node is cut off from a port until then
	clock time.Duration        // by which its wall clock is wrong
}

var (
	errAway = errors.New("no answer")
	errDead = errors.New("this process is dead")
)

// stalled is how long a call takes that stalls.
const stalled = 30 * time.Second

// draw returns the numbers of one call, and its key.
func (n *node) draw(port, method string) (key string, at float64, delays [2]time.Duration, fate float64) {
	w := n.world
	name := n.name + " " + port + " " + method
	w.mu.Lock()
	w.calls[name]++
	key = name + " " + strconv.Itoa(w.calls[name])
	w.mu.Unlock()
	r := random(w.plan.Seed, key)
	at = r.Float64()
	for i := range delays {
		delays[i] = 20*time.Microsecond + time.Duration(r.ExpFloat64()*float64(300*time.Microsecond))
	}
	return key, at, delays, r.Float64()
}

// cutOff returns until when the node is cut off from a port.
func (n *node) cutOff(port string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.until[port]
}

// call makes a call of a port, and notes it. do must not wait. What the plan says of the call happens to
// it: errAway and errDead are all that call adds to do's errors.
func (n *node) call(ctx context.Context, port, method string, do func() error) error {
	key, at, delays, fate := n.draw(port, method)
	made := call{node: n.name, key: key, at: time.Since(n.world.started)}
	made.err = n.attempt(ctx, port, key, at, delays, fate, do)
	made.took = time.Since(n.world.started) - made.at
	n.world.note(made)
	return made.err
}

func (n *node) attempt(ctx context.Context, port, key string, at float64, delays [2]time.Duration, fate float64,
	do func() error) error {
	w := n.world
	if n.dead.Load() {
		return errDead
	}
	if !w.healed.Load() {
		rates := w.plan.Rates
		switch {
		case fate < rates.Stall:
			delays[int(at*2)] += stalled
			w.tell(key, "stalls")
		case fate < rates.Stall+rates.Slow:
			delays[int(at*2)] += time.Duration(at * float64(time.Second))
		}
	}
	if err := sleep(ctx, delays[0]); err != nil {
		return errors.Join(errAway, err)
	}
	if n.dead.Load() {
		return errDead
	}
	if until := n.cutOff(port); time.Now().Before(until) {
		w.effect(CutOff)
		_ = sleep(ctx, min(time.Until(until), 5*time.Second))
		return errors.Join(errAway, ctx.Err())
	}
	if w.isAway(port) {
		w.effect(Away)
		return errAway
	}
	if !w.healed.Load() && at < w.plan.Rates.Fail {
		w.tell(key, "fails")
		return errAway
	}
	err := do()
	if err := sleep(ctx, delays[1]); err != nil {
		return errors.Join(errAway, err)
	}
	if n.dead.Load() {
		return errDead
	}
	if err == nil && !w.healed.Load() && at > 1-w.plan.Rates.Lost {
		w.tell(key, "is done, and its answer is lost")
		return errAway
	}
	return err
}

// sleep waits, and returns why ctx ended if it ends before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
