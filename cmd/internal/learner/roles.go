package learner

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/kafka"
)

// A learner of an ordered model has one of two roles. Both follow the order log and learn what
// it names.
//
//	standby ──the group gives it the order log, and it is past the saved model──> active
//	   ^                                                                            │
//	   └──the group takes it back, or another learner takes the epoch───────────────┘
//
// The active one holds the epoch, saves, publishes, and proposes what comes next. That of a
// shadow proposes nothing: it follows the order that the first model's learner makes. A standby
// keeps what it would publish until a save covers it. When it becomes active it publishes
// that, under the same ids, and learns on: it loads nothing.
//
// A standby must not go on with its model where an operator has put another one into the store.
// So it compares what is saved with where it has been itself: see judge.

// rolePoll is how soon a model without records notices what the group says.
const rolePoll = 100 * time.Millisecond

// retakeAfter is the least time between two attempts to become active.
const retakeAfter = 100 * time.Millisecond

// overdueAfter is how long a standby that is to be active may need to pass the saved model.
const overdueAfter = 10 * time.Second

// A head is the newest checkpoint of the store, without the model's bytes.
type head struct {
	*state.Manifest
	version int64
}

// A passage remembers where the model stood lately: behind each of the last 131,072 records of
// the order log. An event needs 0.2 to 0.6 of them. So that is 27 s at 8,000 events/s, and active
// learners save every few seconds. A standby loads a save that it sees later.
type passage [1 << 17]struct {
	next   int64
	chain  [32]byte
	events uint64
}

func (p *passage) note(at state.Position, events uint64) {
	entry := &p[at.Next%int64(len(p))]
	entry.next, entry.chain, entry.events = at.Next, at.Chain, events
}

// has reports whether the model was at a position, or at its beginning.
func (p *passage) has(at state.Position, events uint64) bool {
	entry := &p[at.Next%int64(len(p))]
	return entry.next == at.Next && entry.chain == at.Chain && entry.events == events
}

// changeRole changes the role if it is time.
func (o *orderedModel) changeRole(ctx context.Context) error {
	if d := o.l.seat.departs(); d != nil {
		err := o.depart(d.ctx)
		d.done <- err
		if errors.Is(err, kafka.ErrReplaced) || errors.Is(err, kafka.ErrBehind) {
			return err
		}
		return nil
	}
	held := o.l.seat.isHeld()
	switch {
	case o.active && !held: // nobody waits for a save
		o.standBy()
	case o.active:
	case held && o.state.Log.Next < o.awaits:
		return o.overdue(time.Now())
	case held && !time.Now().Before(o.again):
		return o.activate(ctx)
	default:
		if saved := o.seen.Swap(nil); saved != nil {
			return o.judge(saved)
		}
	}
	return nil
}

// activate makes a standby the active learner, if it can: it has passed the saved model, and
// that is its own. Otherwise it tries again later, or returns kafka.ErrReload.
func (o *orderedModel) activate(ctx context.Context) error {
	began := time.Now()
	defer func() { o.again = time.Now().Add(max(retakeAfter, time.Since(began))) }() // a store that is slow to fail must not keep it from following
	if ready, err := o.compare(ctx); err != nil || !ready {
		return o.later("look at the saved model", err)
	}
	epoch, err := o.l.cfg.Store.Take(ctx)
	if err != nil {
		return o.later("take the model", err)
	}
	// From here on nobody else saves. Somebody may have saved before.
	if ready, err := o.compare(ctx); err != nil || !ready {
		return o.later("look at the saved model", err)
	}
	if !o.kept.whole() {
		return fmt.Errorf("%w: a standby could not keep all that is to be published", kafka.ErrReload)
	}
	if !o.l.seat.begin() {
		return nil
	}
	o.epoch, o.writerEpoch = epoch, epoch
	o.lost, o.active, o.standby = false, true, false
	o.seen.Store(nil)
	o.lastSave = began.Add(-o.l.cfg.SaveEvery) // soon: so two learners that take the model from each other both come on
	if n := o.kept.forgotten; n > 0 {
		o.log.Warn("the state was long not saved: a standby could not keep all predictions, and some events have none", "predictions", n)
	}
	kept, predicted := o.kept.take()
	o.predicted = append(o.predicted, predicted...)
	o.log.Info("active: this learner orders and saves the model", "epoch", epoch, "events", o.model.Events(),
		"next_offset", o.position.Next, "saved_next_offset", o.status.SavedEnd, "kept", len(kept))
	o.unsaved, o.sinceCopy, o.unsavedSince = false, time.Time{}, time.Time{}
	if o.position.Next > o.status.SavedEnd {
		o.noteUnsaved(time.Now)
	}
	o.publishKept(kept)
	o.l.handedOn(o.state.Places)
	if o.l.cfg.Order.Append != nil {
		o.startProposing(began)
	}
	return o.publishLetters(ctx)
}

