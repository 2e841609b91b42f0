package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"hamlet/state"
)

var chunkName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{64}$`)
})

// sweep deletes the manifests that the books have dropped, and then the chunks that no manifest in the
// directory names. What cannot be deleted, and what somebody uses, stays until the next save.
func (d *Dir) sweep() {
	if !d.guard.TryLock() {
		return
	}
	defer d.guard.Unlock()
	d.mu.Lock()
	stores := slices.Collect(maps.Values(d.stores))
	d.mu.Unlock()
	for _, s := range stores {
		s.deleteDropped()
	}
	if !d.unswept.Load() {
		return
	}
	if err := d.sweepChunks(); err != nil {
		d.cfg.Log.Warn("chunks that no version needs are not deleted", "directory", d.path, "error", err)
		return
	}
	d.unswept.Store(false)
}

// deleteDropped deletes the manifests that the book has dropped. Nobody saves meanwhile, so that none
// of them is named again.
func (s *Store) deleteDropped() {
	_ = s.mu.lock(context.Background())
	dropped, doubtful := s.book.Dropped, s.doubtful
	s.mu.unlock()
	if doubtful { // the book on the disk may name them
		return
	}
	gone := map[string]bool{}
	for _, name := range dropped {
		s.dir.step()
		err := os.Remove(filepath.Join(s.folder, name))
		gone[name] = err == nil || errors.Is(err, fs.ErrNotExist)
	}
	if len(gone) == 0 {
		return
	}
	s.dir.unswept.Store(true)
	_ = s.mu.lock(context.Background())
	left := slices.Clone(s.book.Dropped)
	s.book.Dropped = slices.DeleteFunc(left, func(name string) bool { return gone[name] })
	s.mu.unlock()
}

// sweepChunks deletes chunks that no manifest names. A corrupt manifest names none. Of one that
// cannot be read it is not known what it names: nothing is deleted.
func (d *Dir) sweepChunks() error {
	named := map[string]bool{}
	models, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, model := range models {
		if !model.IsDir() || model.Name() == chunkFolder {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(d.path, model.Name()))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), manifestEnd) {
				continue
			}
			path := filepath.Join(d.path, model.Name(), e.Name())
			b, err := d.read(path)
			var m *state.Manifest
			if err == nil {
				m, err = decode(b)
			}
			if errors.Is(err, state.ErrCorrupt) {
				d.cfg.Log.Warn("a manifest is damaged: its chunks are not kept", "file", path, "error", err)
				continue
			}
			if err != nil {
				return err
			}
			for _, name := range m.Chunks {
				named[d.chunk(name)] = true
			}
		}
	}
	folders, err := os.ReadDir(filepath.Join(d.path, chunkFolder))
	if err != nil {
		return err
	}
	var failed error
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(d.path, chunkFolder, folder.Name()))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for _, e := range entries {
			path := filepath.Join(d.path, chunkFolder, folder.Name(), e.Name())
			if named[path] || !chunkName().MatchString(e.Name()) && !strings.HasPrefix(e.Name(), unfinished) {
				continue
			}
			d.step()
			if err := os.Remove(path); err != nil {
				failed = errors.Join(failed, err)
			}
		}
	}
	return failed
}
