package selflabel

import (
	"context"
	"errors"
	"sync"
	"time"

	"hamlet/cmd/internal/process/writebehind"
	"hamlet/cmd/internal/service/advice"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// teach brings answers that are due to the learner's log, until ctx ends.
func (s *Service) teach(ctx context.Context) {
	var (
		all   sync.WaitGroup
		slots = make(chan struct{}, publishers)
		pause = s.cfg.pause
	)
	defer all.Wait()
	for ctx.Err() == nil {
		began := time.Now()
		works := time.AfterFunc(patience, func() { s.health[taking].Note(nil) })
		err := s.cfg.Store.Receive(ctx, func(a *nats.WaitingAnswer) {
			s.health[taking].Note(nil)
			if s.putBack(a) {
				return
			}
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				s.publish(ctx, a)
			})
		})
		works.Stop()
		if err == nil || ctx.Err() != nil {
			return
		}
		s.health[taking].Note(advice.Add(err))
		if time.Since(began) > patience {
			pause = s.cfg.pause
		}
		pause = 2 * s.retry.Sleep(ctx, pause, err)
	}
}

// putBack puts back an answer that is not due, and drops a message that is no answer. It reports whether it did.
func (s *Service) putBack(a *nats.WaitingAnswer) bool {
	if a.Err != nil {
		s.cfg.Log.Warn("self-label: what waited is no answer; it is dropped", "error", a.Err)
		s.metrics.drop(droppedUnreadable)
		_ = a.Done()
		return true
	}
	left := time.Until(a.Stored.Add(s.cfg.After)) // no gateway's clock says when others learn
	if left > 0 {
		_ = a.Later(min(left, s.cfg.recheck)) // if the server does not hear it, it comes in two minutes
	}
	return left > 0
}

// publish teaches an answer. If that fails, the answer waits on.
func (s *Service) publish(ctx context.Context, a *nats.WaitingAnswer) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	err := s.cfg.Teacher.Publish(ctx, a.Event)
	if errors.Is(err, stream.ErrTooLarge) {
		s.metrics.drop(droppedTooLarge)
		_ = a.Done()
		return
	}
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) { // Run ends
			s.health[publishing].Note(err)
		}
		_ = a.Later(min(writebehind.LastPause, s.cfg.recheck))
		return
	}
	s.health[publishing].Note(nil)
	s.metrics.published.Inc()
	_ = a.Done() // or it comes again, and the model ignores it
}

// watch shows what waits, until ctx ends.
func (s *Service) watch(ctx context.Context) {
	const every = 15 * time.Second
	for {
		state, err := s.cfg.Store.State(ctx)
		if err == nil { // or writing says what is wrong
			s.metrics.show(state)
		}
		wait := time.NewTimer(every)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return
		}
	}
}
