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
	"hamlet/state"
)

// open takes a partition: a new epoch, the newest checkpoint, the model. What this learner
// refuses it refuses before, so that the learner that holds the partition goes on.
func (l *Learner) open(ctx context.Context, partition int) (*partitionModel, error) {
	if partition != 0 {
		return nil, fmt.Errorf("partition %d: %w: name a topic of one partition", partition, state.ErrPartitions)
	}
	log := l.cfg.Log.With("partition", partition)
	p := &partitionModel{l: l, partition: partition, log: log, outbox: outbox{publisher: l.cfg.Alerts, log: log}}
	p.confirm = func(context.Context) error { return nil } // until the consumer gives its own
	from, err := l.load(ctx, log, partition)
	if err != nil {
		return nil, err
	}
	err = retry(ctx, log, "take the partition", func() (err error) {
		p.epoch, err = l.cfg.Store.Take(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	same := false
	err = retry(ctx, log, "read the newest checkpoint's manifest", func() (err error) {
		same, err = l.unchanged(ctx, partition, &from)
		return err
	})
	if err == nil && !same { // it was saved before the epoch was taken
		from, err = l.load(ctx, log, partition)
	}
	if err != nil {
		return nil, err
	}
	p.begin(from)
	return p, nil
}

// An origin is what a partition's model goes on from.
type origin struct {
	model   *model.Model
	head    *state.Checkpoint // nil: the model is new
	version int64             // of head
	adopted bool              // the model has taken over this learner's configuration just now
}

// load returns the newest checkpoint of a partition, or a new model. It returns an error if
// this learner may not go on from there.
func (l *Learner) load(ctx context.Context, log *slog.Logger, partition int) (from origin, err error) {
	if err := l.checkOthers(ctx, log, partition); err != nil {
		return from, err
	}
	err = retry(ctx, log, "load the checkpoint", func() (err error) {
		from.head, from.version, err = l.cfg.Store.Load(ctx, state.Head)
		return err
	})
	switch {
	case errors.Is(err, state.ErrNone):
		from = origin{}
		from.model, err = model.New(l.cfg.Model)
		return from, err
	case err != nil:
		return from, err
	}
	if err = l.checkLayout(from.head.Order); err == nil {
		from.model, from.adopted, err = l.restore(from.head)
	}
	if err != nil {
		return from, fmt.Errorf("checkpoint v%d: %w", from.version, err)
	}
	return from, nil
}

// unchanged reports whether the newest checkpoint of a partition is still the one that was
// loaded.
func (l *Learner) unchanged(ctx context.Context, partition int, from *origin) (bool, error) {
	m, version, err := l.cfg.Store.Manifest(ctx, state.Head)
	switch {
	case errors.Is(err, state.ErrNone):
		return from.head == nil, nil
	case errors.Is(err, state.ErrCorrupt):
		return false, nil // Load finds one that is not
	case err != nil:
		return false, err
	}
	return from.head != nil && version == from.version && m.Saved.Equal(from.head.Saved), nil
}

// begin begins with a model, and shows it.
func (p *partitionModel) begin(from origin) {
	l := p.l
	p.model = from.model
	if head := from.head; head == nil {
		p.log.Info("starting with an empty model", "epoch", p.epoch)
	} else {
		p.position, p.known, p.order = head.Position, true, head.Order
		p.noteSaved(head, from.version, head.ModelSHA256())
		p.log.Info("going on from a checkpoint", "epoch", p.epoch, "version", from.version,
			"events", head.Events, "next_offset", head.Position.Next)
	}
	if l.cfg.Runner != nil {
		p.model.SetRunner(l.cfg.Runner)
	}
	l.cfg.Metrics.begin(p.partition, p.model.Config())
	l.cfg.Metrics.standings.show(p.partition, p.model.Sources())
	p.status.Resumed = p.model.Events()
	p.publishStatus()
	for _, a := range p.status.Alarms {
		if a.Status.Raised && !l.silent() {
			p.log.Warn("an alarm stands", "kind", a.Kind, "body", a.Body, "since_event", a.Status.Since, "reading", p.status.Reading.String())
		}
	}
}

// restore returns a checkpoint's model, if this learner may continue it, and whether it had to
// adopt this learner's configuration. A model may leave out
// more sources than this learner's configuration: hamlet model replace puts such a model in
// place of another. AdoptConfig takes sources back, if the configuration names any or none.
func (l *Learner) restore(c *state.Checkpoint) (m *model.Model, adopted bool, err error) {
	m, err = model.Restore(c.Model)
	if err != nil {
		return nil, false, err
	}
	cfg := l.cfg.Model
	if cfg.WithoutSources == nil || !l.cfg.AdoptConfig && !slices.ContainsFunc(cfg.WithoutSources, func(name string) bool { return !m.LeavesOut(name) }) {
		if here, there := len(cfg.WithoutSources), len(m.Config().WithoutSources); cfg.WithoutSources != nil && here < there {
			l.cfg.Log.Warn("the model leaves out more sources than the configuration says, and goes on without them: --adopt-config takes them back",
				"here", here, "in_the_model", there)
		}
		cfg.WithoutSources = m.Config().WithoutSources
	}
	differences := cfg.Differences(m.Config())
	if here := l.fresh.Numerics(); here != m.Numerics() {
		differences = append(differences, fmt.Sprintf("numerics: %s here, %s in the model", here, m.Numerics()))
	}
	if len(differences) == 0 {
		return m, false, nil
	}
	err = m.Adopt(cfg)
	switch {
	case err != nil && l.cfg.AdoptConfig:
		return nil, false, err
	case err != nil:
		return nil, false, fmt.Errorf("the model was made with another configuration (%s): start the learner with the model's, "+
			"or a new model under another name; --adopt-config cannot change all of that: %w", strings.Join(differences, "; "), err)
	case !l.cfg.AdoptConfig:
		return nil, false, fmt.Errorf("the model was made with another configuration (%s): start the learner with the model's, "+
			"or with --adopt-config to go on with this one", strings.Join(differences, "; "))
	}
	l.cfg.Log.Warn("adopted another configuration", "differences", strings.Join(differences, "; "))
	return m, true, nil
}

// retry repeats what fails for a transient reason until ctx ends. It logs the first
// failure.
func retry(ctx context.Context, log *slog.Logger, what string, do func() error) error {
	logged := false
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 2*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		switch {
		case err != nil && !errors.Is(err, state.ErrTransient):
			err = backoff.Permanent(err)
		case err != nil && !logged:
			logged = true
			log.Warn("the state cannot be reached: trying again", "to", what, "error", err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0))
	return err
}