// overdue returns kafka.ErrReload if this learner is to be active and does not come to where the
// saved model is. It loads that one then. If the order log does not reach so far, that says so.
func (o *orderedModel) overdue(now time.Time) error {
	if o.overdueFor != o.awaits {
		o.overdueFor, o.overdueAt = o.awaits, now.Add(overdueAfter)
	}
	if now.Before(o.overdueAt) {
		return nil
	}
	return fmt.Errorf("%w: the saved model stands at %d of the order log, and this one has come to %d in %v", kafka.ErrReload, o.awaits, o.state.Log.Next, overdueAfter)
}

// later returns nil for what may pass, and logs it once.
func (o *orderedModel) later(what string, err error) error {
	if err == nil || !errors.Is(err, state.ErrTransient) {
		o.waiting = false
		return err
	}
	if !o.waiting {
		o.waiting = true
		o.log.Warn("the state cannot be reached: trying again", "to", what, "error", err)
	}
	return nil
}

// compare reads what is saved, judges it, and reports whether the model has passed it.
func (o *orderedModel) compare(ctx context.Context) (passed bool, err error) {
	saved, err := o.look(ctx)
	if err == nil {
		err = o.judge(saved)
	}
	return o.state.Log.Next >= o.awaits, err
}

// look returns what is saved; its manifest is nil if nothing is. If none can be read, loading
// the model says what to do.
func (o *orderedModel) look(ctx context.Context) (*head, error) {
	m, version, err := o.l.cfg.Store.Manifest(ctx, state.Head)
	switch {
	case errors.Is(err, state.ErrNone):
		return &head{}, nil
	case errors.Is(err, state.ErrCorrupt):
		return nil, fmt.Errorf("%w: %w", kafka.ErrReload, err)
	}
	return &head{m, version}, err
}

// watch looks at what is saved every SaveEvery, while the learner is a standby.
func (o *orderedModel) watch() {
	tick := time.NewTicker(o.l.cfg.SaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-o.running.Done():
			return
		}
		if o.l.seat.isWorking() {
			continue
		}
		saved, err := o.look(o.running)
		switch {
		case err == nil:
			o.seen.Store(saved)
		case errors.Is(err, kafka.ErrReload):
			o.seen.Store(&head{&state.Manifest{}, -1}) // judge refuses it
		}
	}
}

// judge notes what is saved, or returns kafka.ErrReload if it is not the model's own:
//
//	the checkpoint that the model went on from, or was judged last     own
//	another lineage, configuration, numerics or layout                 not
//	further on in the order log                                        not known until it is passed
//	where the model has been: the same chain of the order log and
//	as many events                                                     own, else not
//	before what it remembers                                           not
//
// A model is a pure function of its logs, its configuration and what its lineage says. So one
// that is not told apart here has the same bytes.
//
// While learners adopt a configuration one after the other, a standby that has adopted it loads
// each save of an active one that has not. That ends with the last learner of the old one.
func (o *orderedModel) judge(saved *head) error {
	if saved.Manifest == nil {
		o.awaits = 0
		return nil
	}
	if saved.version != o.judged || !saved.Saved.Equal(o.judgedAt) {
		ahead := saved.Position.Next > o.state.Log.Next
		if !o.sameKind(saved.Manifest) || !ahead && !o.passed.has(saved.Position, saved.Events) {
			return fmt.Errorf("%w: version %d of the model is not what this learner has learnt: an operator has put it there, or it is an old one", kafka.ErrReload, saved.version)
		}
	}
	if o.awaits = saved.Position.Next; o.awaits > o.state.Log.Next {
		return nil
	}
	o.judged, o.judgedAt = saved.version, saved.Saved
	o.status.Version, o.status.SHA256 = saved.version, saved.Model
	o.status.SavedEnd, o.status.SavedEvents, o.status.Saved = saved.Position.Next, saved.Events, saved.Saved
	o.kept.trim(saved.Position.Next)
	var at sequencer.State
	if at.UnmarshalBinary(saved.Order) == nil {
		o.l.handedOn(at.Places) // by the one that saved
	}
	return nil
}

// sameKind reports whether a checkpoint is of a model with this one's configuration and
// history.
func (o *orderedModel) sameKind(m *state.Manifest) bool {
	var at sequencer.State
	if m.Schema != schema || m.Numerics != o.model.Numerics() || at.UnmarshalBinary(m.Order) != nil || at.Lineage != o.state.Lineage {
		return false
	}
	if config, err := json.Marshal(o.model.Config()); err == nil && bytes.Equal(config, m.Config) {
		return true
	}
	var there model.Config
	return json.Unmarshal(m.Config, &there) == nil && len(o.model.Config().Differences(there)) == 0
}

