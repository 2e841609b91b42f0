package learner

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
)

// checkEvery is how many times SaveEvery passes on a quiet stream until the model is
// saved again. A store that holds it writes nothing; one that lost something gets it
// back. Without that scorers could lack the model until the next event, for days.
const checkEvery = 10

// quietWait is how long a turn without records waits for the running save, so that
// Status soon shows what is saved. A record that comes meanwhile waits as long.
const quietWait = 200 * time.Millisecond

// besideWait is how long learning waits for a save where a scorer of this process answers from what is saved, and
// saves are rare. The copy becomes that scorer's model, in the place of the one before, and only then has the model
// its own tables again: so there are two sets of tables, and not three. A save to a disk takes a tenth of a second, or
// some where the machine is busy. It is less than stuckAfter: the lease is kept.
const besideWait = stuckAfter / 2

// A saving is one save. It runs in a goroutine of its own beside learning, from a copy
// of the model. There is at most one. The copy shares the model's tables until the next event, which stops
// learning for 7 ms in all at the default 28 MiB (BenchmarkSave of algos/model, 2026-11-30); making its bytes,
// hashing and writing them does not. They are never in memory all at once.
//
//	none ──start──> running ──done──> settled by the worker's goroutine ──> none
//	                   └──abandon──> cancelled; its result is ignored
//
// A store bounds its requests by itself, so a saving ends if the store does not answer,
// and lasts as long as a slow store needs.
//
// A saving may go on after another learner became active. That changes nothing: the other
// learner has a newer epoch, and the store refuses what is saved under the epoch before.
type saving struct {
	cancel context.CancelFunc
	copied *state.Checkpoint // what to write: its Source is a copy of the model
	again  bool              // it was saved before

	// The result. Its goroutine writes it before done is closed; others read it after.
	done    chan struct{}
	version int64
	took    time.Duration
	unused  *model.Model // a copy that nobody uses any more; nil: none
	err     error
}

func (s *saving) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// saveIfDue takes in the result of a save that has ended. It starts one when SaveEvery
// has passed since the last began and no alert is pending: alerts and predictions are published
// before the save of their events. Without the store learning goes on: the log
// holds what is not saved.
func (w *worker) saveIfDue(ctx context.Context, quiet bool) error {
	defer w.showLag()
	patience := time.Duration(0)
	if quiet {
		patience = quietWait
	}
	if err := w.settle(ctx, patience); err != nil || w.running != nil {
		return err
	}
	now := time.Now()
	switch {
	case w.unsaved && len(w.outbox.pending) == 0 && now.Sub(w.lastSave) >= w.l.cfg.SaveEvery && w.affords(now):
		switch err := w.confirm(ctx); {
		case errors.Is(err, follow.ErrUnconfirmed):
			w.log.Debug("not saved yet", "error", err)
			return nil
		case err != nil:
			return err
		}
		if err := w.publishPredictions(ctx); err != nil {
			return err
		}
		if err := w.startSave(ctx); err != nil {
			return err
		}
		w.l.saveNow.Store(false)
	case !w.unsaved && w.l.cfg.SaveBytes <= 0 && w.status.Version != 0 &&
		now.Sub(w.lastSave) >= checkEvery*w.l.cfg.SaveEvery:
		if err := w.startSave(ctx); err != nil {
			return err
		}
		w.running.again = true
	}
	if w.l.cfg.SaveBytes > 0 && w.l.cfg.Saved != nil {
		patience = besideWait
	}
	return w.settle(ctx, patience)
}

// affords reports whether a save now stays within SaveBytes. A few saves may come one after another:
// the bytes of the last ones are a debt, which SaveBytes pays off.
func (w *worker) affords(now time.Time) bool {
	const ahead = 3 // saves
	if w.l.cfg.SaveBytes <= 0 || w.l.saveNow.Load() {
		return true
	}
	paid := now.Sub(w.owed).Minutes() * float64(w.l.cfg.SaveBytes)
	w.debt, w.owed = max(0, w.debt-paid), now
	return w.debt <= (ahead-1)*float64(w.size)
}

// Adopt sets AdoptConfig. It is called before Run.
func (l *Learner) Adopt() { l.cfg.AdoptConfig = true }

// Save has the active learner save what it has learnt as soon as it can, whatever SaveBytes says.
func (l *Learner) Save() { l.saveNow.Store(true) }

