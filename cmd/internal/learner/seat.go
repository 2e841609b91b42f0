package learner

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A seat says whether the group has given the order log to this learner. The group's goroutine
// holds it, the model's asks. Its methods are safe for concurrent use.
type seat struct {
	mu      sync.Mutex
	held    bool
	working bool       // the model is active
	asked   *departure // nil: nobody waits for the model to begin with one
}

// A departure is the group's request that the active model is saved and becomes a standby.
type departure struct {
	ctx   context.Context // bounds publishing and saving
	begun chan struct{}   // closed when the model begins with it
	done  chan error      // has room for the result
}

// errNoTime: the model waits for records, of a broker that is dead perhaps.
var errNoTime = errors.New("the active model had no time to be saved")

// hold holds the seat until ctx ends, and then until the active model is saved, or has not
// begun with that in drain.
func (s *seat) hold(ctx context.Context, drain time.Duration) error {
	s.mu.Lock()
	s.held = true
	s.mu.Unlock()
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	d := s.leave(closing)
	if d == nil {
		return nil
	}
	select {
	case <-d.begun:
	case <-closing.Done():
		s.mu.Lock()
		waits := s.asked == d
		if waits {
			s.asked = nil
		}
		s.mu.Unlock()
		if waits {
			return errNoTime
		}
	}
	return <-d.done
}

// leave gives up the seat. It returns the request that an active model answers.
func (s *seat) leave(ctx context.Context) *departure {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	if !s.working {
		return nil
	}
	s.asked = &departure{ctx: ctx, begun: make(chan struct{}), done: make(chan error, 1)}
	return s.asked
}

// isHeld reports whether the group has given the order log to this learner.
func (s *seat) isHeld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// isWorking reports whether the model is active.
func (s *seat) isWorking() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working
}

// begin notes that the model is active, and returns false if the seat was given up.
func (s *seat) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = s.held
	return s.held
}

// departs returns the request that the model is to begin with, or nil without one.
func (s *seat) departs() *departure {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.asked
	if d != nil {
		s.asked = nil
		close(d.begun)
	}
	return d
}

// end notes that the model is not active any more. Who waits for it gets err.
func (s *seat) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = false
	if d := s.asked; d != nil {
		s.asked = nil
		close(d.begun)
		d.done <- err
	}
}
