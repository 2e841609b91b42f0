package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/offline/replay"
	"hamlet/cmd/internal/operate/eventlog"
	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/service/background"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/learner"
	"hamlet/state"
	"hamlet/stream"
)

// A relearning learns the log again up to where the saved model is, because that one is of other numerics
// than this program's. Answers come from it meanwhile, and labels wait in the log.
type relearning struct {
	cfg   *config
	saved *state.Checkpoint
	model model.Config
	read  chan struct{} // closed when the log is read and what it made is saved, or waits for room
	done  func()        // closes read
}

// planRelearning returns what is to be done before the learner runs; nil if the saved model is of this
// program's numerics, or there is none. Where the log has lost its beginning, the learner adopts the saved model
// instead: it goes on with what that has learnt. Nothing is changed yet.
func planRelearning(ctx context.Context, cfg *config) (*relearning, error) {
	if !cfg.relearn || cfg.learner.AdoptConfig {
		return nil, nil
	}
	m, _, err := cfg.set.Store.Manifest(ctx, state.Head)
	if err != nil || m.Numerics == model.CurrentNumerics() {
		return nil, nil // the learner says what is wrong
	}
	c, _, err := cfg.set.Store.Load(ctx, state.Head)
	if err != nil {
		return nil, nil
	}
	saved, err := model.Restore(c.Model)
	if err != nil {
		return nil, learner.Refuse(fmt.Errorf("the saved model is of numerics %s, which this program (%s) cannot answer "+
			"from; nothing is changed: go back to the program that made it, or let another name learn (--model): %w",
			c.Numerics, model.CurrentNumerics(), err))
	}
	wanted := cfg.learner.Model
	wanted.SetAside = saved.Config().SetAside // a learner sets aside more than its configuration says
	if wanted.WithoutSources == nil {
		wanted.WithoutSources = saved.Config().WithoutSources
	}
	if len(wanted.Differences(saved.Config())) > 0 {
		return nil, nil
	}
	log := cfg.log.With("numerics", model.CurrentNumerics(), "of_the_model", c.Numerics)
	b, err := follow.Bounds(ctx, cfg.learner.Follow)
	if err != nil {
		return nil, err
	}
	if b.First > 0 || b.End < c.Position.Next {
		log.Warn("the model is of other numerics, and the log has not all that it has learnt: "+
			"the model goes on under this program's", "log_begins_at", b.First, "log_ends_at", b.End)
		cfg.learner.AdoptConfig = true
		return nil, nil
	}
	log.Warn("the model is of other numerics: the log is learnt again, and answers come from the old version until then",
		"records", c.Position.Next)
	r := &relearning{cfg: cfg, saved: c, model: saved.Config(), read: make(chan struct{})}
	r.done = sync.OnceFunc(func() { close(r.read) })
	return r, nil
}

// errOtherLog: the log does not make the saved model.
var errOtherLog = errors.New("the log does not make all that the saved model has learnt")

// run learns the log again, and saves the model in the place of the old one. Where the log does not make that
// model, run saves the old one under this program's numerics, so that the next start does not try again. said
// is told how far it is. An error means that nothing was saved.
func (r *relearning) run(ctx context.Context, said func(string)) error {
	defer func() {
		if ctx.Err() == nil {
			r.done()
		}
	}()
	c, err := r.learn(ctx, said)
	if err == nil {
		version, err := r.save(ctx, c, said)
		if err != nil {
			return fmt.Errorf("save what was learnt again: %w", err)
		}
		r.cfg.log.Info("the log is learnt again: answers come from the new version",
			"version", version, "events", c.Events, "numerics", c.Numerics)
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	r.cfg.log.Warn("the log could not be learnt again: the model goes on under this program's numerics", "error", err)
	if c, err = r.adopt(); err == nil {
		_, err = r.save(ctx, c, said)
	}
	if err != nil {
		return fmt.Errorf("save the model under this program's numerics: %w", err)
	}
	return nil
}

// adopt returns the old model under this program's numerics.
func (r *relearning) adopt() (*state.Checkpoint, error) {
	m, err := model.Restore(r.saved.Model)
	if err == nil {
		err = m.Adopt(r.model)
	}
	if err != nil {
		return nil, err
	}
	return checkpoint(m, r.saved.Position)
}

func checkpoint(m *model.Model, position state.Position) (c *state.Checkpoint, err error) {
	c = &state.Checkpoint{
		Schema: learner.Schema, Numerics: m.Numerics(), Events: m.Events(), Position: position, Saved: time.Now().UTC(),
	}
	if c.Config, err = json.Marshal(m.Config()); err != nil {
		return nil, err
	}
	c.Model, err = m.AppendBinary(nil)
	return c, err
}

// learn learns the log up to where the saved model is.
func (r *relearning) learn(ctx context.Context, said func(string)) (*state.Checkpoint, error) {
	var position state.Position
	enough := errors.New("enough")
	records := func(yield func(*stream.Record, error) bool) {
		position = state.Position{} // it may be read again
		err := follow.Range(ctx, r.cfg.learner.Follow, 0, r.saved.Position.Next, func(record *stream.Record) error {
			position = follow.Advance(position, record)
			if !yield(record, nil) {
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			yield(nil, err)
		}
	}
	runner := background.New(nil)
	defer runner.Close()
	_, m, err := replay.Run(ctx, replay.Config{
		Model: r.model, Runner: runner,
		Progress: func(n int) {
			said(fmt.Sprintf("learning the log again under numerics %s: %d of %d records",
				model.CurrentNumerics(), n, r.saved.Position.Next))
		},
	}, eventlog.Items(r.cfg.learner.Follow.Name, records))
	if err != nil {
		return nil, fmt.Errorf("learn the log again: %w", err)
	}
	// Records may have been left out, and a restored model can know more than its log.
	if position != r.saved.Position || m.Events() < r.saved.Events {
		return nil, errOtherLog
	}
	return checkpoint(m, position)
}

// save saves a checkpoint. It waits where the store cannot be written: a disk may be full for a while.
func (r *relearning) save(ctx context.Context, c *state.Checkpoint, said func(string)) (version int64, err error) {
	for {
		if version, err = r.saveOnce(ctx, c); !errors.Is(err, state.ErrTransient) {
			return version, err
		}
		r.done() // what is too old makes room
		said(fmt.Sprintf("the model of numerics %s cannot be saved yet: %v", c.Numerics, err))
		if !clock.Sleep(ctx, time.Second) {
			return version, err
		}
	}
}

// saveOnce saves a checkpoint. Nobody else has the directory, so nobody holds the lease.
func (r *relearning) saveOnce(ctx context.Context, c *state.Checkpoint) (version int64, err error) {
	lease, err := r.cfg.set.Store.Seize(ctx, r.cfg.learner.Writer)
	if err != nil {
		return 0, err
	}
	c.Epoch, c.Writer = lease.Epoch, lease.Writer
	version, err = r.cfg.set.Store.Save(ctx, c)
	_, freed := r.cfg.set.Store.Release(ctx, lease)
	return version, errors.Join(err, freed)
}
