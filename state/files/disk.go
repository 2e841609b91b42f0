package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hamlet/state"
)

// ended returns the error of a context that has ended. A passed deadline is transient.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return state.Transient(err)
	}
	return err
}

// A mutex is one for which nobody waits longer than its context.
type mutex chan struct{}

func (m mutex) lock(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return err
	}
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func (m mutex) unlock() { <-m }

// read reads a file.
func (d *Dir) read(path string) ([]byte, error) {
	if err := d.fault("read", path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// sync makes the names in a directory survive a loss of power.
func (d *Dir) sync(path string) error {
	if err := d.fault("sync", path); err != nil {
		return err
	}
	return syncFolder(path)
}

// A file is one that is being written.
type file interface {
	io.Writer
	Name() string
	Sync() error
	Close() error
}

// create makes an unfinished file in a directory.
func create(folder string) (file, error) { return os.CreateTemp(folder, unfinished+"*") }

// write makes a file appear as a whole, and durable. Only its owner may read it: a model is a
// statistic of mail.
func (d *Dir) write(path string, data []byte) error {
	d.step()
	if err := d.fault("write", path); err != nil {
		return err
	}
	f, err := d.create(filepath.Dir(path))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	d.step()
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	if err := d.sync(filepath.Dir(path)); err != nil {
		return undurable{err}
	}
	return nil
}

// An undurable file has its name, which a loss of power may take from it.
type undurable struct{ error }

func (u undurable) Unwrap() error { return u.error }

// folder makes a directory whose parent is there, and makes both their names and the names in it
// durable. It does so once, because an earlier program may have died in between.
func (d *Dir) folder(path string) error {
	d.mu.Lock()
	ready := d.ready[path]
	d.mu.Unlock()
	if ready {
		return nil
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := errors.Join(d.sync(filepath.Dir(path)), d.sync(path)); err != nil {
		return err
	}
	d.mu.Lock()
	d.ready[path] = true
	d.mu.Unlock()
	return nil
}

// doubt has the names in a directory made durable again before they are relied on.
func (d *Dir) doubt(path string) {
	d.mu.Lock()
	delete(d.ready, path)
	d.mu.Unlock()
}

// root makes the directory itself, with those above it.
func (d *Dir) root(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		parent := filepath.Dir(path)
		if parent != path {
			if err := d.root(parent); err != nil {
				return err
			}
		}
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	} else if err != nil {
		return err
	}
	// Whoever may not read the directory above has not made this one.
	if err := d.sync(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

func (d *Dir) chunk(name [sha256.Size]byte) string {
	text := hex.EncodeToString(name[:])
	return filepath.Join(d.path, chunkFolder, text[:2], text)
}

// writeChunk writes a chunk unless it is there, and whole.
func (d *Dir) writeChunk(c *state.Chunk) error {
	path := d.chunk(c.Name)
	if err := d.folder(filepath.Dir(path)); err != nil {
		return err
	}
	b, err := d.read(path)
	if err == nil && sha256.Sum256(b) == c.Name {
		return nil
	}
	if err != nil && full(err) {
		return err
	}
	if err := d.write(path, c.Data); err != nil {
		d.doubt(filepath.Dir(path)) // the chunk may be there without a durable name
		return err
	}
	return nil
}

// readPart reads a manifest or a chunk. Where it is missing, or the disk cannot read it, the error
// wraps [state.ErrCorrupt].
func (d *Dir) readPart(path string) ([]byte, error) {
	b, err := d.read(path)
	if err != nil && (errors.Is(err, fs.ErrNotExist) || broken(err)) {
		return nil, fmt.Errorf("%w: %w", state.ErrCorrupt, err)
	}
	return b, err
}
