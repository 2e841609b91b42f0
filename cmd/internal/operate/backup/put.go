package backup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"hamlet/cmd/internal/process/cli"
	"hamlet/state"
	"hamlet/state/redis"
)

// open returns the store of a model. It keeps all versions that Redis has and all of the
// backup: the learner's saves keep those that its own flags say.
func (r *restoring) open(m *Model) (state.Store, error) {
	if r.dir != nil {
		return r.dir.Store(m.Name)
	}
	cfg, err := r.c.Redis.Config(m.Name, r.log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	cfg.Keep = max(cfg.Keep, len(m.Partitions[0].Versions), r.kept[m.Name]+1, 3)
	redis.SetLogger(r.log)
	return redis.New(cfg)
}

// place names where the models go.
func (r *restoring) place() string {
	if r.dir != nil {
		return r.dir.Path()
	}
	return "redis"
}

// keys names what a model is kept in, for who has to delete it.
func (r *restoring) keys(model, inRedis string) string {
	if r.dir != nil {
		return filepath.Join(r.dir.Path(), "models", model)
	}
	return inRedis
}

// takes returns an error if Redis holds something that a model must not take the place of.
func (r *restoring) takes(ctx context.Context, store state.Store, m *Model) error {
	if err := store.Layout(ctx); err != nil {
		return err
	}
	versions, err := store.Versions(ctx)
	if errors.Is(err, state.ErrNone) {
		return nil
	} else if err != nil {
		return err
	}
	if !r.c.Replace {
		return cli.Usagef("%s keeps this model already: --replace puts the backup in its place", r.place())
	}
	r.kept[m.Name] = len(versions)
	r.show(fmt.Sprintf("reading %s from %s", m.Name, r.place()))
	head, _, err := store.Load(ctx, state.Head)
	switch v := m.Partitions[0].newest(); {
	case errors.Is(err, state.ErrCorrupt):
		return fmt.Errorf("%w; to restore this backup, delete %s, then run this command with --replace",
			err, r.keys(m.Name, "these keys"))
	case err != nil:
		return err
	case r.c.NewLog:
		return fmt.Errorf("%s keeps this model, and --new-log begins at offset 0: delete %s first",
			r.place(), r.keys(m.Name, "its keys"))
	case head.Position.Next > v.Position:
		return fmt.Errorf("%s is newer: it has learnt up to offset %d there, and up to %d in the backup; "+
			"to answer from an earlier version, hamlet model pin; to go back for good, delete %s first",
			r.place(), head.Position.Next, v.Position, r.keys(m.Name, "the model's keys"))
	}
	return nil
}

// model writes a model: all versions, the oldest first. What was checked is read again, one
// version at a time.
//
// Where the store keeps the model, only the newest version is written, in place of the version before,
// and a pin of the store's stays.
func (r *restoring) model(ctx context.Context, store state.Store, m *Model) (one RestoredVersion, err error) {
	one.Model = m.Name
	p := &m.Partitions[0]
	versions := p.Versions
	// This store then knows a head that is not whole, and may go back behind it.
	_, one.Before, err = store.Load(ctx, state.Head)
	if err != nil && !errors.Is(err, state.ErrNone) {
		return one, err
	}
	replaces := err == nil
	same := p.Pinned == 0 // as in the backup: what is pinned
	if replaces || r.c.NewLog {
		versions = versions[len(versions)-1:]
	}
	if replaces {
		answers, err := store.Heading(ctx, state.Served)
		if err != nil {
			return one, err
		}
		if answers.Pinned == answers.Version && answers.Identity != "" { // else there is no pin, or its version is lost
			one.Pinned = answers.Version
			same = slices.ContainsFunc(p.Versions, func(v Version) bool {
				return v.Version == p.Pinned && v.SHA256 == answers.Model
			})
		}
		if err := store.MarkReplaced(ctx, one.Before); err != nil {
			return one, err
		}
	}
	lease, err := store.Seize(ctx, "restore")
	if err != nil {
		return one, err
	}
	defer store.Release(context.WithoutCancel(ctx), lease) // else a learner waits until it lapses
	for i := range versions {
		v := &versions[i]
		r.show(fmt.Sprintf("restoring %s, version %d", m.Name, v.Version))
		c, err := r.from.checkpoint(v)
		if err != nil {
			return one, err
		}
		c.Epoch, c.Writer = lease.Epoch, lease.Writer
		if r.c.NewLog {
			c.Position = state.Position{}
		}
		number, err := store.Save(ctx, c)
		if errors.Is(err, state.ErrStale) {
			err = fmt.Errorf("a learner has saved meanwhile: stop it: %w", err)
		}
		if err != nil {
			return one, err
		}
		one.Version, one.Version.Version = *v, number
		one.Versions++
		if v.Replaced {
			err = store.MarkReplaced(ctx, number)
		}
		if err == nil && v.Version == p.Pinned && one.Pinned == 0 {
			one.Pinned, same = number, true
			err = store.Pin(ctx, number)
		}
		if err != nil {
			return one, err
		}
	}
	if r.c.NewLog {
		one.Position = 0
	}
	if !same {
		one.Unpinned = p.Pinned
	}
	if replaces && one.Pinned == 0 {
		if err := store.Unpin(ctx); err != nil {
			return one, err
		}
	}
	one.Promoted, err = promote(ctx, store, m)
	return one, err
}

// promote lets the model answer that answered in the place of m, unless Redis says already who
// does. It returns its name, "" for nobody.
func promote(ctx context.Context, store state.Store, m *Model) (string, error) {
	p, err := m.promotion()
	if err != nil || p == nil {
		return "", err
	}
	if _, err := store.Promotion(ctx); !errors.Is(err, state.ErrNone) {
		return "", err
	}
	return p.Model, store.Promote(ctx, *p)
}
