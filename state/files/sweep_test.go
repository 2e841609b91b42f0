package files

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hamlet/state"
)

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

// A rotted manifest does not stop the deletion of chunks. It is logged.
func TestRottedManifestAndChunks(t *testing.T) {
	path := t.TempDir()
	var log bytes.Buffer
	d, _ := opened(t, path, Config{Keep: 1, Daily: new(0), Log: slog.New(slog.NewTextHandler(&log, nil))})
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

// While somebody loads nothing is deleted. After it the next save deletes.
func TestNothingIsDeletedDuringALoad(t *testing.T) {
	path := t.TempDir()
	d, _ := opened(t, path, Config{Keep: 1, Daily: new(0)})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 1, "a"))
	d.guard.RLock()
	save(t, s, tiny(epoch, 2, "b"))
	save(t, s, tiny(epoch, 3, "c"))
	count := func() [2]int {
		return [2]int{len(glob(t, path, chunkFolder, "*", "*")), len(glob(t, path, "m", "*"+manifestEnd))}
	}
	if n := count(); n != [2]int{3, 3} {
		t.Errorf("loading, %d chunks and manifests are left", n)
	}
	d.guard.RUnlock()
	save(t, s, tiny(epoch, 4, "d"))
	if n := count(); n != [2]int{1, 1} {
		t.Errorf("loaded, %d chunks and manifests are left", n)
	}
}

// What a program could not delete before it ended the next one does.
func TestDroppedByAnEarlierProgram(t *testing.T) {
	path := t.TempDir()
	d, _ := opened(t, path, Config{Keep: 1, Daily: new(0)})
	s := storeOf(t, d, "m")
	epoch := seize(t, s)
	save(t, s, tiny(epoch, 1, "a"))
	d.guard.RLock()
	save(t, s, tiny(epoch, 2, "b"))
	d.guard.RUnlock()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, _ = opened(t, path, Config{Keep: 1, Daily: new(0)})
	s = storeOf(t, d, "m")
	save(t, s, tiny(seize(t, s), 3, "c"))
	left := slices.Concat(glob(t, path, chunkFolder, "*", "*"), glob(t, path, "m", "*"+manifestEnd))
	if len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}
