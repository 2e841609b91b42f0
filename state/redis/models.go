package redis

import (
	"context"
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

// LoadVersion returns the checkpoint of one version and verifies every hash. In contrast
// to [Store.Load] it takes no other in its place: the error wraps [state.ErrNone] if the
// version is not kept, and [state.ErrCorrupt] if it is not whole.
func (s *Store) LoadVersion(ctx context.Context, number int64) (*state.Checkpoint, error) {
	kept, err := s.node(ctx).Exists(ctx, s.versionKey(number)).Result()
	if err == nil && kept == 0 {
		err = state.ErrNone
	}
	var v version
	if err == nil {
		v, err = s.loadVersion(ctx, number)
	}
	if err != nil {
		return nil, s.explain(s.doing(fmt.Sprintf("load version %d of", number)), err)
	}
	return v.checkpoint, nil
}
