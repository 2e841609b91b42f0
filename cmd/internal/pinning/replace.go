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
	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
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
need not restart. Scorers follow within their --poll-interval, with all partitions at
once. A pin ends.

From its next restart on the learner should have the --without-source of clean. A model
that starts empty, after a loss of Redis or in a new partition, has its flags alone.

Both must have learnt one log. Where one is further in it, the records between are read
from Kafka and compared. Their configurations may differ in without_sources alone, and
clean must leave out all that the other leaves out.

The version that was replaced is kept for 30 days: hamlet model pin goes back to its
answers. After a stop, run the command again. Then stop the learner of clean.

It writes as a learner does: it needs the right of the learner's user of Redis.

This copies a state. To let a model of another configuration or numerics answer, and to
go back, use hamlet model promote, which copies nothing.`
}

// A replacement puts the state of one model in the place of another's, partition by
// partition. Each is one save, as that of a learner: it is whole or it is not there. While
// several are saved, scorers answer from pinned versions.
type replacement struct {
	old, by       *redis.Store
	oldName, name string
	kafka         func() (kafka.Config, error) // asked only if a log must be compared
	patience      time.Duration

	step func(name string, partition int) error // for tests: called before each write
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
	all, err := r.run(ctx)
	if err != nil {
		return err
	}
	return c.printReplaced(stdout, all)
}

// run replaces all partitions. After an error some may be replaced, and pins may stand:
// running it again finishes the work.
func (r *replacement) run(ctx context.Context) ([]replaced, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, max(r.patience, time.Second),
		fmt.Errorf("model %s has not learnt as far as %s in %v: does its learner run?", r.name, r.oldName, r.patience))
	defer cancel()
	partitions, err := r.partitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range partitions { // what is refused is refused before anything is written
		_, err := r.compare(ctx, p)
		for errors.Is(err, state.ErrStale) {
			if err = r.await(ctx, p); err == nil {
				_, err = r.compare(ctx, p)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	var all []replaced
	for _, p := range partitions {
		done, err := r.partition(ctx, p)
		if err != nil && len(partitions) > 1 {
			err = fmt.Errorf("%d of %d partitions are replaced, and answers come from pinned versions until the command has run again: %w", len(all), len(partitions), err)
		}
		if err != nil {
			return all, err
		}
		all = append(all, done)
	}
	if err := r.at("unpin", -1); err != nil {
		return all, err
	}
	return all, r.old.Unpin(ctx)
}

// partitions returns those of both models, which must be the same. It waits for the new one.
func (r *replacement) partitions(ctx context.Context) ([]int, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		old, err1 := r.old.Partitions(ctx)
		by, err2 := r.by.Partitions(ctx)
		switch err := errors.Join(err1, err2); {
		case errors.Is(err, state.ErrTransient): // asked again; so is a deadline that passes while it asks
		case err != nil:
			return nil, err
		case len(old) == 0:
			return nil, fmt.Errorf("redis keeps no version of model %s: there is nothing to replace", r.oldName)
		case slices.Equal(old, by):
			return old, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("model %s has the partitions %v, and model %s has %v: start its learner with --events-of %s, and wait until it has learnt of all",
				r.oldName, old, r.name, by, r.oldName)
		}
	}
}

func (r *replacement) at(step string, partition int) error {
	if r.step == nil {
		return nil
	}
	return r.step(step, partition)
}

// partition replaces one partition. The learner of the old model may save between two steps,
// or take the partition back: then it begins again.
func (r *replacement) partition(ctx context.Context, p int) (replaced, error) {
	for {
		done, err := r.try(ctx, p)
		if !errors.Is(err, state.ErrStale) && !errors.Is(err, state.ErrTransient) {
			return done, err
		}
		if waited := r.await(ctx, p); waited != nil {
			return done, fmt.Errorf("%w: %w", waited, err)
		}
	}
}

// await waits until the new model has learnt at least as far as the old one, as they are saved.
func (r *replacement) await(ctx context.Context, p int) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		old, err1 := r.old.Heading(ctx, state.Head)
		by, err2 := r.by.Heading(ctx, state.Head)
		err := errors.Join(err1, err2)
		if err == nil && by.Next >= old.Next {
			return nil
		}
		if err != nil && !errors.Is(err, state.ErrTransient) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A pair is what is saved of one partition of both models.
type pair struct {
	old, by *state.Checkpoint
	before  int64 // the version of old
}

// same reports whether nothing is to be replaced, or the new model has taken the place already.
func (c *pair) same() bool { return string(c.old.Config) == string(c.by.Config) }

// compare returns the saved models if one can take the place of the other. The error wraps
// state.ErrStale if the new one is behind.
func (r *replacement) compare(ctx context.Context, p int) (c pair, err error) {
	if c.old, c.before, err = r.old.Load(ctx, state.Head); err != nil {
		return c, err
	}
	if c.by, _, err = r.by.Load(ctx, state.Head); err != nil {
		return c, err
	}
	if len(c.old.Order) > 0 != (len(c.by.Order) > 0) {
		return c, fmt.Errorf("of %s and %s, one model alone learns all partitions in the order of a log: start the learner of %[2]s with --events-of %[1]s and the same --models", r.oldName, r.name)
	}
	if c.same() && c.by.Position.Next < c.old.Position.Next { // the learner of the new one was stopped
		return c, r.oneLog(ctx, p, &c, c.by.Position, c.old.Position)
	}
	if err := r.fits(p, c.old, c.by); err != nil {
		return c, err
	}
	return c, r.oneLog(ctx, p, &c, c.old.Position, c.by.Position)
}

// try replaces the saved model. The error wraps state.ErrStale if the old one was saved or
// taken meanwhile.
func (r *replacement) try(ctx context.Context, p int) (replaced, error) {
	c, err := r.compare(ctx, p)
	if err != nil {
		return replaced{}, err
	}
	done := replaced{Partition: p, Before: c.before, Version: c.before, Events: c.old.Events, Position: c.old.Position.Next, Done: c.same()}
	if done.Done {
		return done, nil
	}
	if err := r.at("mark", p); err != nil {
		return done, err
	}
	if err := r.old.MarkReplaced(ctx, c.before); errors.Is(err, state.ErrNone) {
		return done, fmt.Errorf("%w: %w", state.ErrStale, err) // newer versions have pushed it out
	} else if err != nil {
		return done, err
	}
	if err := r.at("take", p); err != nil {
		return done, err
	}
	lease, err := r.old.Seize(ctx, "replace")
	if err != nil {
		return done, err
	}
	defer r.old.Release(context.WithoutCancel(ctx), lease) // else a learner waits until it lapses
	c.by.Epoch, c.by.Writer = lease.Epoch, lease.Writer
	if err := r.at("save", p); err != nil {
		return done, err
	}
	c.by.Saved = time.Now().UTC()
	done.Version, err = r.old.Save(ctx, c.by)
	done.Events, done.Position = c.by.Events, c.by.Position.Next
	var cfg model.Config
	if err := json.Unmarshal(c.by.Config, &cfg); err != nil {
		return done, fmt.Errorf("partition %d: the configuration of model %s: %w", p, r.name, err)
	}
	done.Without = cfg.WithoutSources
	return done, err
}

// fits returns an error if the learner of the old model would refuse to go on with the new one.
func (r *replacement) fits(p int, old, by *state.Checkpoint) error {
	var here, there model.Config
	if err := errors.Join(json.Unmarshal(old.Config, &here), json.Unmarshal(by.Config, &there)); err != nil {
		return fmt.Errorf("partition %d: the configurations of the models: %w", p, err)
	}
	for _, name := range here.WithoutSources {
		if !slices.Contains(there.WithoutSources, name) {
			return fmt.Errorf("partition %d: model %s learns from %q, which %s leaves out: make it with --without-source %[3]s too", p, r.name, name, r.oldName)
		}
	}
	there.WithoutSources = here.WithoutSources
	if d := here.Differences(there); len(d) > 0 {
		return fmt.Errorf("partition %d: the learner of %s would refuse the model %s, whose configuration differs in more than without_sources (here is %s): %s",
			p, r.oldName, r.name, r.oldName, strings.Join(d, "; "))
	}
	if old.Numerics != by.Numerics || old.Schema != by.Schema {
		return fmt.Errorf("partition %d: model %s is of numerics %s and layout %d, and %s of %s and %d: run both learners in one version of the program",
			p, r.oldName, old.Numerics, old.Schema, r.name, by.Numerics, by.Schema)
	}
	return nil
}

// oneLog returns an error unless the second position follows from the first by the records of
// the old model's topic; of a model of several partitions, by those of its order log. It wraps
// state.ErrStale if the second is not as far.
func (r *replacement) oneLog(ctx context.Context, p int, c *pair, from, to state.Position) error {
	topic := stream.EventsTopic(r.oldName)
	if len(c.old.Order) > 0 {
		topic = order.Topic(r.oldName)
	}
	if to.Next < from.Next {
		return fmt.Errorf("%w: model %s is behind", state.ErrStale, r.name)
	}
	if from.Next < to.Next {
		cfg, err := r.kafka()
		if err != nil {
			return fmt.Errorf("model %s and %s are %d records apart, and these must be compared: %w", r.name, r.oldName, to.Next-from.Next, err)
		}
		next := to.Next
		err = kafka.ReadRange(ctx, cfg, topic, p, from.Next, next, func(record *kafka.Record) error {
			headers := make([]state.Header, len(record.Headers))
			for i, h := range record.Headers {
				headers[i] = state.Header{Key: h.Key, Value: h.Value}
			}
			from = from.Advance(record.Offset, record.Key, record.Value, headers...)
			return nil
		})
		if err != nil {
			return fmt.Errorf("partition %d: compare the logs: %w", p, err)
		}
	}
	if from.Chain != to.Chain {
		return fmt.Errorf("partition %d: model %s has learnt another log than %s: start its learner with --events-of %s", p, r.name, r.oldName, r.oldName)
	}
	return nil
}
