// Package files keeps the checkpoints of models in a directory, for one machine. Package
// storetest has its laws.
//
//	dir, err := files.Open("data/models", files.Config{})
//	if err != nil {
//		return err
//	}
//	defer dir.Close()
//	store, err := dir.Store("default")
//	lease, err := store.Seize(ctx, "web-2/4711")
//	version, err := store.Save(ctx, &state.Checkpoint{Epoch: lease.Epoch, Position: position, Model: bytes})
//
// # Files
//
//	chunks/01/0123…             up to 1 MiB of a model's bytes, named by its SHA-256
//	MODEL/book.json             the epoch, the pointers, and what is kept: see book
//	MODEL/book.damaged-TIME     a book that was damaged, and was made again
//	MODEL/N-IDENTITY.manifest   the writer, and a manifest (see [state.Manifest]), of version N
//	MODEL/promotion.json        which model answers in the place of this one
//	.new-…                      a file that is being written
//
// A file has its name once it is whole and on the disk. A chunk is written before the manifest
// that names it, a manifest before the book that names that. So whatever is cut off leaves the state
// before.
//
// What no book names any more is deleted at the end of a save, unless somebody loads at that moment:
// then at the next one. A manifest that no book has named is never deleted, nor are its chunks: the
// book that named it may be lost. It is logged.
//
// A save writes the chunks that are not there. One of bytes that are there writes the manifest
// and the book alone. One of the same checkpoint writes at most the book, once a day.
//
// # Damage
//
// A book that is missing or damaged is made again from the manifests. The pin, and the marks of
// versions that were replaced or lost, are gone then. Where a version is damaged, the one before is
// loaded; a save takes the place of a damaged head, wherever that was in the log.
//
// # Errors
//
// Where a disk, a quota or a table of open files is full, the error wraps [state.ErrTransient]. What
// is not as it was written, is missing, or cannot be read by the disk is [state.ErrCorrupt].
//
// # Leases
//
// The lease is in memory: one program has the directory, and whoever held a lease in another one
// is dead. The epoch is in the book.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"hamlet/state"
)

// ErrClosed says that the directory was closed.
var ErrClosed = errors.New("the models are closed")

// A Config says what is kept. Zero fields mean defaults.
type Config struct {
	Keep  int  // the newest versions with distinct bytes; default 3
	Daily *int // of older ones the first of each day, of the last days that have one; nil: 30
	Log   *slog.Logger
}

// A Dir is a directory of models. Its methods may be called concurrently.
type Dir struct {
	path string
	cfg  Config

	step   func()                            // for tests: called before each change of a file
	fault  func(doing, path string) error    // for tests: an error of "read", "write" or "sync"
	create func(folder string) (file, error) // create, except in tests

	guard   sync.RWMutex // loads and saves hold it to read; a sweep, which deletes files, to write
	unswept atomic.Bool  // there may be chunks that no manifest names
	calls   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	stores map[string]*Store
	ready  map[string]bool // directories that are durable, with the names in them
}

// Open opens a directory, which it makes if it is missing. The caller keeps other programs out of it,
// until Close: they would not notice each other.
func Open(path string, cfg Config) (*Dir, error) {
	return open(path, cfg, func(string, string) error { return nil })
}

func open(path string, cfg Config, fault func(doing, path string) error) (*Dir, error) {
	cfg.Keep = cmp.Or(cfg.Keep, 3)
	cfg.Daily = cmp.Or(cfg.Daily, new(30))
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the models: %w", err)
	}
	d := &Dir{
		path: path, cfg: cfg, step: func() {}, fault: fault, create: create,
		stores: map[string]*Store{}, ready: map[string]bool{},
	}
	d.unswept.Store(true) // what an earlier program left
	if err := d.root(path); err != nil {
		return nil, fmt.Errorf("open the models: %w", transient(err))
	}
	if err := d.folder(filepath.Join(path, chunkFolder)); err != nil {
		return nil, fmt.Errorf("open the models: %w", transient(err))
	}
	return d, nil
}

// transient marks an error that may pass.
func transient(err error) error {
	if err != nil && full(err) && !errors.Is(err, state.ErrTransient) {
		return state.Transient(err)
	}
	return err
}

// enter begins a call, which Close waits for. The caller calls d.calls.Done.
func (d *Dir) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.calls.Add(1)
	return nil
}

// Close waits for the calls in progress. From then on every method of it and of its stores returns [ErrClosed].
func (d *Dir) Close() error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return ErrClosed
	}
	d.calls.Wait()
	return nil
}

// isModel reports whether a model may have the name.
func isModel(name string) bool {
	return state.IsModelName(name) && name != chunkFolder
}

// Store returns the store of a model, which may have no checkpoint yet. A model's name has 1 to 64
// of a–z, 0–9 and the hyphen, and is not "chunks".
func (d *Dir) Store(model string) (*Store, error) {
	if !isModel(model) {
		return nil, fmt.Errorf("%.80q is no name of a model: it has 1 to 64 of a-z, 0-9 and -, "+
			"and is not chunks", model)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if d.stores[model] == nil {
		d.stores[model] = &Store{
			dir: d, model: model, folder: filepath.Join(d.path, model), saving: make(mutex, 1), mu: make(mutex, 1),
		}
	}
	return d.stores[model], nil
}

// A Store keeps the checkpoints of one model. Its methods may be called concurrently.
//
// Who takes several locks takes saving first, then the guard of the directory, then mu.
type Store struct {
	dir    *Dir
	model  string
	folder string

	saving mutex // one save at a time

	mu       mutex // for what is below; no chunk is read or written under it, but to make a book again
	loaded   bool
	book     book
	doubtful bool   // the book on the disk may be a newer one, which could not be made durable
	beats    int64  // of the lease; 0: it is free
	writer   string // who holds it
}

// fail returns a function that says what failed.
func (s *Store) fail(doing string) func(error) error {
	return func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("%s model %s in %s: %w", doing, s.model, s.dir.path, transient(err))
	}
}

// begin locks the store, reads its book once, and returns an error of an ended context. The caller
// calls end.
func (s *Store) begin(ctx context.Context, doing string) (fail func(error) error, end func(), err error) {
	fail = s.fail(doing)
	if err := s.dir.enter(); err != nil {
		return nil, nil, fail(err)
	}
	if err = s.mu.lock(ctx); err == nil {
		if _, err = s.current(); err == nil {
			return fail, func() { s.mu.unlock(); s.dir.calls.Done() }, nil
		}
		s.mu.unlock()
	}
	s.dir.calls.Done()
	return nil, nil, fail(err)
}

// reading returns the book as it is, and keeps the files that it names until the caller calls end.
func (s *Store) reading(ctx context.Context, doing string) (b book, fail func(error) error, end func(), err error) {
	fail = s.fail(doing)
	if err := s.dir.enter(); err != nil {
		return book{}, nil, nil, fail(err)
	}
	s.dir.guard.RLock()
	if b, err = s.view(ctx); err == nil {
		return b, fail, func() { s.dir.guard.RUnlock(); s.dir.calls.Done() }, nil
	}
	s.dir.guard.RUnlock()
	s.dir.calls.Done()
	return book{}, nil, nil, fail(err)
}

const promotionName = "promotion.json"
