package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hamlet/cmd/internal/cli"
	"hamlet/state"
	"hamlet/state/redis"
)

// open returns the store of a model. It keeps all versions that Redis has and all of the
// backup: the learner's saves keep those that its own flags say.
func (r *restoring) open(m *Model) (*redis.Store, error) {
	cfg, err := r.c.Redis.Config(m.Name, r.log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	for i := range m.Partitions {
		cfg.Keep = max(cfg.Keep, len(m.Partitions[i].Versions), r.kept[m.Name]+1, 3)
	}
	redis.SetLogger(r.log)
	return redis.New(cfg)
}

// takes returns an error if Redis holds something that a model must not take the place of.
func (r *restoring) takes(ctx context.Context, store *redis.Store, m *Model) error {
	existing, err := store.Partitions(ctx)
	if err != nil {
		return err
	}
	if len(existing) > 0 && !r.c.Replace {
		return cli.Usagef("redis keeps this model already: --replace puts the backup in its place")
	}
	for _, number := range existing {
		i := slices.IndexFunc(m.Partitions, func(p Partition) bool { return p.Partition == number })
		if i < 0 {
			return fmt.Errorf("redis keeps partition %d, which is not in the backup and would stay as it is: delete its keys first", number)
		}
		v := m.Partitions[i].newest()
		versions, err := store.Versions(ctx)
		if err != nil && !errors.Is(err, state.ErrNone) {
			return err
		}
		r.kept[m.Name] = max(r.kept[m.Name], len(versions))
		r.show(fmt.Sprintf("reading %s, partition %d, from redis", m.Name, number))
		head, _, err := store.Load(ctx, state.Head)
		switch {
		case errors.Is(err, state.ErrNone):
			continue
		case errors.Is(err, state.ErrCorrupt):
			return fmt.Errorf("%w; to restore this backup, delete these keys, then run this command with --replace", err)
		case err != nil:
			return err
		case r.c.NewLog:
			return fmt.Errorf("redis keeps partition %d, and --new-log begins at offset 0: delete its keys first", number)
		case (len(head.Order) > 0) != (len(v.manifest.Order) > 0):
			return fmt.Errorf("partition %d is learnt in the order of a log in one of redis and the backup, and alone in the other", number)
		case head.Position.Next > v.Position:
			return fmt.Errorf("redis is newer: partition %d has learnt up to offset %d there, and up to %d in the backup; "+
				"to answer from an earlier version, hamlet model pin; to go back for good, delete the model's keys first", number, head.Position.Next, v.Position)
		}
	}
	return nil
}

// model writes a model. What was checked is read again, one version at a time.
//
// Where Redis keeps the model, only the newest version is written.
func (r *restoring) model(ctx context.Context, store *redis.Store, m *Model) (restored []RestoredVersion, err error) {
	existing, err := store.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	before, served, pinned := map[int]int64{}, map[int]int64{}, map[int]bool{}
	for _, number := range existing {
		// This store then knows a head that is not whole, and may go back behind it.
		_, head, err := store.Load(ctx, state.Head)
		if errors.Is(err, state.ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		answers, err := store.Heading(ctx, state.Served)
		if err != nil {
			return nil, err
		}
		before[number], served[number], pinned[number] = head, answers.Version, answers.Pinned != 0
	}
	for i := range m.Partitions {
		one, err := r.partition(ctx, store, m.Name, &m.Partitions[i], before[m.Partitions[i].Partition])
		if err != nil {
			return restored, err
		}
		if p := one.Partition; pinned[p] {
			one.Pinned = served[p]
		}
		restored = append(restored, one)
	}
	if len(served) > 0 && !pinned[0] {
		if err := store.Unpin(ctx); err != nil {
			return restored, err
		}
	}
	promoted, err := promote(ctx, store, m)
	for i := range restored {
		restored[i].Promoted = promoted
	}
	return restored, err
}

// promote lets the model answer that answered in the place of m, unless Redis says already who
// does. It returns its name, "" for nobody.
func promote(ctx context.Context, store *redis.Store, m *Model) (string, error) {
	p, err := m.promotion()
	if err != nil || p == nil {
		return "", err
	}
	if _, err := store.Promotion(ctx); !errors.Is(err, state.ErrNone) {
		return "", err
	}
	return p.Model, store.Promote(ctx, *p)
}

// partition writes all versions of a partition that Redis lacks, the oldest first, or the newest
// in place of the version before.
func (r *restoring) partition(ctx context.Context, store *redis.Store, model string, p *Partition, before int64) (RestoredVersion, error) {
	one := RestoredVersion{Model: model, Partition: p.Partition, Before: before}
	versions := p.Versions
	if before != 0 || r.c.NewLog {
		versions = versions[len(versions)-1:]
	}
	if before != 0 {
		if err := store.MarkReplaced(ctx, before); err != nil {
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
		r.show(fmt.Sprintf("restoring %s, partition %d, version %d", model, p.Partition, v.Version))
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
		if err == nil && v.Version == p.Pinned && before == 0 {
			one.Pinned = number
			err = store.Pin(ctx, number)
		}
		if err != nil {
			return one, err
		}
	}
	if r.c.NewLog {
		one.Position = 0
		if one.Pinned == 0 {
			one.Unpinned = p.Pinned
		}
	}
	return one, nil
}