// adoption returns the lineage of a model that has adopted another configuration here.
func adoption(s *sequencer.State, cfg model.Config) ([32]byte, error) {
	config, err := json.Marshal(cfg)
	if err != nil {
		return [32]byte{}, err
	}
	h := sha256.New()
	h.Write(s.Lineage[:])
	h.Write(s.Log.Chain[:])
	h.Write(config)
	return [32]byte(h.Sum(nil)), nil
}

// publishKept hands on what was kept as a standby.
func (o *orderedModel) publishKept(kept []kept) {
	for i := range kept {
		k := &kept[i]
		switch {
		case k.letter != nil:
			o.letters = append(o.letters, *k.letter)
		case k.alert != nil:
			o.outbox.add(*k.alert)
			if !k.said {
				o.l.cfg.Announce(k.alert)
				o.l.cfg.Metrics.alert(k.alert)
			}
		case k.label != nil:
			o.l.cfg.Answered.Labelled(k.label.identity, k.label.source, k.label.label, k.label.at)
		}
	}
}

// keep keeps what the last record of the order log would have published.
func (o *orderedModel) keep() {
	for i := range o.letters {
		letter := o.letters[i]
		o.kept.add(kept{next: o.state.Log.Next, letter: &letter})
	}
	o.letters = o.letters[:0]
	for _, k := range o.withheld {
		k.next = o.state.Log.Next
		o.kept.add(k)
	}
	o.withheld = o.withheld[:0]
	o.kept.predict(o.state.Log.Next, o.predicted)
	o.predicted = o.predicted[:0]
}

// depart publishes and saves, and makes the active learner a standby.
func (o *orderedModel) depart(ctx context.Context) error {
	defer o.standBy()
	o.stopProposing()
	switch err := o.confirm(ctx); {
	case errors.Is(err, kafka.ErrUnconfirmed):
		o.log.Debug("saving what is not confirmed", "error", err)
	case err != nil:
		return err
	}
	return o.finish(ctx)
}

// standBy makes the active learner a standby. It keeps the model, and what is not published.
func (o *orderedModel) standBy() {
	o.stopProposing()
	if s := o.partitionModel.running; s != nil && s.ended() {
		_ = o.takeIn() // an error has no consequence any more
	}
	o.abandon()
	if o.status.Version != 0 {
		o.judged, o.judgedAt = o.status.Version, o.status.Saved // its own last save
	}
	for _, a := range o.outbox.pending {
		o.withheld = append(o.withheld, kept{alert: &a, said: true})
	}
	o.outbox = outbox{publisher: o.outbox.publisher, log: o.log}
	o.active, o.standby = false, true
	o.keep()
	o.l.seat.end(nil)
	o.log.Info("standby: this learner follows the model", "events", o.model.Events(), "next_offset", o.position.Next, "kept", o.kept.len())
}

// fenced makes the active learner a standby because another one has the epoch, or has saved
// further. While the group says that this one is active, it takes the model again later.
func (o *orderedModel) fenced(err error) {
	o.log.Warn("lost the model's state to another learner: standing by", "error", err)
	o.standBy()
	every := o.l.cfg.SaveEvery
	o.again = time.Now().Add(every/2 + rand.N(every)) // two that both are active do not keep step
}

// runOrdered follows the order log, and takes part in the group that says who is active.
func (l *Learner) runOrdered(ctx context.Context) error {
	holding, release := context.WithCancelCause(ctx)
	defer release(nil)
	following, stop := context.WithCancel(context.WithoutCancel(ctx)) // it outlasts the seat: the model is saved before
	defer stop()
	cfg := l.cfg.Order.consumer(l.cfg.Consumer)
	followed := make(chan error, 1)
	go func() {
		err := kafka.Follow(following, cfg, 0, func(ctx context.Context, _ int) (kafka.Handler, error) {
			o, err := l.openOrdered(ctx)
			if err != nil {
				return nil, fmt.Errorf("model %s: %w", l.cfg.Name, err)
			}
			return o, nil
		})
		if l.halt != nil { // after another log the handler is dropped without Close
			l.halt()
		}
		release(err)
		followed <- err
	}()
	err := l.consumer.Hold(holding, func(ctx context.Context, _ int) error {
		err := l.seat.hold(ctx, l.cfg.Consumer.Drain)
		if l.stopping() && errors.Is(err, errNoTime) {
			return nil // Close saves
		}
		return err
	})
	stop()
	return errors.Join(err, <-followed)
}
