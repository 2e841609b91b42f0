package incidents

import (
	"context"
	"errors"
	"sync"
	"time"

	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/state/redis"
)

const (
	loadAgain = 15 * time.Second // a model is some 30 MB, and decoding it takes a tenth of a second
	failAgain = 2 * time.Second
	loadTime  = 5 * time.Second
)

// facts are what the saved model says about its alarms.
type facts struct {
	Events uint64
	Saved  time.Time
	Alarms []model.Alarm
	Pasts  []model.NoisePast

	version int64
	of      string    // what tells the version from others of its number
	next    time.Time // when to load again
	err     error     // of the last time; then the rest is older
}

// saved loads the saved model for all readers. It loads it when somebody asks, at most every
// loadAgain, and only if there is another version.
type saved struct {
	store *redis.Store
	now   func() time.Time

	mu    sync.Mutex // held while it is loaded
	known *facts     // nil: no model was saved
}

// get returns the facts, nil if no model was saved. After an error they are older, or nil.
func (s *saved) get(ctx context.Context) (*facts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.known
	if f != nil && s.now().Before(f.next) {
		return f.shown(), f.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime) // the answer is for others too
	defer cancel()
	fresh, err := s.load(ctx, f)
	switch {
	case errors.Is(err, state.ErrNone):
		s.known = nil // it costs nothing to ask again
		return nil, nil
	case err != nil:
		fresh = &facts{}
		if f != nil {
			*fresh = *f
		}
		fresh.next, fresh.err = s.now().Add(failAgain), err
	default:
		fresh.next, fresh.err = s.now().Add(loadAgain), nil
	}
	s.known = fresh
	return fresh.shown(), err
}

// shown returns f unless nothing was ever loaded.
func (f *facts) shown() *facts {
	if f.version == 0 {
		return nil
	}
	return f
}

// load returns the facts of the newest version, which may be those before.
func (s *saved) load(ctx context.Context, before *facts) (*facts, error) {
	heading, err := s.store.Heading(ctx, state.Head)
	if err != nil {
		return nil, err
	}
	if before != nil && before.version == heading.Version && before.of == heading.Identity {
		same := *before
		return &same, nil
	}
	checkpoint, version, err := s.store.Load(ctx, state.Head)
	if err != nil {
		return nil, err
	}
	m, err := model.Restore(checkpoint.Model)
	if err != nil {
		return nil, err
	}
	return &facts{Events: m.Events(), Saved: checkpoint.Saved, Alarms: m.Alarms(), Pasts: m.NoisePasts(), version: version, of: heading.Identity}, nil
}
