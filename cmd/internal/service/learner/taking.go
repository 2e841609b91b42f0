package learner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
)

const (
	// phasePoll is how soon a learner without records notices what the watch has seen.
	phasePoll = 100 * time.Millisecond
	// overdueAfter is how long a standby may need to come to the saved model. It loads that then.
	overdueAfter = 10 * time.Second
	// retakeAfter is how long a learner that has lost the lease leaves it to the others: each change
	// of hands has the other standbys load the model. A longer pause would last until somebody
	// learns again where they are away.
	retakeAfter = 2 * time.Second
	// askAgainAfter is how long an active learner waits for a store that does not say whether it is.
	askAgainAfter = time.Second
)

// A lineage says who saved: under which epoch, and which writer. A fail-over of the store can
// give one epoch twice, so the number alone is not enough. Two models that went on from one save
// and read one log are equal, so what a lineage saves is equal to a model that follows it.
type lineage struct {
	epoch  int64
	writer string
}

// A deadline is a time until which something that has a name may last.
type deadline struct {
	of int64
	at time.Time
}

// changePhase changes the phase if it is time. It returns follow.ErrReload if the model must be
// loaded.
func (w *worker) changePhase(ctx context.Context) error {
	switch w.phase {
	case active:
		if err := w.l.watch.lost(); err != nil && !time.Now().Before(w.again) {
			return w.lost(ctx, err)
		}
		return nil
	case leaving:
		return nil
	case standby:
	default:
		panic("learner: a worker is " + w.phase.String() + " between two records")
	}
	seen := w.l.watch.sight()
	if seen.at.IsZero() {
		return nil // nothing has been seen since this learner was active
	}
	if err := w.judge(ctx, seen.head); err != nil {
		return err
	}
	if w.awaits > w.position.Next {
		return w.late(time.Now())
	}
	if !w.mayAcquire(&seen) {
		return w.lookForDamaged(ctx)
	}
	return w.acquire(ctx, seen.lease)
}

// lookForDamaged returns follow.ErrReload if the version that this standby found damaged can be loaded
// now: the active learner saves it again, and a store in files gives it the same number. A standby that
// went on from a version before keeps what the damaged one covers, and would step back if it became
// active.
func (w *worker) lookForDamaged(ctx context.Context) error {
	if w.damaged == 0 || time.Now().Before(w.looks) {
		return nil
	}
	loading, cancel := context.WithTimeout(ctx, overdueAfter)
	defer cancel()
	_, version, err := w.l.cfg.Store.Load(loading, state.Head)
	if err == nil && version >= w.damaged {
		return fmt.Errorf("%w: version %d of the model is no longer damaged", follow.ErrReload, version)
	}
	w.looks = time.Now().Add(checkEvery * w.l.cfg.SaveEvery)
	return nil
}

// mayAcquire reports whether a standby that has come to the saved model may take the lease.
func (w *worker) mayAcquire(seen *sight) bool {
	return seen.lapsed && !time.Now().Before(w.again) && time.Since(w.l.answered()) <= logSilent
}

// judge notes what is saved, or returns follow.ErrReload if it is not the model's own:
//
//	what was judged last, or what the model went on from   own
//	a save of the lineage that the model follows           own, once the model has come to it
//	one of it, of other records than the model's           not: the log has lost its end, and both have
//	                                                       learnt what stood, and what stands, in its place
//	a save of another one                                  not: an operator has put it there, or
//	                                                       another learner has taken over
//
// A model that steps back is judged against the save that it leaves: see stepback.go.
func (w *worker) judge(ctx context.Context, head *state.Heading) error {
	switch {
	case head == nil:
		w.awaits = 0
		return nil
	case *head == w.judged:
		return nil
	case w.backTo != 0, (lineage{head.Epoch, head.Writer}) != w.followed:
		return fmt.Errorf("%w: version %d of the model was saved by another learner, or an operator has put it there",
			follow.ErrReload, head.Version)
	}
	if w.awaits = head.Next; w.awaits > w.position.Next {
		return nil
	}
	m, version, err := w.l.cfg.Store.Manifest(ctx, state.Head)
	switch {
	case err == nil && version < head.Version:
		return fmt.Errorf("%w: version %d of the model is damaged", follow.ErrReload, head.Version)
	case err != nil || version != head.Version:
		return nil // at the next turn
	case w.setsAsideMore(m):
		return fmt.Errorf("%w: the active learner has learnt an event that makes this program panic", follow.ErrReload)
	case !w.backlog.isOf(m.Position):
		return fmt.Errorf("%w: version %d of the model has learnt other records than this one: the log has lost its end",
			follow.ErrReload, head.Version)
	}
	w.judged = *head
	w.coveredBy(head.Next)
	w.status.Version, w.status.SHA256 = version, m.Model
	w.status.SavedEnd = m.Position.Next
	w.backlog.trim(head.Next)
	w.l.handedOn(head.Next) // by the one that saved
	return nil
}

