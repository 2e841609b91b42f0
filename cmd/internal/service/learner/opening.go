package learner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/clock"
	"hamlet/state"
)

// ErrRefused: this learner may not go on with what is saved, such as a model that it cannot read or one of
// another configuration. It will be refused at every start, until somebody changes the one or the other.
var ErrRefused = errors.New("the saved model is refused")

// A refusedError is an ErrRefused that speaks for itself.
type refusedError struct{ err error }

func (e *refusedError) Error() string        { return e.err.Error() }
func (e *refusedError) Unwrap() error        { return e.err }
func (e *refusedError) Is(target error) bool { return target == ErrRefused }

// Refuse returns err as an [ErrRefused].
func Refuse(err error) error { return &refusedError{err} }

// A ConfigError says that the model was made with another configuration than this learner's.
type ConfigError struct {
	Differences []string
	Err         error // why the model cannot adopt this one; nil: it can, with AdoptConfig
}

func (e *ConfigError) Error() string {
	return "the model was made with another configuration (" + strings.Join(e.Differences, "; ") + ")"
}

// open loads the model as it was saved, or begins a new one. What this learner refuses it
// refuses here, so that the active learner goes on.
func (l *Learner) open(ctx context.Context) (*worker, error) {
	l.release() // of a worker that the follower has dropped
	l.dropStatus()
	log := l.cfg.Log.With("model", l.cfg.Name)
	w := &worker{l: l, log: log, phase: standby, again: l.retakeAt, outbox: outbox{publisher: l.cfg.Alerts, log: log}}
	w.confirm = func(context.Context) error { return nil } // until the follower gives its own
	if err := retry(ctx, log, "look for models of several partitions",
		func() error { return l.cfg.Store.Layout(ctx) }); err != nil {
		return nil, err
	}
	for again := false; ; {
		from, err := l.load(ctx, log)
		if err != nil {
			return nil, err
		}
		// The first look is before the first record: a learner that is alone is active at once.
		err = retry(ctx, log, "read the lease", func() error { return l.watch.look(ctx, false) })
		if err != nil {
			return nil, err
		}
		if head := l.watch.sight().head; head != nil && !from.isAt(head) { // nil: the next save writes it
			looked := w.judged
			w.judged = *head
			switch {
			case *head != looked && (!again || !from.isBefore(head) || !l.readable(ctx, head)):
				again = true
				continue // saved since, another one's, or damaged: a second look tells
			case *head != looked:
				w.judged = state.Heading{} // saved since, and its own: it will be judged
			case from.head != nil && from.version < head.Version:
				// What it covers may be of an end that the log has lost. So it covers nothing of what this
				// learner has to publish, and whoever is active next goes on from the checkpoint before it.
				w.backTo, w.damaged, w.looks = from.version, head.Version, time.Now().Add(checkEvery*l.cfg.SaveEvery)
				log.Warn("the newest version of the model is damaged: going on from one before it",
					"damaged", head.Version, "version", from.version)
			}
		} else if head != nil {
			w.judged = *head
		}
		w.begin(from)
		return w, nil
	}
}

// An origin is what the model goes on from.
type origin struct {
	model   *model.Model
	head    *state.Checkpoint // nil: the model is new
	version int64             // of head
	adopts  *model.Config     // what the model is to take over; nil: nothing
}

// isAt reports whether the checkpoint is what stands at the head.
func (from *origin) isAt(head *state.Heading) bool {
	c := from.head
	return c != nil && from.version == head.Version && c.Position.Next == head.Next &&
		lineage{c.Epoch, c.Writer} == lineage{head.Epoch, head.Writer}
}

// isBefore reports whether what stands at the head was saved later by the lineage of the checkpoint.
func (from *origin) isBefore(head *state.Heading) bool {
	c := from.head
	return c != nil && from.version <= head.Version && c.Position.Next <= head.Next &&
		lineage{c.Epoch, c.Writer} == lineage{head.Epoch, head.Writer}
}

// readable reports whether the manifest of what stands at the head can be read.
func (l *Learner) readable(ctx context.Context, head *state.Heading) bool {
	_, version, err := l.cfg.Store.Manifest(ctx, state.Head)
	return err == nil && version >= head.Version
}

// load returns the newest checkpoint, or a new model. Where no version can be read it waits for another learner
// that is active: that one saves again. It returns an error if this learner may not go on from there.
func (l *Learner) load(ctx context.Context, log *slog.Logger) (from origin, err error) {
	for said := false; ; said = true {
		err = retry(ctx, log, "load the checkpoint", func() (err error) {
			from.head, from.version, err = l.cfg.Store.Load(ctx, state.Head)
			return err
		})
		if !errors.Is(err, state.ErrCorrupt) || !l.anotherIsActive(ctx, log) {
			break
		}
		if !said {
			log.Warn("no version of the model can be read: waiting for the next save of the active learner", "error", err)
		}
		if !clock.Sleep(ctx, beatEvery) {
			return from, context.Cause(ctx)
		}
	}
	switch {
	case errors.Is(err, state.ErrNone):
		from = origin{}
		cfg := l.cfg.Model
		cfg.SetAside = slices.Concat(cfg.SetAside, l.aside)
		from.model, err = model.New(cfg)
		return from, err
	case err != nil:
		return from, err
	}
	return from, l.restoreInto(&from)
}

