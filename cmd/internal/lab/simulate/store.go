package simulate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"hamlet/state"
	"hamlet/state/files"
)

// A vault keeps the checkpoints of all nodes: a directory of the real store, on a file system that
// is as fast as memory where there is one. It can be set back, emptied and damaged.
type vault struct {
	path string
	cfg  files.Config

	mu    sync.RWMutex // of dir; calls hold it for reading
	dir   *files.Dir
	older []aged // copies of the directory, the oldest first
}

type aged struct {
	at   time.Time
	path string
}

// openVault opens a directory, which may hold models already.
func openVault(path string, cfg files.Config) (*vault, error) {
	v := &vault{path: path, cfg: cfg}
	return v, v.open()
}

func (v *vault) current() string { return filepath.Join(v.path, "now") }

func (v *vault) open() (err error) {
	v.dir, err = files.Open(v.current(), v.cfg)
	return err
}

// close ends the store.
func (v *vault) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dir.Close()
}

// copyStore copies a store. Chunks, which nobody writes to once they have their name, become another name
// of the same file where the system can do that: they are most of a store, and worlds copy it often.
func copyStore(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, from)
		if d.IsDir() {
			return os.MkdirAll(to+name, 0o700)
		}
		if isChunk(name) && os.Link(path, to+name) == nil {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to+name, b, 0o600)
	})
}

// isChunk reports whether a file of a store is a chunk.
func isChunk(path string) bool { return strings.Contains(path, "chunk") }

// rewrite puts other bytes in the place of a file's. Copies of the store keep those that they have.
func rewrite(path string, b []byte) error {
	fresh := filepath.Join(filepath.Dir(path), ".rewritten")
	if err := os.WriteFile(fresh, b, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// keep copies the directory as it is, for setBack.
func (v *vault) keep() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	to := filepath.Join(v.path, fmt.Sprint("older-", len(v.older)))
	if err := copyStore(to, v.current()); err != nil {
		return err
	}
	v.older = append(v.older, aged{time.Now(), to})
	return nil
}

// replace puts another directory in the place of this one; "": an empty one.
func (v *vault) replace(by string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := errors.Join(v.dir.Close(), os.RemoveAll(v.current())); err != nil {
		return err
	}
	if by != "" {
		if err := copyStore(v.current(), by); err != nil {
			return err
		}
	}
	return v.open()
}

// setBack makes the store what it was at t, or at its beginning.
func (v *vault) setBack(t time.Time) error {
	by := ""
	v.mu.RLock()
	for _, a := range v.older {
		if !a.at.After(t) {
			by = a.path
		}
	}
	v.mu.RUnlock()
	return v.replace(by)
}

// A shelf is the store as a node sees it. It implements [state.Store].
type shelf struct {
	*node
	vault *vault
	model string
}

// ask calls a method of the store.
func ask[R any](ctx context.Context, s *shelf, method string, do func(store state.Store) (R, error)) (
	value R, err error) {
	err = s.call(ctx, portStore, method, func() error {
		if s.hasNoRoom(method) {
			return fmt.Errorf("%s: %w", method, state.Transient(syscall.ENOSPC))
		}
		if loads[method] && s.misreads() {
			s.vault.mu.Lock()
			defer s.vault.mu.Unlock()
			_, undo, err := s.vault.flipNewest(s.world.plan.Seed)
			if err != nil {
				return err
			}
			store, err := s.vault.dir.Store(s.model)
			if err == nil {
				value, err = do(store)
			}
			return errors.Join(err, undo())
		}
		s.vault.mu.RLock()
		defer s.vault.mu.RUnlock()
		store, err := s.vault.dir.Store(s.model)
		if err != nil {
			return err
		}
		value, err = do(store)
		return err
	})
	if errors.Is(err, errAway) || errors.Is(err, errDead) {
		var none R
		if errors.Is(ctx.Err(), context.Canceled) { // it does not pass
			return none, err
		}
		return none, state.Transient(err)
	}
	return value, err
}

// The methods that need room, and those that read chunks.
var (
	writes = map[string]bool{
		"Save": true, "Acquire": true, "Seize": true, "Beat": true, "Release": true, "StepBack": true, "Pin": true,
		"Unpin": true, "MarkReplaced": true, "Promote": true,
	}
	loads = map[string]bool{"Load": true, "LoadVersion": true}
)

// hasNoRoom reports whether the store has no room for what a method writes.
func (s *shelf) hasNoRoom(method string) bool {
	w := s.world
	w.mu.Lock()
	now := time.Now()
	full := writes[method] && now.Before(w.fullStore[0]) || method == "Save" && now.Before(w.fullStore[1])
	w.mu.Unlock()
	if full {
		w.did(StoreFull)
	}
	return full
}

// misreads reports whether the node reads a wrong bit.
func (s *shelf) misreads() bool {
	misreads := time.Now().Before(s.cutOff(string(Misread)))
	if misreads {
		s.world.did(Misread)
	}
	return misreads
}

func do(ctx context.Context, s *shelf, method string, with func(store state.Store) error) error {
	_, err := ask(ctx, s, method, func(store state.Store) (struct{}, error) { return struct{}{}, with(store) })
	return err
}

type numbered[T any] struct {
	value  *T
	number int64
}

func (s *shelf) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	dated := *c
	s.mu.Lock()
	wrong := s.clock
	s.mu.Unlock()
	if dated.Saved = c.Saved.Add(wrong); wrong != 0 {
		s.world.effect(Clock)
	}
	return ask(ctx, s, "Save", func(store state.Store) (int64, error) {
		number, err := store.Save(ctx, &dated)
		c.ModelSHA256, c.Length = dated.ModelSHA256, dated.Length
		if err == nil {
			s.world.saved(s.name, s.model, number, &dated)
		}
		return number, err
	})
}

