package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// OpenOrder returns the order in which one model learns all partitions, and makes its topic.
// It returns nil if each partition has a model of its own: as --models says, else as the models
// are that Redis keeps, else as they were while a consumer group read the topic. Where there
// was none, a topic of several partitions has one model.
func (s *Set) OpenOrder(ctx context.Context, f settings.Learner, topic settings.Topic, reach settings.Redis, store *redis.Store, brokers kafka.Config, producer *kafka.Producer) (*learner.Order, error) {
	defer s.notice.waitFor(ctx, "Kafka")()
	if s.Shadow {
		return s.shadowOrder(ctx, reach, brokers)
	}
	one := f.Models == settings.OneModel
	if f.Models == "" {
		partitions, err := kafka.Partitions(ctx, brokers, s.Topic())
		if err != nil {
			return nil, err
		}
		kept, err := s.keptLayout(ctx, reach, store)
		if err != nil {
			return nil, fmt.Errorf("look for models in redis: %w", err)
		}
		because := "the saved ones are such"
		if kept == "" && partitions > 1 {
			if kept, err = s.readLayout(ctx, brokers, partitions); err != nil {
				return nil, err
			}
			because = "its learners have read the topic so. Redis has lost the models: if they are to be one, start all learners with --models one"
		}
		one = kept == settings.OneModel || kept == "" && partitions > 1
		if partitions > 1 && !one {
			s.log.Info("each partition keeps a model of its own, because "+because+". One model of all is more accurate: "+
				"learn it from the log's beginning under a new name, with --model NAME --events-of "+cmp.Or(s.EventsOf, s.model)+" --models one", "partitions", partitions)
		}
	}
	if !one {
		return nil, nil
	}
	of := cmp.Or(s.EventsOf, s.model) // the same events are learnt in the same order
	if err := kafka.EnsureOrder(ctx, brokers, of, s.Topic(), topic.Replication); err != nil {
		return nil, err
	}
	return &learner.Order{Topic: order.Topic(of), Writer: writer(), Append: producer}, nil
}

// keptLayout says what the model in Redis is, or else the one whose events it learns; "" if
// Redis keeps neither.
func (s *Set) keptLayout(ctx context.Context, reach settings.Redis, store *redis.Store) (string, error) {
	kept, err := layoutOf(ctx, store)
	if kept != "" || err != nil || s.EventsOf == "" {
		return kept, err
	}
	if kept, err = s.otherLayout(ctx, reach); errors.Is(err, state.ErrCorrupt) { // this model does not need it
		return "", nil
	}
	return kept, err
}

// otherLayout says what the model in Redis is whose events this one learns, or "" without one.
func (s *Set) otherLayout(ctx context.Context, reach settings.Redis) (string, error) {
	cfg, err := reach.Config(s.EventsOf, s.log)
	if err != nil {
		return "", err
	}
	other, err := redis.New(cfg)
	if err != nil {
		return "", err
	}
	defer other.Close()
	return layoutOf(ctx, other)
}

// readLayout says of a model that Redis does not keep what it was, or else the one whose events
// it learns: the group of its learners has offsets of what they read. It returns "" if there are none.
func (s *Set) readLayout(ctx context.Context, brokers kafka.Config, partitions int) (string, error) {
	of := cmp.Or(s.EventsOf, s.model)
	for _, model := range slices.Compact([]string{s.model, of}) {
		if s.Shadow && model != of { // it has the layout of the other model, whatever it had
			continue
		}
		ordered, err := kafka.Committed(ctx, brokers, LearnerGroup(model, &learner.Order{}), order.Topic(of), 1)
		if err != nil || ordered {
			return settings.OneModel, err
		}
		each, err := kafka.Committed(ctx, brokers, LearnerGroup(model, nil), s.Topic(), partitions)
		if err != nil || each {
			return settings.ModelEach, err
		}
	}
	return "", nil
}

// layoutOf says what the model in Redis is, or "" without a model. One model of all partitions
// is saved as that of partition 0.
func layoutOf(ctx context.Context, store *redis.Store) (string, error) {
	partitions, err := store.Partitions(ctx)
	if err != nil || len(partitions) == 0 {
		return "", err
	}
	if slices.ContainsFunc(partitions, func(p int) bool { return p != 0 }) {
		return settings.ModelEach, nil
	}
	var inOrder []byte
	m, _, err := store.Manifest(ctx, state.Head)
	if err == nil {
		inOrder = m.Order
	} else if errors.Is(err, state.ErrCorrupt) { // the learner goes on from the version before
		var c *state.Checkpoint
		if c, _, err = store.Load(ctx, state.Head); err == nil {
			inOrder = c.Order
		}
	}
	switch {
	case errors.Is(err, state.ErrNone): // its keys were deleted, so that it is learnt again
		return "", nil
	case err != nil:
		return "", err
	case len(inOrder) > 0:
		return settings.OneModel, nil
	}
	return settings.ModelEach, nil
}

// LearnerGroup is the consumer group of a model's learners: a group reads one topic.
func LearnerGroup(model string, o *learner.Order) string {
	if o != nil {
		return "hamlet.learner." + model + ".order"
	}
	return "hamlet.learner." + model
}

// LearnerGroups are the groups that learners of a model may be in, unless --group names another.
func LearnerGroups(model string) []string {
	return []string{LearnerGroup(model, nil), LearnerGroup(model, &learner.Order{})}
}

// writer names this process in an order log.
func writer() string {
	host, err := os.Hostname()
	if err != nil {
		host = "learner"
	}
	return fmt.Sprintf("%.200s/%d", host, os.Getpid())
}