// startSave copies the model and starts to save the copy.
func (w *worker) startSave(ctx context.Context) error {
	w.lastSave = time.Now()
	m, c, err := w.copyModel()
	if err != nil {
		return err
	}
	w.unsaved, w.sinceCopy = false, time.Time{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlasts the turn that starts it
	s := &saving{cancel: cancel, copied: c, done: make(chan struct{})}
	w.running = s
	w.l.savings.Go(func() {
		defer close(s.done)
		defer cancel()
		begun := time.Now()
		s.version, s.err = w.l.cfg.Store.Save(ctx, c)
		s.took = time.Since(begun)
		if s.unused = m; s.err == nil && w.l.cfg.Saved != nil {
			s.unused = w.l.cfg.Saved(c, m, s.version)
		}
	})
	return nil
}

// copyModel returns a copy of the model as it is, and its checkpoint.
func (w *worker) copyModel() (*model.Model, *state.Checkpoint, error) {
	m, err := w.model.Copy()
	if err != nil {
		return nil, nil, err
	}
	config, err := json.Marshal(m.Config())
	if err != nil {
		return nil, nil, err
	}
	return m, &state.Checkpoint{
		Schema: Schema, Numerics: m.Numerics(), Config: config, Epoch: w.lease.Epoch, Writer: w.lease.Writer,
		Events: m.Events(), Position: w.position, Source: m, Saved: time.Now().UTC(),
	}, nil
}

// abandon cancels the running save, whose result nobody wants. It ends with its request
// in flight; Run waits for it. It keeps the copy.
func (w *worker) abandon() {
	if w.running != nil {
		w.running.cancel()
		w.running = nil
	}
}

// settle takes in the result of the running save if it ends before patience does.
func (w *worker) settle(ctx context.Context, patience time.Duration) error {
	if w.running == nil {
		return nil
	}
	if !w.running.ended() {
		if patience == 0 {
			return nil
		}
		over := time.NewTimer(patience)
		defer over.Stop()
		select {
		case <-w.running.done:
		case <-over.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return w.result(w.takeIn())
}

// takeIn notes what the save that has ended did, and returns its error.
func (w *worker) takeIn() error {
	s := w.running
	w.running = nil
	switch {
	case s.unused != nil:
		w.model.Reclaim(s.unused, true)
	case w.l.cfg.SaveBytes > 0:
		debug.FreeOSMemory() // a scorer's model before, perhaps: the next tables are not to come on top of it
	}
	w.debt += float64(max(w.size, int(s.copied.Length))) // Length is 0 if it failed early
	if s.err != nil {
		w.unsaved = true
		return s.err
	}
	if s.again && s.version != w.status.Version {
		w.log.Warn("the state had lost what was saved: it was saved again",
			"version_before", w.status.Version, "version", s.version)
	}
	w.noteSaved(s.copied, s.version)
	w.size = int(s.copied.Length)
	w.unsavedSince = w.sinceCopy
	w.publishStatus()
	w.l.cfg.Metrics.saved(s.took, w.size)
	w.l.cfg.Metrics.trust.show(w.model.Sources())
	w.log.Debug("saved", "version", s.version, "events", s.copied.Events, "next_offset", s.copied.Position.Next,
		"took", s.took)
	if w.failing {
		w.failing = false
		w.log.Info("the state can be reached again", "next_offset", s.copied.Position.Next)
	}
	return nil
}

// result decides what a save's error means. One that may pass is no error.
func (w *worker) result(err error) error {
	if !errors.Is(err, state.ErrTransient) {
		return err
	}
	w.l.cfg.Metrics.failedSave.Inc()
	if !w.failing {
		w.failing = true
		w.log.Warn("not saved: learning goes on, saving is tried again", "error", err)
	}
	return nil
}

// saveAtEnd saves what is not saved, with ctx's time to begin an attempt. Where the
// learner stops, an attempt that has begun may finish: it lasts as long as a store of
// the measured speed needs. Where it has lost the lease, it ends with ctx: others learn.
func (w *worker) saveAtEnd(ctx context.Context) error {
	attempt := ctx
	if w.l.stopping() {
		attempt = context.WithoutCancel(ctx)
	}
	if w.running != nil {
		select {
		case <-w.running.done:
		case <-attempt.Done():
			w.abandon()
			return context.Cause(attempt)
		}
		if err := w.takeIn(); errors.Is(err, state.ErrLost) {
			err = w.reacquire(ctx)
			if err != nil {
				return err
			}
		} else if err != nil && !errors.Is(err, state.ErrTransient) {
			return err
		}
	}
	if !w.unsaved {
		return nil
	}
	return retry(ctx, w.log, "save at the end", func() error {
		if err := w.startSave(attempt); err != nil {
			return err
		}
		select {
		case <-w.running.done:
			err := w.takeIn()
			if errors.Is(err, state.ErrLost) {
				if err = w.reacquire(ctx); err == nil {
					err = state.Transient(errors.New("the store has lost the state: saving again"))
				}
			}
			return err
		case <-attempt.Done():
			w.abandon()
			return context.Cause(attempt)
		}
	})
}

// forgetAfter is how long the learner must have learnt nothing before it gives back memory that it needs for the
// next event.
const forgetAfter = 2 * time.Second

// forget gives back the memory of tables that are needed when something is learnt again.
func (w *worker) forget() {
	if !w.unsaved && w.running == nil && time.Since(w.quietSince) >= forgetAfter && w.model.Forget() {
		debug.FreeOSMemory()
	}
}

// noteSaved notes in the status what the store holds.
func (w *worker) noteSaved(c *state.Checkpoint, version int64) {
	w.status.Version, w.status.SHA256 = version, c.ModelSHA256
	w.status.SavedEnd = c.Position.Next
}

// noteUnsaved notes that a record was applied at now.
func (w *worker) noteUnsaved(now func() time.Time) {
	w.unsaved, w.quietSince = true, now()
	if w.sinceCopy.IsZero() {
		w.sinceCopy = w.quietSince
	}
	if w.unsavedSince.IsZero() {
		w.unsavedSince = w.sinceCopy
	}
}

// showLag shows for how long the oldest record that is not saved has been learnt.
func (w *worker) showLag() {
	behind := time.Duration(0)
	if !w.unsavedSince.IsZero() {
		behind = time.Since(w.unsavedSince)
	}
	w.l.cfg.Metrics.behind(behind)
}
