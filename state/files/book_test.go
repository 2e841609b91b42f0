package files

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hamlet/state"
)

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

// Where it is not known whether a book has its name, what it names stays.
func TestBookInDoubt(t *testing.T) {
	path := t.TempDir()
	d, f := opened(t, path, Config{Keep: 1, Daily: new(0)})
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
