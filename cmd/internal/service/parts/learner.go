package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/predictions"
)

// OpenLearner returns the configuration of a learner of the model, whose logs, store and
// connections are open. Learn runs it.
func (s *Set) OpenLearner(ctx context.Context, f settings.Learner, topic settings.Topic, alerts stream.AlertPublisher,
	cfg model.Config) (learner.Config, error) {
	lc := learner.Config{
		Topic: s.Topic(), Name: s.model, Model: cfg, Writer: writer(), Store: s.Store, Alerts: alerts, Runner: s.Runner(),
		SaveEvery: f.SaveEvery, AdoptConfig: f.AdoptConfig,
		Metrics: learner.NewMetrics(s.Registry), Log: s.Log,
	}
	if s.Shadow {
		ask, err := s.promotion()
		if err != nil {
			return lc, err
		}
		lc.Shadow = &learner.Shadow{Of: s.EventsOf, Promotion: ask}
		if err := s.awaitTopic(ctx); err != nil {
			return lc, err
		}
	}
	events, err := s.OpenLog(s.Topic())
	if err != nil {
		return lc, err
	}
	lc.Follow = follow.Topic(events, s.Logs)
	lc.Follow.AcceptGap, lc.Follow.AcceptLostBeginning = f.AcceptGap, f.AcceptLostBeginning
	if lc.Letters, err = s.OpenLog(stream.DeadLetterTopic); err != nil {
		return lc, err
	}
	if lc.Receipts, err = s.OpenLog(stream.ReceiptTopic); err != nil {
		return lc, err
	}
	if !f.NoPredictions {
		if err := topic.EnsurePredictions(ctx, s.Logs, s.model); err != nil {
			return lc, err
		}
		if lc.Predictions, err = s.OpenLog(predictions.Topic(s.model)); err != nil {
			return lc, err
		}
	}
	if s.Shadow {
		return lc, nil
	}
	name, err := s.answersFor(ctx)
	if err != nil || f.Answered == 0 || s.NATS.NATS == "" {
		return lc, err
	}
	if s.answered, err = s.openAnswered(name, f.Answered); err == nil {
		lc.Answered = s.answered
	}
	return lc, err
}

// Learn returns the run of a learner of OpenLearner, and of what runs beside it.
func (s *Set) Learn(l *learner.Learner) func(context.Context) error { return s.answered.Beside(l.Run) }

// openAnswered returns what compares the answers of this model's scorers with labels. It does not wait for NATS.
func (s *Set) openAnswered(model string, remembered int) (*answered.Service, error) {
	conn, err := s.connection()
	if err != nil {
		return nil, err
	}
	j, err := nats.NewJournal(conn, nats.JournalConfig{
		Model: model, Labels: true, Log: s.Log,
	})
	if err != nil {
		return nil, err
	}
	follow := func(ctx context.Context, since time.Time, take func(*stream.JournalEntry)) error {
		return nats.FollowJournal(ctx, conn, model, since, take, func(err error) {
			s.Log.Warn("there are no figures of what was answered until this works", "error", err)
		})
	}
	return answered.NewService(model, follow, j.Append, remembered, s.Registry, s.Log), nil
}

// writer names this process to people who ask which learner is active.
func writer() string {
	host, err := os.Hostname()
	if err != nil {
		host = "learner"
	}
	return fmt.Sprintf("%.200s/%d", host, os.Getpid())
}

// askFirst is how often a shadow asks whether the first model's log is there.
const askFirst = time.Second

// awaitTopic waits for the topic of another model's events, which that model's learner or ingest
// makes, and says for what.
func (s *Set) awaitTopic(ctx context.Context) error {
	defer s.WaitFor(ctx, "the learner of "+s.EventsOf)()
	for said := false; ; said = true {
		partitions, err := s.Logs.Partitions(ctx, s.Topic())
		if err != nil || partitions > 0 {
			return err
		}
		if !said {
			s.Log.Info("waiting for the topic of "+s.EventsOf, "shadow_of", s.EventsOf, "topic", s.Topic())
		}
		if !clock.Sleep(ctx, askFirst) {
			return fmt.Errorf("wait for the topic %s, which the learner of %s makes: %w",
				s.Topic(), s.EventsOf, context.Cause(ctx))
		}
	}
}

// promotion returns what asks, which model answers in the place of the
// first.
func (s *Set) promotion() (func(context.Context) (state.Promotion, error), error) {
	first, err := s.Store.Beside(s.EventsOf)
	if err != nil {
		return nil, err
	}
	return first.Promotion, nil
}

// answersFor returns the model whose scorers answer from this one. It is the one whose events this one
// learns where this one was promoted in its place, and its learner was retired.
func (s *Set) answersFor(ctx context.Context) (string, error) {
	if s.EventsOf == "" {
		return s.model, nil
	}
	ask, err := s.promotion()
	if err != nil {
		return "", err
	}
	p, err := ask(ctx)
	if err != nil && !errors.Is(err, state.ErrNone) && !errors.Is(err, state.ErrCorrupt) {
		return "", err
	}
	if err != nil || p.Model != s.model {
		return s.model, nil
	}
	s.Log.Info("this model answers in the place of another, whose learner it replaces", "in_place_of", s.EventsOf)
	return s.EventsOf, nil
}
