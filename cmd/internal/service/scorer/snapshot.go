package scorer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/algos/model"
	"hamlet/algos/trust"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/wire"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
)

// A snapshot is one version of a model as it was saved. It does not change while it answers, nor while anybody who has
// it from use has not left it: then a learner of this process may write over its tables. Any number of goroutines may
// ask it.
type snapshot struct {
	version int64 // of the checkpoint
	sha256  [sha256.Size]byte
	next    int64 // offset of its log
	model   *model.Model
	ref     stream.ModelRef
	info    stream.Info // without the fields that depend on the present time

	withdrawn bool     // promises are, because of an incident
	rulings   sync.Map // ruled → *ruling: at most one for each rule that this scorer has had meanwhile
	doubtful  bool     // an incident says so; see doubtful

	// Those that nobody uses. A sync.Pool would keep the model in memory for one more collection of garbage.
	predictors chan *model.Predictor

	users atomic.Int64  // questions that are answered from it, and those that find that another one answers
	given bool          // a learner of this process has handed the model over, and wants it back
	free  chan struct{} // has an element where users became 0
}

// use returns the snapshot that answers, nil before the first. It is not given back to the learner until leave.
func (c *follower) use() *snapshot {
	for {
		s := c.current()
		if s == nil {
			return nil
		}
		s.users.Add(1)
		if c.current() == s {
			return s
		}
		s.leave() // another one answers: whoever has seen that no user is left may have given it back
	}
}

func (s *snapshot) leave() {
	if s.users.Add(-1) == 0 {
		select {
		case s.free <- struct{}{}:
		default:
		}
	}
}

// unused waits until no question is answered from s, which does not answer any more, or until over. It reports whether
// that is so.
func (s *snapshot) unused(over <-chan time.Time) bool {
	for s.users.Load() != 0 {
		select {
		case <-s.free:
		case <-over:
			return false
		}
	}
	return true
}

// newSnapshot returns a snapshot of a checkpoint's model m. It restores the model if m is nil.
func newSnapshot(name string, version int64, c *state.Checkpoint, m *model.Model) (*snapshot, error) {
	given := m != nil
	if !given {
		var err error
		if m, err = model.Restore(c.Model); err != nil {
			return nil, fmt.Errorf("restore version %d: %w", version, err)
		}
	}
	s := &snapshot{
		version: version, sha256: c.ModelSHA256, next: c.Position.Next, model: m,
		predictors: make(chan *model.Predictor, runtime.GOMAXPROCS(0)),
		given:      given, free: make(chan struct{}, 1),
	}
	s.ref = stream.ModelRef{Name: name, SHA256: hex.EncodeToString(s.sha256[:]), Positions: []int64{s.next}}
	s.info = stream.Info{Model: s.ref, Events: c.Events, Saved: c.Saved, Numerics: c.Numerics, Sources: countSources(m)}
	for _, i := range m.Incidents() {
		s.info.Incidents = append(s.info.Incidents, wire.Incident(name, &i))
	}
	s.withdrawn = withdraws(s.info.Incidents)
	s.doubtful = doubtful(s.info.Incidents)
	return s, nil
}

// predictor returns a predictor that nobody uses. release gives it back.
func (s *snapshot) predictor() *model.Predictor {
	select {
	case p := <-s.predictors:
		return p
	default:
		return s.model.NewPredictor()
	}
}

func (s *snapshot) release(p *model.Predictor) {
	select {
	case s.predictors <- p:
	default: // enough are kept
	}
}

// is reports whether s was made from a checkpoint that is stored as version.
func (s *snapshot) is(version int64, c *state.Checkpoint) bool {
	return s.version == version && s.next == c.Position.Next && s.info.Saved.Equal(c.Saved) && s.sha256 == c.ModelSHA256
}

