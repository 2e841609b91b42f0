package files

import (
	"context"
	"fmt"
	"strings"

	"hamlet/state"
)

// Lease reads the lease. Before the first writer it is the zero Lease.
func (s *Store) Lease(ctx context.Context) (state.Lease, error) {
	_, end, err := s.begin(ctx, "read the lease of")
	if err != nil {
		return state.Lease{}, err
	}
	defer end()
	return s.lease(), nil
}

// Holder is Lease.
func (s *Store) Holder(ctx context.Context) (state.Lease, error) { return s.Lease(ctx) }

func (s *Store) lease() state.Lease {
	return state.Lease{Epoch: s.book.Epoch, Beats: s.beats, Writer: s.writer}
}

// Acquire makes writer the model's only writer, under the next epoch, if nobody has changed the
// lease since it was seen. Else the error wraps [state.ErrStale].
func (s *Store) Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error) {
	return s.take(ctx, "acquire the lease of", writer, &seen)
}

// Seize makes writer the model's only writer, whoever it was before.
func (s *Store) Seize(ctx context.Context, writer string) (state.Lease, error) {
	return s.take(ctx, "seize the lease of", writer, nil)
}

func (s *Store) take(ctx context.Context, doing, writer string, seen *state.Lease) (state.Lease, error) {
	fail, end, err := s.begin(ctx, doing)
	if err != nil {
		return state.Lease{}, err
	}
	defer end()
	if writer == "" || strings.ContainsAny(writer, " \t\n") {
		return state.Lease{}, fail(fmt.Errorf("%q is no writer's word: it has no spaces and is not empty", writer))
	}
	now := s.lease()
	if seen != nil && (now.Epoch != seen.Epoch || now.Beats != seen.Beats || now.Writer != seen.Writer) {
		return state.Lease{}, fail(fmt.Errorf("%w: another writer has the epoch %d", state.ErrStale, now.Epoch))
	}
	b := s.book.clone()
	b.Epoch++
	if err := s.change(b); err != nil {
		return state.Lease{}, fail(err)
	}
	s.beats, s.writer = 1, writer
	return s.lease(), nil
}

// Beat says that the holder of mine lives. If another writer has the model, or the lease is free,
// the error wraps [state.ErrStale].
func (s *Store) Beat(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return s.holding(ctx, "beat for", mine, func() { s.beats++ })
}

// Release frees the lease. Whoever waits may acquire it at once.
func (s *Store) Release(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return s.holding(ctx, "release the lease of", mine, func() { s.beats = 0 })
}

func (s *Store) holding(ctx context.Context, doing string, mine state.Lease, do func()) (state.Lease, error) {
	fail, end, err := s.begin(ctx, doing)
	if err != nil {
		return state.Lease{}, err
	}
	defer end()
	if err := s.owned(mine.Epoch, mine.Writer); err != nil {
		return state.Lease{}, fail(err)
	}
	if s.beats > 0 {
		do()
	} else if doing == "beat for" {
		return state.Lease{}, fail(fmt.Errorf("%w: the lease is free", state.ErrStale))
	}
	return s.lease(), nil
}

// owned returns an error unless the epoch is the store's, and its holder is writer.
func (s *Store) owned(epoch int64, writer string) error {
	switch {
	case s.book.Epoch < epoch:
		return fmt.Errorf("%w: %w: the epoch is %d, this writer has %d", state.ErrStale, state.ErrLost,
			s.book.Epoch, epoch)
	case s.book.Epoch != epoch, s.writer != "" && writer != "" && s.writer != writer:
		return fmt.Errorf("%w: another writer has the epoch %d", state.ErrStale, s.book.Epoch)
	}
	return nil
}
