package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

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
		return p, fmt.Errorf("%s: %w: %s is of another type: promote the model again", doing, state.ErrCorrupt, s.key("promotion"))
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
