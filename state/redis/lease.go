package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

//go:embed lease.lua
var leaseSource string

var leases = redis.NewScript(leaseSource)

// Lease reads the lease. Before the first writer it is the zero Lease.
func (s *Store) Lease(ctx context.Context) (state.Lease, error) {
	return s.lease(ctx, "read the lease of", 0, "read", s.watcher)
}

// Holder returns the lease as Lease does, with rights to read alone. Saved is always false.
func (s *Store) Holder(ctx context.Context) (state.Lease, error) {
	doing := s.doing("read who learns")
	get := s.node(ctx).Pipeline()
	epochs, leases := get.Get(ctx, s.key("epoch")), get.Get(ctx, s.key("lease"))
	if _, err := get.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return state.Lease{}, s.explain(doing, err)
	}
	var l state.Lease
	var of int64
	l.Epoch, _ = epochs.Int64()
	n, _ := fmt.Sscanf(leases.Val(), "%d %d %s", &of, &l.Beats, &l.Writer)
	switch {
	case l.Epoch == 0:
		return state.Lease{}, nil
	case n < 3 || of != l.Epoch:
		return state.Lease{Epoch: l.Epoch, Beats: state.Unbeaten}, nil
	}
	return l, nil
}

// Acquire makes writer the model's only writer, under the next epoch, if nobody has changed the
// lease since it was seen. The writer before gets [state.ErrStale] from then on. If the lease is
// not as seen the error wraps state.ErrStale, and nothing changes. An Acquire whose reply was
// lost may have succeeded: the next Lease then names writer.
func (s *Store) Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error) {
	return s.take(ctx, "acquire the lease of", writer, "acquire", seen.Epoch, seen.Beats, seen.Writer)
}

// Seize makes writer the model's only writer, whoever it was before. Programs of operators do
// that, which put another model into the place of the one that is learnt.
func (s *Store) Seize(ctx context.Context, writer string) (state.Lease, error) {
	return s.take(ctx, "seize the lease of", writer, "seize")
}

func (s *Store) take(ctx context.Context, doing, writer, operation string, seen ...any) (state.Lease, error) {
	if writer == "" || strings.ContainsAny(writer, " \t\n") {
		return state.Lease{}, fmt.Errorf("redis store: %q is no writer's word: it has no spaces and is not empty", writer)
	}
	s.mu.Lock()
	above := s.cache.epoch
	s.mu.Unlock()
	l, err := s.lease(ctx, doing, 0, append([]any{operation, s.key(""), above, writer}, seen...)...)
	if err != nil {
		return l, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.epoch = max(s.cache.epoch, l.Epoch)
	return l, nil
}

// Beat says that the holder of mine lives. If another writer has taken the model the error wraps
// [state.ErrStale]; if the store has lost the epoch, [state.ErrLost] too.
func (s *Store) Beat(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return s.lease(ctx, "beat for", mine.Epoch, "beat", mine.Epoch, mine.Writer)
}

// Release frees the lease. Whoever waits may acquire it at once. The error wraps
// [state.ErrStale] if another writer has taken the model.
func (s *Store) Release(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return s.lease(ctx, "release the lease of", mine.Epoch, "release", mine.Epoch, mine.Writer)
}

// stale returns the error of a writer that has another epoch than Redis.
func stale(doing, current string, mine int64) error {
	if epoch, err := strconv.ParseInt(current, 10, 64); err != nil || epoch < mine {
		return fmt.Errorf("%s: %w: %w: the epoch is %.40q, this writer has %d",
			doing, state.ErrStale, state.ErrLost, current, mine)
	}
	return fmt.Errorf("%s: %w: another writer has the epoch %s", doing, state.ErrStale, current)
}

// lease runs one operation. mine is the epoch that the caller holds; 0: it does not say.
func (s *Store) lease(ctx context.Context, doing string, mine int64, args ...any) (state.Lease, error) {
	doing = s.doing(doing)
	keys := []string{s.key("epoch"), s.key("lease"), s.key("head"), s.key("refs")}
	reply, err := leases.Run(ctx, s.node(ctx), keys, args...).StringSlice()
	if err != nil {
		return state.Lease{}, s.explain(doing, err)
	}
	if len(reply) == 2 && reply[0] == "stale" {
		return state.Lease{}, stale(doing, reply[1], mine)
	}
	if len(reply) != 4 {
		return state.Lease{}, fmt.Errorf("%s: the script answered %q", doing, reply)
	}
	l := state.Lease{Writer: reply[2], Saved: reply[3] == "1"}
	var errs [2]error
	l.Epoch, errs[0] = strconv.ParseInt(reply[0], 10, 64)
	l.Beats, errs[1] = strconv.ParseInt(reply[1], 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return state.Lease{}, fmt.Errorf("%s: %w", doing, err)
	}
	return l, nil
}