// countSources counts the sources of a model.
func countSources(m *model.Model) (n stream.Sources) {
	known, anchors, muted, doubted := map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	for _, s := range m.Sources() {
		known[s.Key] = true
		switch {
		case s.Role == trust.Anchor:
			anchors[s.Key] = true
		case s.Role == trust.Muted:
			muted[s.Key] = true
		case s.Weight < 0.5:
			doubted[s.Key] = true
		}
	}
	return stream.Sources{Known: len(known), Anchors: len(anchors), Muted: len(muted), Doubted: len(doubted),
		LeftOut: len(m.Config().WithoutSources)}
}

// age returns the time since the checkpoint was saved, 0 if the learner's clock is
// ahead of ours.
func (s *snapshot) age(now time.Time) time.Duration { return max(0, now.Sub(s.info.Saved)) }

// A scoreConfig says what is computed beside a prediction.
type scoreConfig struct {
	explain  bool // reasons and words, in the verdict
	maxWords int  // 0: stream.MaxWords
	journal  bool // a note for the journal
}

// A journalNote is what the journal says of a message beside its verdict.
type journalNote struct {
	reasons   []string // names of the largest, at most stream.JournalReasons
	messageID string   // stream.MessageIDHash
}

// score answers the requests in order, with a note on each if cfg says so. It is an error if the
// model refuses a body or ctx ends.
func (s *snapshot) score(ctx context.Context, requests []*stream.Event, cfg scoreConfig, by *rules,
	now time.Time) ([]stream.Verdict, []journalNote, error) {
	ref := s.ref
	ref.AgeMS = s.age(now).Milliseconds()
	verdicts, tenants := make([]stream.Verdict, len(requests)), by.ofTenants()
	var notes []journalNote
	if cfg.journal {
		notes = make([]journalNote, len(requests))
	}
	for i, request := range requests {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		body, how, err := example.Body(request.Tenant, &request.Body)
		if err != nil {
			return nil, nil, err
		}
		prediction, all, words, err := s.predict(&body, cfg)
		if err != nil {
			return nil, nil, refusal(err, i, len(requests))
		}
		lo, hi := prediction.Interval(model.Z90)
		p := prediction.P()
		rule := by.of(s, tenants, request.Tenant)
		decision, margin := rule.decide(p, prediction.LogOdds, lo)
		verdicts[i] = stream.Verdict{
			ID: request.ID, P: p, LogOdds: prediction.LogOdds, Interval: [2]float64{lo, hi},
			Decision: decision, Margin: margin, Rule: rule.told, Words: words, Model: ref,
		}
		if cfg.explain {
			verdicts[i].Reasons = wire.Reasons(all)
		}
		if how.Mail != nil {
			verdicts[i].Identity = mail.Identity(request.Tenant, how.Mail)
		}
		if cfg.journal {
			for _, c := range all[:min(len(all), stream.JournalReasons)] {
				notes[i].reasons = append(notes[i].reasons, c.Name)
			}
			if how.Mail != nil {
				notes[i].messageID = stream.MessageIDHash(string(how.Mail.MessageID))
			}
		}
	}
	return verdicts, notes, nil
}

// refusal gives a refused body its code and, in a batch, the index of its request.
func refusal(err error, i, n int) error {
	var refused *model.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	text := refused.Error()
	if n > 1 {
		text = fmt.Sprintf("[%d]: %s", i, text)
	}
	return &questions.Refusal{Code: questions.BadRequest, Text: text}
}

// predict returns the model's prediction for a body, with the contributions of all inputs and
// with words if they are asked for. To ask for contributions costs some microseconds, and for
// words about as much as the prediction.
func (s *snapshot) predict(body *model.Body, cfg scoreConfig) (model.Prediction, []model.Contribution, []stream.Word,
	error) {
	p := s.predictor()
	defer s.release(p)
	switch {
	case cfg.explain:
		a, err := p.Attribute(body)
		return a.Prediction, a.Inputs, wire.Words(a.Words, cmp.Or(cfg.maxWords, stream.MaxWords)), err
	case cfg.journal:
		prediction, all, err := p.Explain(body)
		return prediction, all, nil, err
	}
	prediction, err := p.Predict(body)
	return prediction, nil, nil, err
}
