// Package scorer is the loop of the scorer: it keeps the model of the newest
// checkpoint in memory and answers score requests from it, over NATS. It stores
// nothing; any number of scorers share the requests.
//
//	s := scorer.New(scorer.Config{Questions: service, Store: store, Model: "default", Log: log})
//	return s.Run(ctx)
//
// # Rules
//
//   - A served model is never locked and never changed. A loader builds the next one and
//     swaps one pointer.
//   - All verdicts of a request come from one model, which they name.
//   - Without the store, the last good model is served. Its age is in every verdict.
//   - Another model answers in the place of the scorer's own once an operator has promoted it,
//     and it is whole in memory.
//   - No answer waits for the journal of decisions, nor for mail to be kept.
package scorer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/strictness"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// A Config says what a scorer serves, and where.
type Config struct {
	Questions questions.Questions // about Model: where they come from
	Store     Store
	Model     string // default stream.DefaultName

	// The thresholds of the verdict, 0 < HamAt ≤ SpamAt ≤ 1: spam from SpamAt if the
	// interval lies above ½, ham up to HamAt, else unsure.
	SpamAt, HamAt float64

	// LoseAtMost is a budget in the place of SpamAt: of all ham no larger share is called spam. 0: none. Until
	// that can be promised the thresholds above decide, or nothing is called spam.
	LoseAtMost         strictness.Share
	NeverUntilPromised bool
	Tenants            Tenants // those with a rule of their own; nil: none. Run watches them

	PollInterval time.Duration // between polls of the store

	Journal      Journal // gets every decision; nil: none
	LogDecisions bool    // every decision goes to Log too

	Mail MailStore // gets the mail that is scored; nil: none

	Registerer prometheus.Registerer // nil: no metrics are shown
	Log        *slog.Logger          // nil: silent
}

// Defaults of a Config.
const (
	SpamAt, HamAt = 0.9, 0.5
	PollInterval  = 250 * time.Millisecond
)

// A Scorer answers from the newest good model.
type Scorer struct {
	cfg      Config
	rules    *rules
	follower *follower
	metrics  *metrics
	expected *expectations
	journal  *decisions  // nil: nobody wants decisions
	mail     *mailKeeper // nil: nobody wants mail

	handing chan struct{} // from Saved: a model was handed
	begun   chan struct{} // closed when it is taken in at once
	ended   chan struct{} // closed when nothing is taken in any more
}

// New returns a scorer.
func New(cfg Config) *Scorer {
	cfg.Model = cmp.Or(cfg.Model, stream.DefaultName)
	cfg.SpamAt = cmp.Or(cfg.SpamAt, SpamAt)
	cfg.HamAt = cmp.Or(cfg.HamAt, min(HamAt, cfg.SpamAt))
	cfg.PollInterval = cmp.Or(cfg.PollInterval, PollInterval)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s := &Scorer{
		cfg: cfg, rules: newRules(&cfg), metrics: newMetrics(cfg.Registerer),
		handing: make(chan struct{}), begun: make(chan struct{}), ended: make(chan struct{}),
	}
	s.expected = &expectations{doors: &s.metrics.doors}
	s.journal = newDecisions(cfg.Journal, cfg.LogDecisions, s.metrics, cfg.Log)
	s.mail = newMailKeeper(cfg.Mail, s.metrics, cfg.Log)
	s.follower = newFollower(cfg.Store, cfg.Model, s.metrics, cfg.Log)
	s.registerState(cfg.Registerer)
	return s
}

// Run serves until ctx ends, and then answers the requests that it has taken. It polls
// the store first, so that a new scorer does not refuse requests that others could
// answer.
func (s *Scorer) Run(ctx context.Context) error {
	s.follower.poll(ctx)
	if s.follower.current() == nil && ctx.Err() == nil {
		s.cfg.Log.Info("no model yet: requests are refused until the learner has saved one", "model", s.cfg.Model)
	}
	var beside sync.WaitGroup
	loading, stopLoading := context.WithCancel(ctx)
	beside.Go(func() { s.follow(loading) })
	if s.cfg.Tenants != nil {
		beside.Go(func() { _ = s.cfg.Tenants.Watch(loading) }) // it ends with loading
	}
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	beside.Go(func() { s.journal.run(keeping) })
	beside.Go(func() { s.mail.run(keeping) })
	err := s.cfg.Questions.Serve(ctx, s, s.metrics.observe)
	stopLoading()
	stopKeeping()
	beside.Wait()
	if err != nil {
		return fmt.Errorf("scorer of model %s: %w", s.cfg.Model, err)
	}
	return nil
}