// setsAsideMore reports whether the model has set aside an event that a saved one has not: the two
// are no longer equal.
func (w *worker) setsAsideMore(saved *state.Manifest) bool {
	own := w.model.Config().SetAside
	if len(own) == 0 {
		return false
	}
	var cfg model.Config
	if err := json.Unmarshal(saved.Config, &cfg); err != nil {
		return false // of a later program
	}
	return slices.ContainsFunc(own, func(key string) bool { return !slices.Contains(cfg.SetAside, key) })
}

// coveredBy notes that the active learner has saved up to a position, for when this one follows it.
func (w *worker) coveredBy(next int64) {
	w.sinceCopy, w.unsavedSince = time.Time{}, time.Time{}
	if w.unsaved = next < w.position.Next; w.unsaved {
		w.sinceCopy, w.unsavedSince = time.Now(), time.Now()
	}
}

// late returns follow.ErrReload if this standby does not come to where the saved model is. It
// loads that one then. If the log does not reach so far, the follower says so.
func (w *worker) late(now time.Time) error {
	if w.overdue.of <= w.position.Next { // it came to what it waited for before
		w.overdue = deadline{w.awaits, now.Add(overdueAfter)}
	}
	if now.Before(w.overdue.at) {
		return nil
	}
	return fmt.Errorf("%w: the saved model stands at offset %d, and this one has come to %d in %v",
		follow.ErrReload, w.awaits, w.position.Next, overdueAfter)
}

// acquire takes the lease, and makes this standby the active learner if the head is still as it
// was judged.
func (w *worker) acquire(ctx context.Context, seen state.Lease) error {
	began := time.Now()
	// A store that is slow to fail must not keep it from following.
	defer func() { w.again = time.Now().Add(max(phasePoll, time.Since(began))) }()
	if !w.backlog.whole() {
		return fmt.Errorf("%w: a standby could not keep all that is to be published", follow.ErrReload)
	}
	if w.adopts != nil && w.position.Next != w.status.SavedEnd && w.model.Numerics() != w.l.fresh.Numerics() {
		return fmt.Errorf("%w: the saved model adopts this program's numerics, and what was learnt since is learnt again",
			follow.ErrReload)
	}
	store := w.l.cfg.Store
	lease, err := store.Acquire(ctx, seen, w.l.writer)
	if errors.Is(err, state.ErrStale) {
		return nil // another one was faster, or it beats again
	}
	if err != nil {
		return w.later("acquire the lease", err)
	}
	w.phase, w.lease = taking, lease
	head, err := heading(ctx, store)
	if err == nil {
		err = w.judge(ctx, head)
	}
	if err == nil && (w.awaits > w.position.Next || head != nil && *head != w.judged) {
		w.giveUp(ctx) // somebody saved further before the lease was taken
		return nil
	}
	if err == nil && w.backTo != 0 {
		err = store.StepBack(ctx, lease, w.backTo)
	}
	if err == nil && w.adopts != nil {
		err = w.adopt()
	}
	if err != nil {
		w.giveUp(ctx)
		return w.later("look at the saved model", err)
	}
	w.activate(seen, began)
	return w.publishLetters(ctx)
}

// giveUp frees the lease that was just taken.
func (w *worker) giveUp(ctx context.Context) {
	w.phase = standby
	if _, err := w.l.cfg.Store.Release(ctx, w.lease); err != nil {
		w.log.Debug("the lease was not released: this learner takes it again", "error", err)
	}
}

// adopt has the model take over this learner's configuration.
func (w *worker) adopt() error {
	if err := w.model.Adopt(*w.adopts); err != nil {
		return err
	}
	w.adopts = nil
	w.noteUnsaved(time.Now)
	w.log.Warn("adopted another configuration", "events", w.model.Events())
	return nil
}

// activate makes this learner the active one. It publishes what was kept.
func (w *worker) activate(seen state.Lease, began time.Time) {
	why := takenLapsed
	if seen.Free() {
		why = takenFree
	} else if seen.Writer == w.l.writer {
		why = takenAgain
	}
	w.phase, w.followed = active, lineage{w.lease.Epoch, w.lease.Writer}
	w.l.watch.hold(w.lease)
	w.l.cfg.Metrics.taken(why)
	if w.lastSave = began; !w.l.cfg.Unasked {
		w.lastSave = began.Add(-w.l.cfg.SaveEvery) // soon
	}
	if n := w.backlog.forgotten; n > 0 {
		w.log.Warn("the state was long not saved: a standby could not keep all predictions, and some events have none",
			"predictions", n)
	}
	items, predicted := w.backlog.take()
	w.predicted = append(w.predicted, predicted...)
	w.log.Info("active: this learner publishes and saves the model",
		"epoch", w.lease.Epoch, "why", why, "events", w.model.Events(),
		"next_offset", w.position.Next, "saved_next_offset", w.status.SavedEnd, "kept", len(items))
	if w.backTo != 0 {
		w.noteUnsaved(time.Now)
		w.backTo = 0
	}
	w.publishBacklog(items)
	w.l.handedOn(w.position.Next)
	w.publishStatus()
}