func (s *shelf) Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error) {
	r, err := ask(ctx, s, "Load", func(store state.Store) (r numbered[state.Checkpoint], err error) {
		r.value, r.number, err = store.Load(ctx, which)
		return r, err
	})
	return r.value, r.number, err
}

func (s *shelf) LoadVersion(ctx context.Context, version int64) (*state.Checkpoint, error) {
	return ask(ctx, s, "LoadVersion", func(store state.Store) (*state.Checkpoint, error) {
		return store.LoadVersion(ctx, version)
	})
}

func (s *shelf) Manifest(ctx context.Context, which state.Pointer) (*state.Manifest, int64, error) {
	r, err := ask(ctx, s, "Manifest", func(store state.Store) (r numbered[state.Manifest], err error) {
		r.value, r.number, err = store.Manifest(ctx, which)
		return r, err
	})
	return r.value, r.number, err
}

func (s *shelf) Heading(ctx context.Context, which state.Pointer) (state.Heading, error) {
	return ask(ctx, s, "Heading", func(store state.Store) (state.Heading, error) { return store.Heading(ctx, which) })
}

func (s *shelf) Versions(ctx context.Context) ([]state.VersionInfo, error) {
	return ask(ctx, s, "Versions", func(store state.Store) ([]state.VersionInfo, error) { return store.Versions(ctx) })
}

func (s *shelf) Layout(context.Context) error { return nil }

func (s *shelf) Lease(ctx context.Context) (state.Lease, error) {
	return ask(ctx, s, "Lease", func(store state.Store) (state.Lease, error) { return store.Lease(ctx) })
}

func (s *shelf) Holder(ctx context.Context) (state.Lease, error) { return s.Lease(ctx) }

func (s *shelf) Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error) {
	return ask(ctx, s, "Acquire", func(store state.Store) (state.Lease, error) { return store.Acquire(ctx, seen, writer) })
}

func (s *shelf) Seize(ctx context.Context, writer string) (state.Lease, error) {
	return ask(ctx, s, "Seize", func(store state.Store) (state.Lease, error) { return store.Seize(ctx, writer) })
}

func (s *shelf) Beat(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return ask(ctx, s, "Beat", func(store state.Store) (state.Lease, error) { return store.Beat(ctx, mine) })
}

func (s *shelf) Release(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return ask(ctx, s, "Release", func(store state.Store) (state.Lease, error) { return store.Release(ctx, mine) })
}

func (s *shelf) StepBack(ctx context.Context, mine state.Lease, to int64) error {
	return do(ctx, s, "StepBack", func(store state.Store) error {
		err := store.StepBack(ctx, mine, to)
		if err == nil {
			s.world.steppedBack(s.name, s.model, to)
		}
		return err
	})
}

func (s *shelf) Pin(ctx context.Context, version int64) error {
	return do(ctx, s, "Pin", func(store state.Store) error {
		err := store.Pin(ctx, version)
		if err == nil {
			s.world.pins(s.model, true)
		}
		return err
	})
}

func (s *shelf) Unpin(ctx context.Context) error {
	return do(ctx, s, "Unpin", func(store state.Store) error {
		s.world.pins(s.model, false)
		return store.Unpin(ctx)
	})
}

func (s *shelf) Pinned(ctx context.Context) (int64, error) {
	return ask(ctx, s, "Pinned", func(store state.Store) (int64, error) { return store.Pinned(ctx) })
}

func (s *shelf) MarkReplaced(ctx context.Context, version int64) error {
	return do(ctx, s, "MarkReplaced", func(store state.Store) error { return store.MarkReplaced(ctx, version) })
}

func (s *shelf) Promote(ctx context.Context, p state.Promotion) error {
	return do(ctx, s, "Promote", func(store state.Store) error {
		s.world.promoting(p.Model)
		return store.Promote(ctx, p)
	})
}

func (s *shelf) Promotion(ctx context.Context) (state.Promotion, error) {
	return ask(ctx, s, "Promotion", func(store state.Store) (state.Promotion, error) { return store.Promotion(ctx) })
}

func (s *shelf) Beside(model string) (state.Store, error) { return &shelf{s.node, s.vault, model}, nil }

func (s *shelf) Models(ctx context.Context) ([]string, error) {
	return ask(ctx, s, "Models", func(store state.Store) ([]string, error) { return store.Models(ctx) })
}

func (s *shelf) Ping(ctx context.Context) error {
	return do(ctx, s, "Ping", func(store state.Store) error { return store.Ping(ctx) })
}

func (s *shelf) Close() error { return nil }
