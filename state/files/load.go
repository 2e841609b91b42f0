package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"hamlet/state"
)

// Load returns the checkpoint that a pointer names and its version or, where that is corrupt, the
// newest before it that is whole. Before the first save the error wraps [state.ErrNone].
func (s *Store) Load(ctx context.Context, which state.Pointer) (c *state.Checkpoint, number int64, err error) {
	b, fail, end, err := s.reading(ctx, "load the "+which.String()+" of")
	if err != nil {
		return nil, 0, err
	}
	defer end()
	number, err = s.newest(&b, which, func(v *version) (err error) { c, err = s.read(v); return err })
	if err != nil {
		return nil, 0, fail(err)
	}
	return c, number, nil
}

// LoadVersion returns a kept version. If it is not kept the error wraps [state.ErrNone].
func (s *Store) LoadVersion(ctx context.Context, number int64) (*state.Checkpoint, error) {
	b, fail, end, err := s.reading(ctx, fmt.Sprintf("load version %d of", number))
	if err != nil {
		return nil, err
	}
	defer end()
	v := b.find(number)
	if v == nil {
		return nil, fail(state.ErrNone)
	}
	c, err := s.read(v)
	return c, fail(err)
}

// Manifest returns the manifest of the version that a pointer names, and its number. Where that is
// corrupt, it is of a version before.
func (s *Store) Manifest(ctx context.Context, which state.Pointer) (m *state.Manifest, number int64, err error) {
	b, fail, end, err := s.reading(ctx, "read the manifest of the "+which.String()+" of")
	if err != nil {
		return nil, 0, err
	}
	defer end()
	number, err = s.newest(&b, which, func(v *version) (err error) { m, err = s.manifest(v); return err })
	if err != nil {
		return nil, 0, fail(err)
	}
	return m, number, nil
}

// Heading describes what a pointer names. It reads no file.
func (s *Store) Heading(ctx context.Context, which state.Pointer) (state.Heading, error) {
	fail, end, err := s.begin(ctx, "read "+which.String()+" of")
	if err != nil {
		return state.Heading{}, err
	}
	defer end()
	v := s.book.find(s.book.pointer(which))
	if v == nil {
		return state.Heading{Pinned: s.book.Pinned}, fail(state.ErrNone)
	}
	return state.Heading{
		Version: v.Number, Next: v.Next, Identity: v.Identity, Model: v.SHA256,
		Pinned: s.book.Pinned, Epoch: v.Epoch, Writer: v.Writer,
	}, nil
}

// Versions returns the kept versions, newest first, and behind them the lost ones. It leaves out those
// whose manifest is damaged. Before the first save the error wraps [state.ErrNone].
func (s *Store) Versions(ctx context.Context) (infos []state.VersionInfo, err error) {
	b, fail, end, err := s.reading(ctx, "list the versions of")
	if err != nil {
		return nil, err
	}
	defer end()
	if len(b.Versions) == 0 {
		return nil, fail(state.ErrNone)
	}
	for i := len(b.Versions) - 1; i >= 0; i-- {
		v := &b.Versions[i]
		m, err := s.manifest(v)
		if err != nil && !errors.Is(err, state.ErrCorrupt) {
			return nil, fail(err)
		}
		if err != nil {
			s.dir.cfg.Log.Warn("a version cannot be read", "model", s.model, "version", v.Number, "error", err)
			continue
		}
		infos = append(infos, state.VersionInfo{
			Version: v.Number, Epoch: m.Epoch, Events: m.Events, Position: m.Position, Saved: m.Saved, SHA256: m.Model,
			Bytes: m.Length, Numerics: m.Numerics, Config: m.Config,
			Pinned: b.Pinned == v.Number, Head: b.Head == v.Number, Served: b.served() == v.Number,
			Replaced: v.Replaced, Lost: v.Lost,
		})
	}
	slices.SortStableFunc(infos, func(v, w state.VersionInfo) int {
		switch {
		case v.Lost == w.Lost:
			return 0
		case v.Lost:
			return 1
		}
		return -1
	})
	return infos, nil
}

// Pinned returns the version that an operator pinned, 0 if there is none.
func (s *Store) Pinned(ctx context.Context) (int64, error) {
	_, end, err := s.begin(ctx, "read the pin of")
	if err != nil {
		return 0, err
	}
	defer end()
	return s.book.Pinned, nil
}

// Beside returns the store of another model of the directory.
func (s *Store) Beside(model string) (state.Store, error) { return s.dir.Store(model) }

// Models returns the names of the models of the directory that have a checkpoint, in order.
func (s *Store) Models(ctx context.Context) (names []string, err error) {
	fail := s.fail("list the models beside")
	entries, err := os.ReadDir(s.dir.path)
	if err != nil {
		return nil, fail(err)
	}
	for _, e := range entries {
		if !e.IsDir() || !isModel(e.Name()) {
			continue
		}
		store, err := s.dir.Store(e.Name())
		if err != nil {
			return nil, err
		}
		switch _, err := store.Heading(ctx, state.Head); {
		case errors.Is(err, state.ErrNone):
		case err != nil && !errors.Is(err, state.ErrCorrupt):
			return nil, err
		default:
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Ping returns [ErrClosed] once the directory is closed.
func (s *Store) Ping(ctx context.Context) error { return s.Layout(ctx) }

// Close does nothing: the directory is closed.
func (s *Store) Close() error { return nil }

// Layout returns nil: a model here has one log.
func (s *Store) Layout(context.Context) error {
	if err := s.dir.enter(); err != nil {
		return s.fail("read the layout of")(err)
	}
	s.dir.calls.Done()
	return nil
}