// later returns nil for what may pass, and logs it once.
func (w *worker) later(what string, err error) error {
	if !errors.Is(err, state.ErrTransient) && !errors.Is(err, state.ErrStale) {
		w.waiting = false
		return err
	}
	if !w.waiting {
		w.waiting = true
		w.log.Warn("the state cannot be reached: trying again", "to", what, "error", err)
	}
	return nil
}

// lost decides what becomes of the active learner whose lease or save was refused. If the store
// has lost its data, or an earlier reply, it acquires the lease again. Otherwise it stands by.
func (w *worker) lost(ctx context.Context, err error) error {
	w.again = time.Now().Add(askAgainAfter) // a store that does not answer must not keep it from learning
	switch e := w.reacquire(ctx); {
	case e == nil:
		return nil
	case errors.Is(e, state.ErrTransient):
		return nil // the watch says it again
	case !errors.Is(e, state.ErrStale):
		return e
	}
	w.log.Warn("lost the model's state to another learner: standing by", "error", err)
	w.standBy()
	return nil
}

// reacquire acquires the lease again, if the store has lost the epoch, or this learner has taken
// a later one and the reply was lost. If another learner holds it the error wraps state.ErrStale.
// The model in memory may be all that is left, so it is saved soon.
func (w *worker) reacquire(ctx context.Context) error {
	store := w.l.cfg.Store
	seen, err := store.Lease(ctx)
	if err != nil {
		return err
	}
	if seen.Epoch >= w.lease.Epoch && seen.Writer != w.lease.Writer {
		return fmt.Errorf("%w: the epoch is %d", state.ErrStale, seen.Epoch)
	}
	if seen.Holds(w.lease) {
		return fmt.Errorf("%w: this learner is active, and what is saved is not its own", follow.ErrReload)
	}
	lease, err := store.Acquire(ctx, seen, w.l.writer)
	if err != nil {
		return err
	}
	w.log.Warn("the store has lost the model's state: saving the model that is in memory",
		"epoch_before", w.lease.Epoch, "epoch", lease.Epoch, "events", w.model.Events(), "next_offset", w.position.Next)
	w.abandon() // a save that runs has the epoch before: it would be refused, and read as a loss
	w.lease, w.followed = lease, lineage{lease.Epoch, lease.Writer}
	w.l.watch.hold(lease)
	w.l.cfg.Metrics.taken(takenAgain)
	w.noteUnsaved(time.Now)
	w.lastSave = time.Now().Add(-w.l.cfg.SaveEvery)
	return nil
}

// standBy makes the active learner a standby. It keeps the model, and what is not published.
func (w *worker) standBy() {
	if s := w.running; s != nil && s.ended() {
		_ = w.takeIn() // an error has no consequence any more
	}
	w.abandon()
	for _, a := range w.outbox.pending {
		w.withheld = append(w.withheld, unpublished{alert: &a, said: true})
	}
	w.outbox = outbox{publisher: w.outbox.publisher, log: w.log}
	w.phase = standby
	w.withhold()
	w.l.watch.drop()
	l := w.l
	l.retakeAt = time.Now().Add(retakeAfter)
	w.again = l.retakeAt
	w.publishStatus()
	w.log.Info("standby: this learner follows the model",
		"events", w.model.Events(), "next_offset", w.position.Next, "kept", w.backlog.len())
}

// publishBacklog hands on what was kept as a standby.
func (w *worker) publishBacklog(items []unpublished) {
	for i := range items {
		k := &items[i]
		switch {
		case k.letter != nil && k.receipt:
			w.letters.receipts = append(w.letters.receipts, *k.letter)
		case k.letter != nil:
			w.letters.dead = append(w.letters.dead, *k.letter)
		case k.alert != nil:
			w.outbox.add(*k.alert)
			if !k.said {
				w.l.cfg.Announce(k.alert)
				w.l.cfg.Metrics.alert(k.alert)
			}
		case k.label != nil:
			w.l.cfg.Answered.Labelled(k.label.entry())
		}
	}
}

// withhold keeps what the last record would have published.
func (w *worker) withhold() {
	at := w.position.Next
	for i := range w.letters.dead {
		letter := w.letters.dead[i]
		w.backlog.add(unpublished{next: at, letter: &letter})
	}
	for i := range w.letters.receipts {
		letter := w.letters.receipts[i]
		w.backlog.add(unpublished{next: at, letter: &letter, receipt: true})
	}
	w.letters = letters{}
	for _, k := range w.withheld {
		k.next = at
		w.backlog.add(k)
	}
	w.withheld = w.withheld[:0]
	w.backlog.predict(at, w.predicted)
	w.predicted = w.predicted[:0]
	w.backlog.pass(w.position)
}
