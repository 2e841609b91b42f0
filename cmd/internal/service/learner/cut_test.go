package learner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/state"
	"hamlet/stream"
)

// A reached store fails with err, if that is not nil, and counts loads.
type reached struct {
	Store
	mu    sync.Mutex
	err   error
	loads int
}

var errCut = state.Transient(errors.New("cut off"))

func (s *reached) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *reached) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *reached) loaded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

func (s *reached) Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error) {
	s.mu.Lock()
	s.loads++
	s.mu.Unlock()
	if err := s.failure(); err != nil {
		return nil, 0, err
	}
	return s.Store.Load(ctx, which)
}

func (s *reached) Lease(ctx context.Context) (state.Lease, error) {
	if err := s.failure(); err != nil {
		return state.Lease{}, err
	}
	return s.Store.Lease(ctx)
}

func (s *reached) Beat(ctx context.Context, mine state.Lease) (state.Lease, error) {
	if err := s.failure(); err != nil {
		return mine, err
	}
	return s.Store.Beat(ctx, mine)
}

func (s *reached) Release(ctx context.Context, mine state.Lease) (state.Lease, error) {
	if err := s.failure(); err != nil {
		return mine, err
	}
	return s.Store.Release(ctx, mine)
}

func (s *reached) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	if err := s.failure(); err != nil {
		return 0, err
	}
	return s.Store.Save(ctx, c)
}

// A cuttable log fails while it is cut off.
type cuttable struct {
	stream.Log
	off atomic.Bool
}

func (l *cuttable) Bounds(ctx context.Context) (stream.Bounds, error) {
	if l.off.Load() {
		return stream.Bounds{}, stream.ErrAway
	}
	return l.Log.Bounds(ctx)
}

func (l *cuttable) Read(
	ctx context.Context, from int64, most stream.Limit, wait time.Duration,
) ([]stream.Record, int64, error) {
	if l.off.Load() {
		return nil, 0, stream.ErrAway
	}
	records, end, err := l.Log.Read(ctx, from, most, wait)
	if l.off.Load() { // it was cut off while it waited
		return nil, 0, stream.ErrAway
	}
	return records, end, err
}
