package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// scanned is how many keys Redis looks at in one step of a scan.
const scanned = 1000

// Models returns the names of all models of the database that have a checkpoint, in
// order. It looks at every key of the database, in steps, and in a Cluster at those of every
// master. It passes over names that are no model's.
func (s *Store) Models(ctx context.Context) ([]string, error) {
	const prefix, suffix = "hamlet:{", "}:0:partitions"
	var names []string
	err := s.masters(ctx, func(master *redis.Client, _ string) error {
		keys := master.Scan(ctx, 0, prefix+"*"+suffix, scanned).Iterator()
		for keys.Next(ctx) {
			name := strings.TrimSuffix(strings.TrimPrefix(keys.Val(), prefix), suffix)
			if state.IsModelName(name) {
				names = append(names, name)
			}
		}
		return keys.Err()
	})
	if err != nil {
		return nil, s.explain("list the models", err)
	}
	slices.Sort(names) // a scan may return a key twice
	return slices.Compact(names), nil
}

// Beside returns the store of another model of the same database, which shares the connections
// of s. It need not be closed, and is of use until s is closed.
func (s *Store) Beside(model string) (state.Store, error) {
	cfg := s.cfg
	cfg.Model = model
	if !state.IsModelName(model) {
		return nil, fmt.Errorf("redis store: model %q: a name has 1 to 64 small letters, digits and hyphens", model)
	}
	return &Store{
		cfg: cfg, client: s.client, cluster: s.cluster, shared: true, watcher: s.watcher,
		writing: pace{least: minLimit}, reading: pace{least: minLimit},
	}, nil
}

// Promotion says which model answers in the place of the store's. The error wraps
// [state.ErrNone] if nobody has promoted one, and [state.ErrCorrupt] if that cannot be read.
func (s *Store) Promotion(ctx context.Context) (p state.Promotion, err error) {
	doing := "read which model answers for " + s.cfg.Model
	b, err := s.node(ctx).Get(ctx, s.key("promotion")).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return p, s.explain(doing, state.ErrNone)
	case otherType(err):
		return p, fmt.Errorf("%s: %w: %s is of another type: promote the model again",
			doing, state.ErrCorrupt, s.key("promotion"))
	case err != nil:
		return p, s.explain(doing, err)
	}
	if err := p.UnmarshalBinary(b); err != nil {
		return p, fmt.Errorf("%s: %w: promote the model again", doing, err)
	}
	return p, nil
}

// Promote says which model answers in the place of the store's from now on. It is one write:
// the last of two at the same time counts.
func (s *Store) Promote(ctx context.Context, p state.Promotion) error {
	b, err := p.AppendBinary(nil)
	if err != nil {
		return err
	}
	return s.explain("say which model answers for "+s.cfg.Model, s.node(ctx).Set(ctx, s.key("promotion"), b, 0).Err())
}
