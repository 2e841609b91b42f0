package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// askFirst is how often a shadow asks whether the first model is there.
const askFirst = time.Second

// shadowOrder returns the order log that a shadow follows, which the first model's learner
// makes; nil if each partition has a model of its own. A shadow decides nothing about the
// layout, so it waits until the first model's is known, and says for what.
func (s *Set) shadowOrder(ctx context.Context, reach settings.Redis, brokers kafka.Config) (*learner.Order, error) {
	defer s.notice.waitFor(ctx, "the learner of "+s.EventsOf)()
	tick := time.NewTicker(askFirst)
	defer tick.Stop()
	said := ""
	for {
		o, missing, err := s.firstOrder(ctx, reach, brokers)
		if err != nil || missing == "" {
			return o, err
		}
		if missing != said {
			said = missing
			s.log.Info("waiting for the learner of "+s.EventsOf, "shadow_of", s.EventsOf, "missing", missing)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the learner of %s, which must run before its shadow: missing is %s: %w", s.EventsOf, missing, context.Cause(ctx))
		}
	}
}

// firstOrder is shadowOrder once. It returns what is missing until the first model's layout is
// known.
func (s *Set) firstOrder(ctx context.Context, reach settings.Redis, brokers kafka.Config) (o *learner.Order, missing string, err error) {
	partitions, err := kafka.Partitions(ctx, brokers, s.Topic())
	switch {
	case err != nil:
		return nil, "", err
	case partitions == 0:
		return nil, "the topic " + s.Topic(), nil
	}
	layout, err := s.otherLayout(ctx, reach)
	if errors.Is(err, state.ErrTransient) {
		return nil, "redis", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("look for model %s in redis: %w", s.EventsOf, err)
	}
	if layout == "" {
		if layout, err = s.readLayout(ctx, brokers, partitions); err != nil {
			return nil, "", err
		}
	}
	switch layout {
	case "":
		return nil, "a saved version of model " + s.EventsOf, nil
	case settings.ModelEach:
		return nil, "", nil
	}
	topic := order.Topic(s.EventsOf)
	if n, err := kafka.Partitions(ctx, brokers, topic); err != nil {
		return nil, "", err
	} else if n == 0 {
		return nil, "the topic " + topic, nil
	}
	return &learner.Order{Topic: topic, Writer: writer()}, "", nil
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
