package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/state"
)

// A flushed is a file that knows whether all of it is durable.
type flushed struct {
	*os.File
	t     *testing.T
	dirty bool
}

func (f *flushed) Write(b []byte) (int, error) {
	f.dirty = true
	return f.File.Write(b)
}

func (f *flushed) Sync() error {
	f.dirty = false
	return f.File.Sync()
}

func (f *flushed) Close() error {
	if f.dirty {
		f.t.Errorf("%s is closed, and a loss of power may take what was written", f.Name())
	}
	return f.File.Close()
}

// What has its name is durable: the bytes were before the name, and the name is before anybody is told.
func TestFilesAreDurable(t *testing.T) {
	d, faults := opened(t, t.TempDir(), Config{})
	files, synced := 0, map[string]bool{}
	d.create = func(folder string) (file, error) {
		files++
		delete(synced, folder)
		f, err := os.CreateTemp(folder, unfinished+"*")
		return &flushed{File: f, t: t}, err
	}
	faults.set(func(doing, path string) error {
		if doing == "sync" {
			synced[path] = true
		}
		return nil
	})
	s := storeOf(t, d, "m")
	save(t, s, tiny(seize(t, s), 5, "the model"))
	if err := s.Promote(t.Context(), state.Promotion{Model: "other"}); err != nil {
		t.Fatal(err)
	}
	if want := 5; files != want { // the books of seize and of save, chunk, manifest and promotion
		t.Errorf("%d files were written, and %d were expected", files, want)
	}
	for _, folder := range append(glob(t, d.path, chunkFolder, "*"), s.folder) {
		if !synced[folder] {
			t.Errorf("the names in %s are not durable", folder)
		}
	}
}

// A save that is writing its chunks when another writer takes the model does not move the head.
func TestASaveThatLosesItsEpoch(t *testing.T) {
	d, faults := opened(t, t.TempDir(), Config{})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 5, "before"))
	taken := false
	faults.set(func(doing, path string) error {
		if doing == "write" && strings.Contains(path, chunkFolder) && !taken {
			taken = true
			if _, err := s.Seize(context.Background(), "another"); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if _, err := s.Save(t.Context(), tiny(epoch, 6, "after")); !taken || !errors.Is(err, state.ErrStale) {
		t.Errorf("taken %v; the save of the writer before: %v", taken, err)
	}
	if c, _, err := s.Load(t.Context(), state.Head); err != nil || string(c.Model) != "before" {
		t.Errorf("%v, %v", c, err)
	}
}

// While one manifest cannot be read no chunk is deleted: it may be of that one.
func TestSweepReadsEveryManifest(t *testing.T) {
	d, faults := opened(t, t.TempDir(), Config{Keep: 1, Daily: new(0)})
	other, s := storeOf(t, d, "other"), storeOf(t, d, "m")
	save(t, other, tiny(seize(t, other), 5, "of the other"))
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 5, "first"))
	away := errors.New("away")
	faults.set(func(doing, path string) error {
		if doing == "read" && filepath.Dir(path) == other.folder {
			return away
		}
		return nil
	})
	save(t, s, tiny(epoch, 6, "second")) // drops the first, and sweeps
	faults.set(nil)
	if c, _, err := other.Load(t.Context(), state.Head); err != nil || string(c.Model) != "of the other" {
		t.Errorf("%v, %v", c, err)
	}
}

// Where the head is damaged, a version that the log has lost is not read in its place.
func TestLostVersionsAreNotRead(t *testing.T) {
	d, _ := opened(t, t.TempDir(), Config{Keep: 5})
	s := storeOf(t, d, "m")
	lease, err := s.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	first := save(t, s, tiny(lease.Epoch, 5, "first"))
	save(t, s, tiny(lease.Epoch, 9, "lost"))
	if err := s.StepBack(t.Context(), lease, first); err != nil {
		t.Fatal(err)
	}
	save(t, s, tiny(lease.Epoch, 6, "second"))
	flip(t, glob(t, s.folder, "3-*"+manifestEnd)[0])
	if c, number, err := s.Load(t.Context(), state.Head); err != nil || number != first || string(c.Model) != "first" {
		t.Errorf("version %d, %v, %v", number, c, err)
	}
}

// An epoch is not given twice, also where its writer has saved nothing when the program ends.
func TestAnEpochOutlastsTheProgram(t *testing.T) {
	path, last := t.TempDir(), int64(0)
	for range 3 {
		d, err := Open(path, Config{})
		if err != nil {
			t.Fatal(err)
		}
		epoch := seize(t, storeOf(t, d, "m"))
		if epoch <= last {
			t.Errorf("epoch %d after epoch %d", epoch, last)
		}
		last = epoch
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A save of what the head says is there writes again what is not: so a quiet learner heals it.
func TestASaveHealsTheHead(t *testing.T) {
	d, _ := opened(t, t.TempDir(), Config{})
	s := storeOf(t, d, "m")
	c := tiny(seize(t, s), 5, "the model")
	number := save(t, s, c)
	flip(t, glob(t, d.path, chunkFolder, "*", "*")[0])
	if _, _, err := s.Load(t.Context(), state.Head); !errors.Is(err, state.ErrCorrupt) {
		t.Fatalf("a damaged chunk: %v", err)
	}
	if again := save(t, s, c); again != number {
		t.Errorf("version %d, and not %d", again, number)
	}
	if healed, _, err := s.Load(t.Context(), state.Head); err != nil || string(healed.Model) != "the model" {
		t.Errorf("%v, %v", healed, err)
	}
}
