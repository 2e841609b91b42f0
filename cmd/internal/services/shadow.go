package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream/kafka"
)

// askFirst is how often a shadow asks whether the first model's log is there.
const askFirst = time.Second

// awaitTopic waits for the topic of another model's events, which that model's learner or ingest
// makes, and says for what.
func (s *Set) awaitTopic(ctx context.Context, brokers kafka.Config) error {
	defer s.notice.waitFor(ctx, "the learner of "+s.EventsOf)()
	tick := time.NewTicker(askFirst)
	defer tick.Stop()
	for said := false; ; said = true {
		partitions, err := kafka.Partitions(ctx, brokers, s.Topic())
		if err != nil || partitions > 0 {
			return err
		}
		if !said {
			s.log.Info("waiting for the topic of "+s.EventsOf, "shadow_of", s.EventsOf, "topic", s.Topic())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the topic %s, which the learner of %s makes: %w", s.Topic(), s.EventsOf, context.Cause(ctx))
		}
	}
}

// Promotion returns what asks, for a shadow, which model answers in the place of the first. The
// store is the shadow's.
func (s *Set) Promotion(store *redis.Store) (func(context.Context) (state.Promotion, error), error) {
	first, err := store.Beside(s.EventsOf)
	if err != nil {
		return nil, err
	}
	return first.Promotion, nil
}

// FindHeir notes in Heir whether this learner is no shadow and its model was promoted in the
// place of the one whose events it learns: that one's learner was retired. Answers under that
// name come from this model, so its labels are theirs. The store is this model's.
func (s *Set) FindHeir(ctx context.Context, store *redis.Store) error {
	if s.EventsOf == "" || s.Shadow {
		return nil
	}
	ask, err := s.Promotion(store)
	if err != nil {
		return err
	}
	p, err := ask(ctx)
	if err != nil && !errors.Is(err, state.ErrNone) && !errors.Is(err, state.ErrCorrupt) {
		return err
	}
	if s.Heir = err == nil && p.Model == s.model; s.Heir {
		s.log.Info("this model answers in the place of another, whose learner it replaces", "in_place_of", s.EventsOf)
	}
	return nil
}
