package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/state"
)

// faults are errors that a test has a directory meet.
type faults struct {
	mu   sync.Mutex
	meet func(doing, path string) error
}

func (f *faults) fault(doing, path string) error {
	f.mu.Lock()
	meet := f.meet
	f.mu.Unlock()
	if meet == nil {
		return nil
	}
	return meet(doing, path)
}

func (f *faults) set(meet func(doing, path string) error) {
	f.mu.Lock()
	f.meet = meet
	f.mu.Unlock()
}

// opened opens a directory that meets faults, closed at the end of the test.
func opened(t *testing.T, path string, cfg Config) (*Dir, *faults) {
	t.Helper()
	f := new(faults)
	d, err := open(path, cfg, f.fault)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, f
}

func seize(t *testing.T, s *Store) int64 {
	t.Helper()
	lease, err := s.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	return lease.Epoch
}

func save(t *testing.T, s *Store, c *state.Checkpoint) int64 {
	t.Helper()
	number, err := s.Save(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func glob(t *testing.T, parts ...string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// tiny returns a checkpoint with a model of the given text.
func tiny(epoch, next int64, model string) *state.Checkpoint {
	c := checkpoint(epoch, next)
	c.Model, c.Saved = []byte(model), time.Unix(1_800_000_000, 0)
	return c
}

// flip damages a file.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Close waits for a save, and then nothing can be done.
func TestClosed(t *testing.T) {
	d, f := opened(t, t.TempDir(), Config{})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	in, out := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(in); <-out })
	f.set(func(doing, path string) error {
		if doing == "write" {
			once()
		}
		return nil
	})
	saved, closed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Save(t.Context(), checkpoint(epoch, 5)); saved <- err }()
	<-in
	go func() { closed <- d.Close() }()
	for d.enter() == nil { // Close has not begun
		d.calls.Done()
		time.Sleep(time.Millisecond)
	}
	select {
	case <-closed:
		t.Error("Close did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	close(out)
	if err := errors.Join(<-saved, <-closed); err != nil {
		t.Fatal(err)
	}
	mine := state.Lease{Epoch: epoch, Writer: "w"}
	for name, do := range map[string]func() error{
		"seize":   func() error { _, err := s.Seize(t.Context(), "w"); return err },
		"beat":    func() error { _, err := s.Beat(t.Context(), mine); return err },
		"lease":   func() error { _, err := s.Lease(t.Context()); return err },
		"save":    func() error { _, err := s.Save(t.Context(), checkpoint(epoch, 6)); return err },
		"load":    func() error { _, _, err := s.Load(t.Context(), state.Head); return err },
		"pin":     func() error { return s.Pin(t.Context(), 1) },
		"unpin":   func() error { return s.Unpin(t.Context()) },
		"promote": func() error { return s.Promote(t.Context(), state.Promotion{Model: "m"}) },
		"layout":  func() error { return s.Layout(t.Context()) },
		"store":   func() error { _, err := d.Store("other"); return err },
		"close":   d.Close,
	} {
		if err := do(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: error %v, want ErrClosed", name, err)
		}
	}
}

// Who waits for a store waits no longer than its context.
func TestWaitEnds(t *testing.T) {
	d, f := opened(t, t.TempDir(), Config{})
	s := storeOf(t, d, "m")
	in, out := make(chan struct{}), make(chan struct{})
	f.set(func(doing, path string) error {
		if doing == "write" {
			close(in)
			<-out
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { _, err := s.Seize(t.Context(), "w"); done <- err }()
	<-in
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Lease(ctx); !errors.Is(err, state.ErrTransient) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a passed deadline", err)
	}
	close(out)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A path may have any characters. A directory beside it is another one.
func TestOddPath(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"m[1]", "m1"} {
		d, _ := opened(t, filepath.Join(base, name), Config{Keep: 1, Daily: new(0)})
		s := storeOf(t, d, "m")
		epoch := seize(t, s)
		for next := range int64(4) {
			save(t, s, tiny(epoch, next, name+string('a'+rune(next))))
		}
	}
	for _, name := range []string{"m[1]", "m1"} {
		n := 0
		err := filepath.WalkDir(filepath.Join(base, name, chunkFolder), func(_ string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				n++
			}
			return err
		})
		if err != nil || n != 1 {
			t.Errorf("%s: %d chunks, %v", name, n, err)
		}
	}
}

// A model's name is no path, and none of the directory's own.
func TestModelNames(t *testing.T) {
	d, _ := opened(t, t.TempDir(), Config{})
	for _, name := range []string{
		"", ".", "..", "a/b", `a\b`, "A", "a.b", "chunks", "a*", "a\n", strings.Repeat("a", 65),
	} {
		if s, err := d.Store(name); err == nil || s != nil {
			t.Errorf("%q is a model", name)
		}
	}
	for _, name := range []string{"a", "cand-2", strings.Repeat("a", 64)} {
		storeOf(t, d, name)
	}
}