// anotherIsActive reports whether another learner holds the lease, and beats as far as the watch has seen.
func (l *Learner) anotherIsActive(ctx context.Context, log *slog.Logger) bool {
	err := retry(ctx, log, "read the lease", func() error { return l.watch.look(ctx, false) })
	return err == nil && !l.watch.sight().lapsed
}

// restoreInto makes the model of from's checkpoint.
func (l *Learner) restoreInto(from *origin) (err error) {
	from.model, from.adopts, err = l.restore(from.head)
	if err != nil {
		return fmt.Errorf("checkpoint v%d: %w", from.version, Refuse(err))
	}
	return nil
}

// begin begins with a model, and shows it.
func (w *worker) begin(from origin) {
	l := w.l
	w.model, w.adopts = from.model, from.adopts
	if head := from.head; head == nil {
		w.position, w.known, w.followed = state.Position{}, false, lineage{}
		w.log.Info("starting with an empty model")
	} else {
		w.position, w.known, w.followed = head.Position, true, lineage{head.Epoch, head.Writer}
		w.noteSaved(head, from.version)
		w.hand(head, from.version)
		w.log.Info("going on from a checkpoint",
			"version", from.version, "events", head.Events, "next_offset", head.Position.Next)
	}
	if l.cfg.Runner != nil {
		w.model.SetRunner(l.cfg.Runner)
	}
	l.cfg.Metrics.begin(w.model.Config())
	l.cfg.Metrics.trust.show(w.model.Sources())
	w.status.Resumed = w.model.Events()
	w.publishStatus()
	for _, a := range w.status.Alarms {
		if a.Status.Raised && !l.silent() {
			w.log.Warn("an alarm stands", "kind", a.Kind, "body", a.Body, "since_event", a.Status.Since,
				"reading", w.status.Reading.String())
		}
	}
}

// hand gives a scorer of this process the model that was loaded, if it answers from the same one: there need be only
// one.
func (w *worker) hand(c *state.Checkpoint, version int64) {
	if w.l.cfg.Saved == nil {
		return
	}
	if m, err := w.model.Copy(); err == nil { // without it the scorer reads the store
		handed := *c
		handed.Model = nil
		if unused := w.l.cfg.Saved(&handed, m, version); unused != nil {
			w.model.Reclaim(unused, false)
		}
	}
}

// restore returns a checkpoint's model, if this learner may continue it, and whether it is to
// adopt this learner's configuration once it is active. Before that a standby is equal to the
// active learner, which has not. A model may leave out
// more sources than this learner's configuration: a restored one does, and one that 0.1.0 put in
// the place of another. AdoptConfig takes sources back, if the configuration names any or none.
func (l *Learner) restore(c *state.Checkpoint) (m *model.Model, adopts *model.Config, err error) {
	m, err = model.Restore(c.Model)
	if err != nil {
		return nil, nil, err
	}
	cfg := l.cfg.Model
	if cfg.WithoutSources == nil || !l.cfg.AdoptConfig &&
		!slices.ContainsFunc(cfg.WithoutSources, func(name string) bool { return !m.LeavesOut(name) }) {
		if here, there := len(cfg.WithoutSources), len(m.Config().WithoutSources); cfg.WithoutSources != nil && here < there {
			l.cfg.Log.Warn("the model leaves out more sources than the configuration says, "+
				"and goes on without them until it adopts the configuration",
				"here", here, "in_the_model", there)
		}
		cfg.WithoutSources = m.Config().WithoutSources
	}
	for _, key := range cfg.SetAside {
		if err := m.SetAside(key); err != nil {
			return nil, nil, err
		}
	}
	for _, key := range l.aside {
		_ = m.SetAside(key) // another model may have taken the place, and have learnt the event or left it out
	}
	cfg.SetAside = m.Config().SetAside // a model may set aside more than the configuration says
	differences := cfg.Differences(m.Config())
	if here := l.fresh.Numerics(); here != m.Numerics() {
		differences = append(differences, fmt.Sprintf("numerics: %s here, %s in the model", here, m.Numerics()))
	}
	if len(differences) == 0 {
		return m, nil, nil
	}
	trial, err := model.Restore(c.Model)
	if err == nil {
		err = trial.Adopt(cfg)
	}
	switch {
	case err != nil && l.cfg.AdoptConfig:
		return nil, nil, err
	case !l.cfg.AdoptConfig:
		return nil, nil, &ConfigError{differences, err}
	}
	l.cfg.Log.Warn("the model adopts another configuration once this learner is active",
		"differences", strings.Join(differences, "; "))
	return m, &cfg, nil
}

// retry repeats what fails for a transient reason until ctx ends. It logs the first
// failure.
func retry(ctx context.Context, log *slog.Logger, what string, do func() error) error {
	var last error
	pauses := backoff.NewExponentialBackOff()
	pauses.RandomizationFactor = clock.Jitter(ctx)
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 2*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		switch {
		case err != nil && !errors.Is(err, state.ErrTransient):
			err = backoff.Permanent(err)
		case err != nil && last == nil:
			log.Warn("the state cannot be reached: trying again", "to", what, "error", err)
		}
		last = err
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0))
	if err != nil && last != nil && !errors.Is(err, last) {
		err = fmt.Errorf("%w; before: %w", err, last)
	}
	return err
}
