package pinning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/follow"
	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

type replace struct {
	By   string        `required:"" help:"Name of the model that takes the place." placeholder:"NAME" env:"-"`
	Wait time.Duration `help:"Wait so long until it has learnt as far." default:"5m" placeholder:"D" env:"-"`
	settings.Kafka
}

// Help is what kong prints below the flags.
func (replace) Help() string {
	return `Examples:

  learner --model clean --events-of default --without-source desk
  hamlet model replace --by clean     once that one has caught up

The state of the model clean becomes the newest version of the model --model names. Its
learner goes on from there at its next save: no event is lost or learnt twice, and it
need not restart. Scorers follow within their --poll-interval. A pin ends.

From its next restart on the learner should have the --without-source of clean. A model
that starts empty, after a loss of Redis, has its flags alone.

Both must have learnt one log. Where one is further in it, the records between are read
from Kafka and compared. Their configurations may differ in without_sources and set_aside
alone, and clean must leave out all that the other leaves out.

The version that was replaced is kept for 30 days: hamlet model pin goes back to its
answers. After a stop, run the command again. Then stop the learner of clean.

It writes as a learner does: it needs the right of the learner's user of Redis.

This copies a state. To let a model of another configuration or numerics answer, and to
go back, use hamlet model promote, which copies nothing.`
}

// A replacement puts the state of one model in the place of another's. It is one save, as
// that of a learner: it is whole or it is not there.
type replacement struct {
	old, by       *redis.Store
	oldName, name string
	kafka         func() (kafka.Config, error) // asked only if a log must be compared
	patience      time.Duration

	step func(name string) error // for tests: called before each write
}

// pollEvery is how often a replacement asks how far the models are.
const pollEvery = 100 * time.Millisecond

