package files

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// A book that is missing or damaged is made again from the manifests, and a save deletes no version.
func TestBookIsMadeAgain(t *testing.T) {
	from, epoch := filled(t, 4)
	for what, spoil := range map[string]func(path string) error{
		"missing": os.Remove,
		"damaged": func(path string) error { flip(t, path); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			path := t.TempDir()
			if err := os.CopyFS(path, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			if err := spoil(filepath.Join(path, "m", bookName)); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			d, _ := opened(t, path, Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
			s := storeOf(t, d, "m")
			c, number, err := s.Load(t.Context(), state.Head)
			if err != nil || number != 4 || c.Position.Next != 13 || c.Writer != "w" {
				t.Fatalf("loaded version %d, %v", number, err)
			}
			if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "pin") {
				t.Errorf("logged %s", text)
			}
			if l, err := s.Lease(t.Context()); err != nil || l.Epoch != epoch+1 {
				t.Errorf("lease %+v, %v", l, err)
			}
			if aside := glob(t, path, "m", "book.damaged-*"); len(aside) == 1 != (what == "damaged") {
				t.Errorf("set aside: %v", aside)
			}
			if n := save(t, s, checkpoint(seize(t, s), 14)); n != 5 {
				t.Errorf("saved as version %d", n)
			}
			for number := range int64(5) {
				if _, err := s.LoadVersion(t.Context(), number+1); err != nil {
					t.Errorf("version %d: %v", number+1, err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d, _ = opened(t, path, Config{})
			if _, number, err := storeOf(t, d, "m").Load(t.Context(), state.Head); err != nil || number != 5 {
				t.Errorf("opened again: version %d, %v", number, err)
			}
		})
	}
}

// A book that is made again has the highest whole version as its head.
func TestBookIsMadeAgainFromWhatIsWhole(t *testing.T) {
	from, _ := filled(t, 4)
	for name, c := range map[string]struct {
		rotten string
		head   int64
	}{"one": {"4-*", 3}, "all": {"*", 4}} {
		s := copied(t, from, func(path string) {
			if err := os.Remove(filepath.Join(path, "m", bookName)); err != nil {
				t.Fatal(err)
			}
			for _, manifest := range glob(t, path, "m", c.rotten+manifestEnd) {
				flip(t, manifest)
			}
		})
		h, err := s.Heading(t.Context(), state.Head)
		if err != nil || h.Version != c.head {
			t.Errorf("%s rotten: %+v, %v", name, h, err)
		}
		if _, _, err := s.Load(t.Context(), state.Head); errors.Is(err, state.ErrCorrupt) != (name == "all") {
			t.Errorf("%s rotten: %v", name, err)
		}
		if n := save(t, s, checkpoint(seize(t, s), 20)); n != 5 {
			t.Errorf("%s rotten: saved as version %d", name, n)
		}
	}
}

// A damaged book without any manifest is no empty model.
func TestDamagedBookAlone(t *testing.T) {
	from, _ := filled(t, 1)
	s := copied(t, from, func(path string) {
		flip(t, filepath.Join(path, "m", bookName))
		for _, manifest := range glob(t, path, "m", "*"+manifestEnd) {
			if err := os.Remove(manifest); err != nil {
				t.Fatal(err)
			}
		}
	})
	if _, err := s.Heading(t.Context(), state.Head); !errors.Is(err, state.ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
}

// An older book, from a backup, has no version deleted that it does not know, nor a chunk of one.
func TestUnknownManifestsStay(t *testing.T) {
	path := t.TempDir()
	d, _ := opened(t, path, Config{})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 1, "a"))
	old, err := os.ReadFile(filepath.Join(path, "m", bookName))
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, tiny(epoch, 2, "b"))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "m", bookName), old, 0o600); err != nil {
		t.Fatal(err)
	}
	d, _ = opened(t, path, Config{})
	s = storeOf(t, d, "m")
	if n := save(t, s, tiny(seize(t, s), 2, "c")); n != 3 {
		t.Errorf("saved as version %d, which another one has", n)
	}
	if kept := glob(t, path, "m", "2-*"); len(kept) != 1 {
		t.Error("the manifest that the book did not name is gone")
	}
	if chunks := glob(t, path, chunkFolder, "*", "*"); len(chunks) != 3 {
		t.Errorf("%d chunks", len(chunks))
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
		"history": func() error { _, err := s.History(t.Context()); return err },
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
	d.Hold()()
}

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
// the damaged one is none that a reader takes.
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
			"history":   func() error { _, err := s.History(t.Context()); return err },
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

