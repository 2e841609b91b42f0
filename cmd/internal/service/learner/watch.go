package learner

import (
	"context"
	"errors"
	"sync"
	"time"

	"hamlet/state"
)

const (
	// beatEvery is how often the active learner beats, and a standby looks.
	beatEvery = 250 * time.Millisecond
	// lapsedAfter equal readings of a lease in a row say that nobody beats any more: about a
	// second. A reading that failed starts the count again.
	lapsedAfter = 4
	// unbeatenLapsedAfter is the same for an epoch of a program before 0.2.0, which never
	// beats: a minute without a save. A quiet one saves every 30 s.
	unbeatenLapsedAfter = 240
	// logSilent is how long the log may not answer before the active learner beats no more, and
	// a standby acquires nothing: whoever can read goes on.
	logSilent = time.Second
	// stuckAfter is how long the worker may not turn before the learner beats no more.
	stuckAfter = 10 * time.Second
	// watchTimeout bounds one question to the store. It is less than a standby's patience, so
	// that an active learner whose connection is dead soon tries another one.
	watchTimeout = time.Second
)

// A sight is what the watch has seen last.
type sight struct {
	lease  state.Lease
	lapsed bool           // nobody beats any more, or the lease is free, or this learner's own
	head   *state.Heading // nil: nothing is saved, or it is not known
	at     time.Time      // zero: nothing has been seen
}

// A watch keeps the lease of the active learner, and tells a standby when to take it. It reads
// the store from a goroutine of its own, beside the worker. Its methods are safe for concurrent
// use.
type watch struct {
	store  Store
	writer string           // this learner's word
	mayAct func() bool      // the log answers and the worker turns
	beaten func(time.Time)  // after a beat; for metrics
	failed func(error)      // after a look; nil: it did not fail
	now    func() time.Time // time.Now, but in tests

	mu    sync.Mutex
	held  *state.Lease // of the active learner; nil: it is none. Only hold and drop write it
	stale error        // why held is lost; nil: it is not known to be
	seen  sight
	equal int // how many readings in a row were as seen.lease
}

// step beats, if this learner is active, or looks.
func (w *watch) step(ctx context.Context) {
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held == nil {
		if err := w.look(ctx, true); ctx.Err() == nil { // else the learner ends
			w.failed(err)
		}
	} else if w.mayAct() {
		w.beat(ctx, *held)
	}
}

func (w *watch) beat(ctx context.Context, mine state.Lease) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	began := w.now()
	l, err := w.store.Beat(ctx, mine)
	if err == nil {
		w.beaten(began)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil || w.held.Epoch != mine.Epoch {
		return // dropped, or acquired again, meanwhile
	}
	switch {
	case err == nil:
		*w.held = l
	case errors.Is(err, state.ErrStale):
		w.stale = err
	}
}

// look reads the lease and the head. It returns an error if one of them could not be read. counts: the
// last reading is some time ago, so an equal one says something.
func (w *watch) look(ctx context.Context, counts bool) error {
	var l state.Lease
	var head *state.Heading
	err := inTime(ctx, func(ctx context.Context) (err error) { l, err = w.store.Lease(ctx); return err })
	if err == nil {
		err = inTime(ctx, func(ctx context.Context) (err error) { head, err = heading(ctx, w.store); return err })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch same := w.equal > 0 && l.Same(w.seen.lease); {
	case err != nil:
		w.equal = 0
		return err
	case same && counts:
		w.equal++
	case !same && counts:
		w.equal = 1
	case !same:
		w.equal = 0
	}
	needed := lapsedAfter
	if l.Beats == state.Unbeaten {
		needed = unbeatenLapsedAfter
	}
	w.seen = sight{lease: l, lapsed: l.Free() || l.Writer == w.writer || w.equal >= needed, head: head, at: w.now()}
	return nil
}

func inTime(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	return ask(ctx)
}

// heading returns what stands at the head; nil if nothing does, or the pointer is damaged: the
// next save writes it.
func heading(ctx context.Context, store Store) (*state.Heading, error) {
	h, err := store.Heading(ctx, state.Head)
	if errors.Is(err, state.ErrNone) || errors.Is(err, state.ErrCorrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &h, nil
}

// sight returns what was seen last.
func (w *watch) sight() sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// hold has the watch beat for a lease.
func (w *watch) hold(l state.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held, w.stale, w.equal, w.seen = &l, nil, 0, sight{}
}

// drop has the watch look again. It returns the lease that was held; nil: none was.
func (w *watch) drop() *state.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	if held != nil {
		w.held, w.stale, w.equal, w.seen = nil, nil, 0, sight{}
	}
	return held
}

// lost returns why the lease that is held is lost, nil if it is not known to be.
func (w *watch) lost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stale
}