func (c *Command) runReplace(ctx context.Context, old *redis.Store, log *slog.Logger, stdout io.Writer) error {
	by := settings.ModelName{Model: c.Replace.By}
	if err := by.Validate(); err != nil || by.Model == c.Model {
		return cli.Usagef("--by: %q is not the name of another model", by.Model)
	}
	if err := cli.Range("--wait", c.Replace.Wait, 0, 24*time.Hour); err != nil {
		return err
	}
	reach, err := c.Redis.OrRunning()
	if err != nil {
		return err
	}
	cfg, err := reach.Config(by.Model, log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	store, err := redis.New(cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	r := replacement{old: old, by: store, oldName: c.Model, name: by.Model, patience: c.Replace.Wait, kafka: func() (kafka.Config, error) {
		reach, err := c.Replace.Kafka.OrRunning()
		if err != nil {
			return kafka.Config{}, err
		}
		return reach.Config("hamlet-model", log)
	}}
	done, err := r.run(ctx)
	if err != nil {
		return err
	}
	return c.printReplaced(stdout, done)
}

// run replaces the model. After an error it may be replaced, and still pinned: running it
// again finishes the work.
func (r *replacement) run(ctx context.Context) (replaced, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, max(r.patience, time.Second),
		fmt.Errorf("model %s has not learnt as far as %s in %v: does its learner run?", r.name, r.oldName, r.patience))
	defer cancel()
	if err := errors.Join(r.old.Layout(ctx), r.by.Layout(ctx)); err != nil {
		return replaced{}, err
	}
	// The learner of the old model may save between two steps, or take the model back: then
	// it begins again.
	done, err := r.try(ctx)
	for errors.Is(err, state.ErrStale) || errors.Is(err, state.ErrTransient) {
		if waited := r.await(ctx); waited != nil {
			return done, fmt.Errorf("%w: %w", waited, err)
		}
		done, err = r.try(ctx)
	}
	if err == nil {
		err = r.at("unpin")
	}
	if err == nil {
		err = r.old.Unpin(ctx)
	}
	return done, err
}

func (r *replacement) at(step string) error {
	if r.step == nil {
		return nil
	}
	return r.step(step)
}

// await waits until the new model has learnt at least as far as the old one, as they are saved.
func (r *replacement) await(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		old, err1 := r.old.Heading(ctx, state.Head)
		by, err2 := r.by.Heading(ctx, state.Head)
		switch err := errors.Join(err1, err2); {
		case err == nil && by.Next >= old.Next:
			return nil
		case err != nil && !errors.Is(err, state.ErrTransient) && !errors.Is(err2, state.ErrNone):
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A pair is what is saved of both models.
type pair struct {
	old, by *state.Checkpoint
	before  int64 // the version of old
}

// same reports whether nothing is to be replaced, or the new model has taken the place already.
func (c *pair) same() bool { return string(c.old.Config) == string(c.by.Config) }

// compare returns the saved models if one can take the place of the other. The error wraps
// state.ErrStale if the new one is behind.
func (r *replacement) compare(ctx context.Context) (c pair, err error) {
	if c.old, c.before, err = r.old.Load(ctx, state.Head); errors.Is(err, state.ErrNone) {
		return c, fmt.Errorf("redis keeps no version of model %s: there is nothing to replace", r.oldName)
	} else if err != nil {
		return c, err
	}
	if c.by, _, err = r.by.Load(ctx, state.Head); errors.Is(err, state.ErrNone) {
		return c, fmt.Errorf("%w: redis keeps no version of model %s: start its learner with --events-of %s", state.ErrStale, r.name, r.oldName)
	} else if err != nil {
		return c, err
	}
	if c.same() && c.by.Position.Next < c.old.Position.Next { // the learner of the new one was stopped
		return c, r.oneLog(ctx, c.by.Position, c.old.Position)
	}
	if err := r.fits(c.old, c.by); err != nil {
		return c, err
	}
	return c, r.oneLog(ctx, c.old.Position, c.by.Position)
}

// try replaces the saved model. The error wraps state.ErrStale if the old one was saved or
// taken meanwhile.
func (r *replacement) try(ctx context.Context) (replaced, error) {
	c, err := r.compare(ctx)
	if err != nil {
		return replaced{}, err
	}
	done := replaced{Before: c.before, Version: c.before, Events: c.old.Events, Position: c.old.Position.Next, Done: c.same()}
	if done.Done {
		return done, nil
	}
	if err := r.at("mark"); err != nil {
		return done, err
	}
	if err := r.old.MarkReplaced(ctx, c.before); errors.Is(err, state.ErrNone) {
		return done, fmt.Errorf("%w: %w", state.ErrStale, err) // newer versions have pushed it out
	} else if err != nil {
		return done, err
	}
	if err := r.at("take"); err != nil {
		return done, err
	}
	lease, err := r.old.Seize(ctx, "replace")
	if err != nil {
		return done, err
	}
	defer r.old.Release(context.WithoutCancel(ctx), lease) // else a learner waits until it lapses
	c.by.Epoch, c.by.Writer = lease.Epoch, lease.Writer
	if err := r.at("save"); err != nil {
		return done, err
	}
	c.by.Saved = time.Now().UTC()
	done.Version, err = r.old.Save(ctx, c.by)
	done.Events, done.Position = c.by.Events, c.by.Position.Next
	var cfg model.Config
	if err := json.Unmarshal(c.by.Config, &cfg); err != nil {
		return done, fmt.Errorf("the configuration of model %s: %w", r.name, err)
	}
	done.Without = cfg.WithoutSources
	return done, err
}

// fits returns an error if the learner of the old model would refuse to go on with the new one.
func (r *replacement) fits(old, by *state.Checkpoint) error {
	var here, there model.Config
	if err := errors.Join(json.Unmarshal(old.Config, &here), json.Unmarshal(by.Config, &there)); err != nil {
		return fmt.Errorf("the configurations of the models: %w", err)
	}
	for _, name := range here.WithoutSources {
		if !slices.Contains(there.WithoutSources, name) {
			return fmt.Errorf("model %s learns from %q, which %s leaves out: make it with --without-source %[2]s too", r.name, name, r.oldName)
		}
	}
	there.WithoutSources, there.SetAside = here.WithoutSources, here.SetAside
	if d := here.Differences(there); len(d) > 0 {
		return fmt.Errorf("the learner of %s would refuse the model %s, whose configuration differs in more than without_sources and set_aside (here is %s): %s",
			r.oldName, r.name, r.oldName, strings.Join(d, "; "))
	}
	if old.Numerics != by.Numerics || old.Schema != by.Schema {
		return fmt.Errorf("model %s is of numerics %s and layout %d, and %s of %s and %d: run both learners in one version of the program",
			r.oldName, old.Numerics, old.Schema, r.name, by.Numerics, by.Schema)
	}
	return nil
}

// oneLog returns an error unless the second position follows from the first by the records of
// the old model's topic. It wraps state.ErrStale if the second is not as far.
func (r *replacement) oneLog(ctx context.Context, from, to state.Position) error {
	if to.Next < from.Next {
		return fmt.Errorf("%w: model %s is behind", state.ErrStale, r.name)
	}
	if from.Next < to.Next {
		cfg, err := r.kafka()
		if err != nil {
			return fmt.Errorf("model %s and %s are %d records apart, and these must be compared: %w", r.name, r.oldName, to.Next-from.Next, err)
		}
		log, err := kafka.NewLog(cfg, stream.EventsTopic(r.oldName))
		if err != nil {
			return err
		}
		defer log.Close()
		err = follow.Range(ctx, follow.Topic(log, cfg), from.Next, to.Next, func(record *stream.Record) error {
			from = follow.Advance(from, record)
			return nil
		})
		if err != nil {
			return fmt.Errorf("compare the logs: %w", err)
		}
	}
	if from.Chain != to.Chain {
		return fmt.Errorf("model %s has learnt another log than %s: start its learner with --events-of %s", r.name, r.oldName, r.oldName)
	}
	return nil
}