// A save that fails, wherever, leaves no chunk and no manifest that nothing names.
func TestFailedSavesLeaveNothing(t *testing.T) {
	path := t.TempDir()
	d, f := opened(t, path, Config{})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 5, "a"))
	list := func() []string {
		return slices.Concat(glob(t, path, chunkFolder, "*", "*"), glob(t, path, "m", "*"))
	}
	before := list()
	for _, part := range []string{chunkFolder, manifestEnd, bookName} {
		writes := 0
		f.set(func(doing, path string) error {
			if doing == "write" && strings.Contains(path, part) {
				if writes++; writes > 1 || part != chunkFolder {
					return syscall.ENOSPC
				}
			}
			return nil
		})
		if _, err := s.Save(t.Context(), checkpoint(epoch, 6)); !errors.Is(err, state.ErrTransient) {
			t.Fatalf("%s: %v", part, err)
		}
		if after := list(); !slices.Equal(before, after) {
			t.Errorf("%s: left %v", part, after)
		}
	}
	f.set(nil)
	save(t, s, checkpoint(epoch, 6))
}

// Where it is not known whether a book has its name, what it names stays.
func TestBookInDoubt(t *testing.T) {
	path := t.TempDir()
	d, f := opened(t, path, Config{Keep: 1, Daily: -1})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 5, "a"))
	syncs := 0
	f.set(func(doing, path string) error {
		if doing == "sync" && path == s.folder {
			if syncs++; syncs == 2 { // the first is the manifest's
				return syscall.ENOSPC
			}
		}
		return nil
	})
	if _, err := s.Save(t.Context(), tiny(epoch, 6, "b")); err == nil {
		t.Fatal("it did not fail")
	}
	f.set(nil)
	copied := copied(t, path, func(string) {}) // as after a loss of power
	if c, _, err := copied.Load(t.Context(), state.Head); err != nil || string(c.Model) != "b" {
		t.Errorf("the book on the disk names what is gone: %v", err)
	}
	save(t, s, tiny(epoch, 7, "c"))
	if left := glob(t, path, "m", "*"+manifestEnd); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if left := glob(t, path, chunkFolder, "*", "*"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// A rotted manifest does not stop the deletion of chunks. It is logged.
func TestRottedManifestAndChunks(t *testing.T) {
	path := t.TempDir()
	var log bytes.Buffer
	d, _ := opened(t, path, Config{Keep: 1, Daily: -1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	other := storeOf(t, d, "other")
	save(t, other, tiny(seize(t, other), 1, "other"))
	flip(t, glob(t, path, "other", "*"+manifestEnd)[0])
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	for next := range int64(5) {
		save(t, s, tiny(epoch, next, string('a'+rune(next))))
	}
	if chunks := glob(t, path, chunkFolder, "*", "*"); len(chunks) > 1 {
		t.Errorf("%d chunks are left", len(chunks))
	}
	if !strings.Contains(log.String(), "a manifest is damaged") {
		t.Errorf("logged %s", log.String())
	}
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
		d, _ := opened(t, filepath.Join(base, name), Config{Keep: 1, Daily: -1})
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
		"", ".", "..", "a/b", `a\b`, "A", "a.b", "chunks", "lock", "a*", "a\n", strings.Repeat("a", 65),
	} {
		if s, err := d.Store(name); err == nil || s != nil {
			t.Errorf("%q is a model", name)
		}
	}
	for _, name := range []string{"a", "cand-2", strings.Repeat("a", 64)} {
		storeOf(t, d, name)
	}
}

// While a backup copies nothing is deleted. After it the next save deletes.
func TestHold(t *testing.T) {
	path := t.TempDir()
	d, _ := opened(t, path, Config{Keep: 1, Daily: -1})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 1, "a"))
	release := d.Hold()
	save(t, s, tiny(epoch, 2, "b"))
	save(t, s, tiny(epoch, 3, "c"))
	count := func() [2]int {
		return [2]int{len(glob(t, path, chunkFolder, "*", "*")), len(glob(t, path, "m", "*"+manifestEnd))}
	}
	if n := count(); n != [2]int{3, 3} {
		t.Errorf("held, %d chunks and manifests are left", n)
	}
	release()
	release()
	save(t, s, tiny(epoch, 4, "d"))
	if n := count(); n != [2]int{1, 1} {
		t.Errorf("released, %d chunks and manifests are left", n)
	}
}

// What a program could not delete before it ended the next one does.
func TestDroppedByAnEarlierProgram(t *testing.T) {
	path := t.TempDir()
	d, _ := opened(t, path, Config{Keep: 1, Daily: -1})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 1, "a"))
	release := d.Hold()
	save(t, s, tiny(epoch, 2, "b"))
	release()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, _ = opened(t, path, Config{Keep: 1, Daily: -1})
	s = storeOf(t, d, "m")
	save(t, s, tiny(seize(t, s), 3, "c"))
	left := slices.Concat(glob(t, path, chunkFolder, "*", "*"), glob(t, path, "m", "*"+manifestEnd))
	if len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}