// Listening is closed once requests reach the scorer, with or without a model.
func (s *Scorer) Listening() <-chan struct{} { return s.cfg.Questions.Ready() }

// Ready returns nil if the scorer can answer, even from an old model. Otherwise the
// error says what is missing.
func (s *Scorer) Ready() error {
	select {
	case <-s.cfg.Questions.Ready():
	default:
		return errors.New("not listening on nats yet")
	}
	if !s.cfg.Questions.Connected() {
		return errors.New("the nats server can't be reached")
	}
	if s.follower.current() == nil {
		return s.noModel()
	}
	return nil
}

// handWait is how long a learner waits at most until the scorer has taken in what it hands over.
const handWait = 2 * time.Second

// Saved takes a checkpoint of the scorer's own model that was saved as a version just now, or loaded, by a learner
// of this process, and the model, which learns nothing. It becomes the served model if the store names it: the
// files need not be read and verified. Saved returns an earlier model that nobody uses any more, or nil.
func (s *Scorer) Saved(c *state.Checkpoint, m *model.Model, version int64) (unused *model.Model) {
	h := &handed{checkpoint: c, model: m, version: version}
	select {
	case <-s.begun:
	default: // the next poll takes it
		s.follower.handed.Store(h)
		return nil
	}
	wait := time.NewTimer(handWait)
	defer wait.Stop()
	h.taken = make(chan *snapshot, 1)
	s.follower.handed.Store(h)
	select {
	case s.handing <- struct{}{}:
	case <-s.ended:
		return nil
	case <-wait.C: // it loads another
		return nil
	}
	select {
	case before := <-h.taken:
		if before != nil && before.given && before.unused(wait.C) {
			return before.model
		}
	case <-s.ended:
	case <-wait.C:
	}
	return nil
}

// follow polls the store, and at once when a learner hands over a model, until ctx ends.
func (s *Scorer) follow(ctx context.Context) {
	close(s.begun)
	defer close(s.ended)
	tick := time.NewTicker(s.cfg.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.follower.poll(ctx)
		case <-s.handing:
			s.follower.poll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Scorer) noModel() *questions.Refusal {
	text := "no model yet: the learner of " + s.cfg.Model + " has saved none"
	if s.follower.stale() {
		text = "no model yet: the state of " + s.cfg.Model + " can't be read; the scorer's log says why"
	}
	return &questions.Refusal{Code: questions.Unavailable, Text: text}
}

// Score implements [questions.Answerer]. All verdicts of a batch come from one model.
func (s *Scorer) Score(ctx context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
	current := s.follower.use()
	if current == nil {
		return nil, s.noModel()
	}
	defer current.leave()
	now := time.Now()
	cfg := scoreConfig{explain: explain, maxWords: questions.Words(ctx), journal: s.journal != nil}
	verdicts, notes, err := current.score(ctx, requests, cfg, s.rules, now)
	if err != nil {
		return nil, err
	}
	s.metrics.answered(verdicts)
	if explain && questions.Door(ctx) == Console {
		return verdicts, nil
	}
	s.expected.add(ctx, requests, verdicts, current.doubtful)
	s.journal.add(ctx, requests, verdicts, notes, now)
	s.mail.offer(ctx, requests, verdicts)
	return verdicts, nil
}

// Info implements [questions.Answerer].
func (s *Scorer) Info(context.Context) (stream.Info, error) {
	current := s.follower.use()
	if current == nil {
		return stream.Info{}, s.noModel()
	}
	defer current.leave()
	info := current.info
	info.Model.AgeMS = current.age(time.Now()).Milliseconds()
	info.Stale = s.follower.stale()
	info.Pinned, info.PinLost = s.follower.answering.Load().pinned()
	own := s.rules.of(current, nil, "")
	info.SpamAt, info.HamAt, info.Rule = own.spamAt, own.hamAt, own.told
	if p := s.follower.promotion.Load(); p != nil {
		info.Promoted = &stream.Promoted{For: s.cfg.Model, Since: p.Since, By: p.By}
	}
	return info, nil
}
