package files

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hamlet/state"
)

// Whatever directory is made has its name made durable in the one above. Before a chunk that is there
// is trusted its name is made durable, once.
func TestFoldersAreDurable(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(base, "a", "b")
	synced := map[string]int{}
	open := func() (*Dir, *Store) {
		clear(synced)
		d, err := open(path, Config{}, func(doing, path string) error {
			if doing == "sync" {
				synced[path]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return d, storeOf(t, d, "m")
	}
	d, s := open()
	c := tiny(seize(t, s), 5, "the model")
	save(t, s, c)
	chunk := glob(t, path, chunkFolder, "*")[0]
	for _, name := range []string{base, filepath.Dir(path), path, filepath.Join(path, chunkFolder), chunk, s.folder} {
		if synced[name] == 0 {
			t.Errorf("%s is not durable", name)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, s = open()
	for next := range int64(3) {
		c.Epoch, c.Position.Next = seize(t, s), 6+next
		save(t, s, c)
		if n := synced[chunk]; n != 1 {
			t.Errorf("the folder of the chunk that is there was synced %d times", n)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// A writer goes on from the version before a head that is damaged. Its save is a new version, and
// no reader takes the damaged one.
func TestDamagedHeadIsReplaced(t *testing.T) {
	from, _ := filled(t, 3)
	for what, pattern := range map[string][]string{
		"manifest": {"m", "3-*"},
		"chunk":    {chunkFolder, "*", "*"},
	} {
		s := copied(t, from, func(path string) {
			for _, name := range glob(t, append([]string{path}, pattern...)...) {
				if b, err := os.ReadFile(name); err != nil || what == "chunk" && string(b) != "the end of 12" {
					continue
				}
				flip(t, name)
			}
		})
		if c, number, err := s.Load(t.Context(), state.Head); err != nil || number != 2 || c.Position.Next != 11 {
			t.Fatalf("%s: loaded version %d, %v", what, number, err)
		}
		c := checkpoint(seize(t, s), 11)
		c.Model = []byte("another")
		if n := save(t, s, c); n != 4 {
			t.Errorf("%s: saved as version %d", what, n)
		}
		if got, number, err := s.Load(t.Context(), state.Head); err != nil || number != 4 || got.Position.Next != 11 {
			t.Errorf("%s: loaded version %d, %v", what, number, err)
		}
		if _, err := s.LoadVersion(t.Context(), 3); !errors.Is(err, state.ErrNone) {
			t.Errorf("%s: version 3: %v", what, err)
		}
		c.Position.Next = 10
		if _, err := s.Save(t.Context(), c); !errors.Is(err, state.ErrStale) {
			t.Errorf("%s: a save below a whole head: %v", what, err)
		}
	}
}

// What may pass is transient, and no reason to read an older version. What the disk cannot read is
// corrupt.
func TestErrorClasses(t *testing.T) {
	from, _ := filled(t, 3)
	path := t.TempDir()
	if err := os.CopyFS(path, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	d, f := opened(t, path, Config{})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	mine := state.Lease{Epoch: epoch, Writer: "w"}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE} {
		f.set(func(doing, path string) error {
			if doing == "sync" {
				return nil
			}
			return &os.PathError{Op: doing, Path: path, Err: full}
		})
		for name, do := range map[string]func() error{
			"seize":     func() error { _, err := s.Seize(t.Context(), "w"); return err },
			"save":      func() error { _, err := s.Save(t.Context(), checkpoint(epoch, 50)); return err },
			"behind":    func() error { _, err := s.Save(t.Context(), checkpoint(epoch, 5)); return err },
			"load":      func() error { _, _, err := s.Load(t.Context(), state.Head); return err },
			"version":   func() error { _, err := s.LoadVersion(t.Context(), 1); return err },
			"manifest":  func() error { _, _, err := s.Manifest(t.Context(), state.Head); return err },
			"pin":       func() error { return s.Pin(t.Context(), 1) },
			"mark":      func() error { return s.MarkReplaced(t.Context(), 1) },
			"step":      func() error { return s.StepBack(t.Context(), mine, 1) },
			"promote":   func() error { return s.Promote(t.Context(), state.Promotion{Model: "m"}) },
			"promotion": func() error { _, err := s.Promotion(t.Context()); return err },
		} {
			err := do()
			if !errors.Is(err, state.ErrTransient) || !errors.Is(err, full) || errors.Is(err, state.ErrCorrupt) {
				t.Errorf("%s: %v, want ErrTransient", name, err)
			}
		}
		_, err := open(t.TempDir(), Config{}, func(string, string) error { return full })
		if !errors.Is(err, state.ErrTransient) {
			t.Errorf("open: %v", err)
		}
	}
	f.set(nil)
	chunk := d.chunk(lastChunk(t, s, 3))
	f.set(func(doing, path string) error {
		if doing == "read" && path == chunk {
			return syscall.EIO
		}
		return nil
	})
	_, err := s.LoadVersion(t.Context(), 3)
	if !errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrTransient) {
		t.Errorf("EIO: %v, want ErrCorrupt", err)
	}
	if _, number, err := s.Load(t.Context(), state.Head); err != nil || number != 2 {
		t.Errorf("EIO in the head: version %d, %v", number, err)
	}
	flip(t, chunk)
	again := checkpoint(epoch, 12)
	save(t, s, again) // writes the chunk that it cannot read
	f.set(nil)
	if c, _, err := s.Load(t.Context(), state.Head); err != nil || !bytes.Equal(c.Model, again.Model) {
		t.Errorf("after a save: %v", err)
	}
	f.set(func(doing, path string) error {
		if doing == "read" && path == chunk {
			return syscall.EACCES
		}
		return nil
	})
	_, err = s.LoadVersion(t.Context(), 3)
	if !errors.Is(err, syscall.EACCES) || errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrTransient) {
		t.Errorf("EACCES: %v, want it alone", err)
	}
	f.set(nil)
}

// lastChunk returns the name of the last chunk of a version.
func lastChunk(t *testing.T, s *Store, number int64) [32]byte {
	t.Helper()
	m, err := s.manifest(s.book.find(number))
	if err != nil {
		t.Fatal(err)
	}
	return m.Chunks[len(m.Chunks)-1]
}

// While a disk is slow to write a chunk others use the store. A writer that loses its epoch, or
// whose head moves, meanwhile saves nothing.
func TestSlowDisk(t *testing.T) {
	d, f := opened(t, t.TempDir(), Config{})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, checkpoint(epoch, 5))
	in, out := make(chan struct{}, 8), make(chan struct{})
	f.set(func(doing, path string) error {
		if doing == "write" && strings.Contains(path, chunkFolder) {
			in <- struct{}{}
			<-out
		}
		return nil
	})
	saved := make(chan error, 1)
	go func() { _, err := s.Save(t.Context(), checkpoint(epoch, 26)); saved <- err }()
	<-in
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := s.Beat(ctx, state.Lease{Epoch: epoch, Writer: "w"})
	if err != nil {
		t.Errorf("beat: %v", err)
	}
	if _, err := s.Heading(ctx, state.Head); err != nil {
		t.Errorf("heading: %v", err)
	}
	if _, number, err := s.Load(ctx, state.Head); err != nil || number != 1 {
		t.Errorf("load: version %d, %v", number, err)
	}
	short, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if _, err := s.Save(short, checkpoint(epoch, 27)); !errors.Is(err, state.ErrTransient) {
		t.Errorf("a second save did not wait, or no longer than its context: %v", err)
	}
	if _, err := s.Seize(ctx, "w2"); err != nil {
		t.Errorf("seize: %v", err)
	}
	close(out)
	if err := <-saved; !errors.Is(err, state.ErrStale) {
		t.Errorf("save: %v, want ErrStale", err)
	}
	if h, err := s.Heading(ctx, state.Head); err != nil || h.Next != 5 {
		t.Errorf("%+v, %v", h, err)
	}
}
