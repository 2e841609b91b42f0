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
//	lock                        held by the one program that has the directory open
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
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/state"
)

// ErrClosed says that the directory was closed.
var ErrClosed = errors.New("the models are closed")

// A Config says what is kept. Zero fields mean defaults.
type Config struct {
	Keep  int // the newest versions with distinct bytes; default 3
	Daily int // of older ones the first of each day, of the last days that have one; default 30; −1: none
	Log   *slog.Logger
}

// A Dir is a directory of models. Its methods may be called concurrently.
type Dir struct {
	path   string
	cfg    Config
	unlock func() error

	step  func()                         // for tests: called before each change of a file
	fault func(doing, path string) error // for tests: an error of "read", "write" or "sync"

	guard   guard       // of files: loads, saves and holds use them
	unswept atomic.Bool // there may be chunks that no manifest names
	calls   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	stores map[string]*Store
	ready  map[string]bool // directories that are durable, with the names in them
}

// Open opens a directory, which it makes if it is missing. Another program that has it open is an
// error, which wraps [ErrLocked].
func Open(path string, cfg Config) (*Dir, error) {
	return open(path, cfg, func(string, string) error { return nil })
}

func open(path string, cfg Config, fault func(doing, path string) error) (*Dir, error) {
	cfg.Keep = cmp.Or(cfg.Keep, 3)
	cfg.Daily = cmp.Or(cfg.Daily, 30)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the models: %w", err)
	}
	d := &Dir{
		path: path, cfg: cfg, step: func() {}, fault: fault, stores: map[string]*Store{}, ready: map[string]bool{},
	}
	d.unswept.Store(true) // what an earlier program left
	if err := d.root(path); err != nil {
		return nil, fmt.Errorf("open the models: %w", transient(err))
	}
	if d.unlock, err = lock(filepath.Join(path, "lock")); err != nil {
		return nil, fmt.Errorf("open the models in %s: %w", path, transient(err))
	}
	if err := d.folder(filepath.Join(path, chunkFolder)); err != nil {
		return nil, fmt.Errorf("open the models: %w", transient(errors.Join(err, d.unlock())))
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

// Close waits for the calls in progress and for what holds the files, and lets another program open
// the directory. From then on every method of it and of its stores returns [ErrClosed].
func (d *Dir) Close() error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return ErrClosed
	}
	d.calls.Wait()
	return d.unlock()
}

// Hold keeps all files from being deleted until release is called, so that a backup can copy them.
// Saves go on. A backup copies the books first, then the manifests, then the chunks. It leaves out
// the lock, and what begins with .new-. After Close it holds nothing.
func (d *Dir) Hold() (release func()) {
	if d.enter() != nil {
		return func() {}
	}
	_ = d.guard.use(context.Background())
	return sync.OnceFunc(func() {
		d.guard.done()
		d.calls.Done()
	})
}

var modelName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// Store returns the store of a model, which may have no checkpoint yet. A model's name has 1 to 64
// of a–z, 0–9 and the hyphen, and is not "chunks" or "lock".
func (d *Dir) Store(model string) (*Store, error) {
	if !modelName.MatchString(model) || model == chunkFolder || model == "lock" {
		return nil, fmt.Errorf("%.80q is no name of a model: it has 1 to 64 of a-z, 0-9 and -, "+
			"and is not chunks or lock", model)
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
	if err = s.dir.guard.use(ctx); err == nil {
		if b, err = s.view(ctx); err == nil {
			return b, fail, func() { s.dir.guard.done(); s.dir.calls.Done() }, nil
		}
		s.dir.guard.done()
	}
	s.dir.calls.Done()
	return book{}, nil, nil, fail(err)
}

// Lease reads the lease. Before the first writer it is the zero Lease.
func (s *Store) Lease(ctx context.Context) (state.Lease, error) {
	_, end, err := s.begin(ctx, "read the lease of")
	if err != nil {
		return state.Lease{}, err
	}
	defer end()
	return s.lease(), nil
}

// Holder is Lease.
func (s *Store) Holder(ctx context.Context) (state.Lease, error) { return s.Lease(ctx) }

func (s *Store) lease() state.Lease {
	return state.Lease{Epoch: s.book.Epoch, Beats: s.beats, Writer: s.writer}
}

// Acquire makes writer the model's only writer, under the next epoch, if nobody has changed the
// lease since it was seen. Else the error wraps [state.ErrStale].
func (s *Store) Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error) {
	return s.take(ctx, "acquire the lease of", writer, &seen)
}

// Seize makes writer the model's only writer, whoever it was before.
func (s *Store) Seize(ctx context.Context, writer string) (state.Lease, error) {
	return s.take(ctx, "seize the lease of", writer, nil)
}

func (s *Store) take(ctx context.Context, doing, writer string, seen *state.Lease) (state.Lease, error) {
	fail, end, err := s.begin(ctx, doing)
	if err != nil {
		return state.Lease{}, err
	}
	defer end()
	if writer == "" || strings.ContainsAny(writer, " \t\n") {
		return state.Lease{}, fail(fmt.Errorf("%q is no writer's word: it has no spaces and is not empty", writer))
	}
	now := s.lease()
	if seen != nil && (now.Epoch != seen.Epoch || now.Beats != seen.Beats || now.Writer != seen.Writer) {
		return state.Lease{}, fail(fmt.Errorf("%w: another writer has the epoch %d", state.ErrStale, now.Epoch))
	}
	b := s.book.clone()
	b.Epoch++
	if err := s.change(b); err != nil {
		return state.Lease{}, fail(err)
	}
	s.beats, s.writer = 1, writer
	return s.lease(), nil
}

// Beat says that the holder of mine lives. If another writer has the model, or the lease is free,
// the error wraps [state.ErrStale].
func (s *Store) Beat(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return s.holding(ctx, "beat for", mine, func() { s.beats++ })
}

// Release frees the lease. Whoever waits may acquire it at once.
func (s *Store) Release(ctx context.Context, mine state.Lease) (state.Lease, error) {
	return s.holding(ctx, "release the lease of", mine, func() { s.beats = 0 })
}

func (s *Store) holding(ctx context.Context, doing string, mine state.Lease, do func()) (state.Lease, error) {
	fail, end, err := s.begin(ctx, doing)
	if err != nil {
		return state.Lease{}, err
	}
	defer end()
	if err := s.owned(mine.Epoch, mine.Writer); err != nil {
		return state.Lease{}, fail(err)
	}
	if s.beats > 0 {
		do()
	} else if doing == "beat for" {
		return state.Lease{}, fail(fmt.Errorf("%w: the lease is free", state.ErrStale))
	}
	return s.lease(), nil
}

// owned returns an error unless the epoch is the store's, and its holder is writer.
func (s *Store) owned(epoch int64, writer string) error {
	switch {
	case s.book.Epoch < epoch:
		return fmt.Errorf("%w: %w: the epoch is %d, this writer has %d", state.ErrStale, state.ErrLost,
			s.book.Epoch, epoch)
	case s.book.Epoch != epoch, s.writer != "" && writer != "" && s.writer != writer:
		return fmt.Errorf("%w: another writer has the epoch %d", state.ErrStale, s.book.Epoch)
	}
	return nil
}

// Save writes a checkpoint as a version and moves the head to it. Where the head has the model's
// bytes already it takes the head's place, under its number. The epoch must be the last one that
// was acquired or seized, and the offset not below the head's, unless the head is damaged: else nothing
// changes and the error wraps [state.ErrStale]. A zero Saved means now.
func (s *Store) Save(ctx context.Context, c *state.Checkpoint) (number int64, err error) {
	fail := s.fail("save")
	if err := s.dir.enter(); err != nil {
		return 0, fail(err)
	}
	defer s.dir.calls.Done()
	if err := s.saving.lock(ctx); err != nil {
		return 0, fail(err)
	}
	defer s.saving.unlock()
	if err := s.dir.guard.use(ctx); err != nil {
		return 0, fail(err)
	}
	number, err = s.save(ctx, c)
	s.dir.guard.done()
	// What was written before a deadline stays, so that the next try comes further.
	if err == nil || ctx.Err() == nil && !errors.Is(err, state.ErrStale) {
		s.dir.sweep()
	}
	return number, fail(err)
}

// save writes the chunks while others use the store, and then the manifest and the book.
func (s *Store) save(ctx context.Context, c *state.Checkpoint) (number int64, err error) {
	seen, distrusted, err := s.examine(ctx, c)
	if err != nil {
		return 0, err
	}
	m, chunks := state.Split(c)
	if m.Saved.IsZero() {
		m.Saved = time.Now()
	}
	manifest, identity, err := encode(m)
	if err != nil {
		return 0, err
	}
	same := false
	if head := seen.find(seen.Head); head != nil && head.Identity == identity {
		_, err := s.read(head)
		same = err == nil
	}
	for i := 0; i < len(chunks) && !same; i++ {
		err := ended(ctx)
		if err == nil {
			err = s.dir.writeChunk(&chunks[i])
		}
		if err != nil {
			s.dir.unswept.Store(true)
			return 0, err
		}
	}
	if err := s.mu.lock(ctx); err != nil {
		s.dir.unswept.Store(true)
		return 0, err
	}
	defer s.mu.unlock()
	b := s.book.clone()
	head := b.find(b.Head)
	if head == nil || head.file() != distrusted {
		distrusted = ""
	}
	err = s.owned(c.Epoch, c.Writer)
	if err == nil && head != nil && distrusted == "" && c.Position.Next < head.Next {
		err = behind(c, head)
	}
	if err != nil {
		s.dir.unswept.Store(true)
		return 0, err
	}
	if same && head != nil && head.Identity == identity { // only the days are counted
		if s.trim(&b, day(m.Saved), 0); !slices.Equal(b.Versions, s.book.Versions) {
			return head.Number, s.change(b)
		}
		return head.Number, nil
	}
	return s.commit(b, m, manifest, identity, distrusted != "")
}

// examine returns the book, and the file of a head that is further in the log than c, but is damaged.
func (s *Store) examine(ctx context.Context, c *state.Checkpoint) (b book, distrusted string, err error) {
	if err := s.mu.lock(ctx); err != nil {
		return b, "", err
	}
	if b, err = s.current(); err == nil {
		err = s.owned(c.Epoch, c.Writer)
	}
	s.mu.unlock()
	head := b.find(b.Head)
	if err != nil || head == nil || c.Position.Next >= head.Next {
		return b, "", err
	}
	switch _, err := s.read(head); {
	case errors.Is(err, state.ErrCorrupt):
		s.dir.cfg.Log.Error("the head is damaged: a checkpoint before it takes its place", "model", s.model,
			"version", head.Number, "next", head.Next, "saved", c.Position.Next, "error", err)
		return b, head.file(), nil
	case err != nil:
		return b, "", err
	}
	return b, "", behind(c, head)
}

func behind(c *state.Checkpoint, head *version) error {
	return fmt.Errorf("%w: the head's next offset is %d, this one's %d: reload",
		state.ErrStale, head.Next, c.Position.Next)
}

// commit writes a manifest, whose chunks are there, and then the book.
func (s *Store) commit(b book, m *state.Manifest, manifest []byte, identity string, distrusted bool) (int64, error) {
	today := day(m.Saved)
	v := version{
		Identity: identity, Epoch: m.Epoch, Writer: m.Writer, Next: m.Position.Next,
		SHA256: hex.EncodeToString(m.Model[:]), Day: today,
	}
	refused := int64(0)
	head := b.find(b.Head)
	switch {
	case distrusted:
		refused, head = b.Head, nil
	case head != nil && head.SHA256 != v.SHA256:
		head = nil
	}
	if head != nil { // in its place
		v.Number, v.Day = head.Number, head.Day
		v.Replaced, v.Counted, v.Waited = head.Replaced, head.Counted, head.Waited
		*head = v
	} else {
		b.Last++
		v.Number = b.Last
		b.Versions = append(b.Versions, v)
	}
	b.Head = v.Number
	s.trim(&b, today, refused)
	err := s.dir.folder(s.folder)
	if err == nil {
		err = s.dir.write(filepath.Join(s.folder, v.file()), manifest)
	}
	if err == nil {
		err = s.change(b)
	}
	if err == nil {
		return v.Number, nil
	}
	s.dir.unswept.Store(true)
	if !slices.ContainsFunc(s.book.Versions, func(w version) bool { return w.file() == v.file() }) {
		s.book.Dropped = append(slices.Clone(s.book.Dropped), v.file())
	}
	return 0, err
}

// Load returns the checkpoint that a pointer names and its version or, where that is corrupt, the
// newest before it that is whole. Before the first save the error wraps [state.ErrNone].
func (s *Store) Load(ctx context.Context, which state.Pointer) (c *state.Checkpoint, number int64, err error) {
	b, fail, end, err := s.reading(ctx, "load the "+which.String()+" of")
	if err != nil {
		return nil, 0, err
	}
	defer end()
	number, err = s.newest(&b, which, func(v *version) (err error) { c, err = s.read(v); return err })
	if err != nil {
		return nil, 0, fail(err)
	}
	return c, number, nil
}

// LoadVersion returns a kept version. If it is not kept the error wraps [state.ErrNone].
func (s *Store) LoadVersion(ctx context.Context, number int64) (*state.Checkpoint, error) {
	b, fail, end, err := s.reading(ctx, fmt.Sprintf("load version %d of", number))
	if err != nil {
		return nil, err
	}
	defer end()
	v := b.find(number)
	if v == nil {
		return nil, fail(state.ErrNone)
	}
	c, err := s.read(v)
	return c, fail(err)
}

// Manifest returns the manifest of the version that a pointer names, and its number. Where that is
// corrupt, it is of a version before.
func (s *Store) Manifest(ctx context.Context, which state.Pointer) (m *state.Manifest, number int64, err error) {
	b, fail, end, err := s.reading(ctx, "read the manifest of the "+which.String()+" of")
	if err != nil {
		return nil, 0, err
	}
	defer end()
	number, err = s.newest(&b, which, func(v *version) (err error) { m, err = s.manifest(v); return err })
	if err != nil {
		return nil, 0, fail(err)
	}
	return m, number, nil
}

// Heading describes what a pointer names. It reads no file.
func (s *Store) Heading(ctx context.Context, which state.Pointer) (state.Heading, error) {
	fail, end, err := s.begin(ctx, "read "+which.String()+" of")
	if err != nil {
		return state.Heading{}, err
	}
	defer end()
	v := s.book.find(s.book.pointer(which))
	if v == nil {
		return state.Heading{Pinned: s.book.Pinned}, fail(state.ErrNone)
	}
	return state.Heading{
		Version: v.Number, Next: v.Next, Identity: v.Identity, Model: v.SHA256,
		Pinned: s.book.Pinned, Epoch: v.Epoch, Writer: v.Writer,
	}, nil
}

// History returns the kept versions that are not lost, newest first. It leaves out those whose
// manifest is damaged. Before the first save the error wraps [state.ErrNone].
func (s *Store) History(ctx context.Context) (history []state.Version, err error) {
	b, fail, end, err := s.reading(ctx, "list the versions of")
	if err != nil {
		return nil, err
	}
	defer end()
	if len(b.Versions) == 0 {
		return nil, fail(state.ErrNone)
	}
	for i := len(b.Versions) - 1; i >= 0; i-- {
		v := &b.Versions[i]
		if v.Lost {
			continue
		}
		m, err := s.manifest(v)
		if err != nil && !errors.Is(err, state.ErrCorrupt) {
			return nil, fail(err)
		}
		if err != nil {
			s.dir.cfg.Log.Warn("a version cannot be read", "model", s.model, "version", v.Number, "error", err)
			continue
		}
		history = append(history, state.Version{
			Number: v.Number, Events: m.Events, Position: m.Position, Saved: m.Saved, Replaced: v.Replaced,
		})
	}
	return history, nil
}

// Layout returns nil: a model here has one log.
func (s *Store) Layout(context.Context) error {
	if err := s.dir.enter(); err != nil {
		return s.fail("read the layout of")(err)
	}
	s.dir.calls.Done()
	return nil
}

// StepBack moves the head to an older kept version, because the log has lost what those above it
// have learnt. They are lost: no reader takes one for the newest. If the version is not kept, or is
// lost, the error wraps [state.ErrNone].
func (s *Store) StepBack(ctx context.Context, mine state.Lease, to int64) error {
	fail, end, err := s.begin(ctx, fmt.Sprintf("step back to version %d of", to))
	if err != nil {
		return err
	}
	defer end()
	if err := s.owned(mine.Epoch, mine.Writer); err != nil {
		return fail(err)
	}
	b := s.book.clone()
	if v := b.find(to); v == nil || v.Lost {
		return fail(fmt.Errorf("%w with this number that the log has not lost", state.ErrNone))
	}
	for i := range b.Versions {
		if v := &b.Versions[i]; v.Number > to {
			v.Lost = true
		}
	}
	b.Head = to
	return fail(s.change(b))
}

// Pin points Served at a version, and keeps that version, until Unpin. If it is not kept the error
// wraps [state.ErrNone].
func (s *Store) Pin(ctx context.Context, number int64) error {
	doing := fmt.Sprintf("pin version %d of", number)
	return s.mark(ctx, doing, number, func(b *book, v *version) { b.Pinned = number })
}

// MarkReplaced keeps a version because another model takes its place.
func (s *Store) MarkReplaced(ctx context.Context, number int64) error {
	doing := fmt.Sprintf("keep version %d of", number)
	return s.mark(ctx, doing, number, func(b *book, v *version) { v.Replaced = true })
}

func (s *Store) mark(ctx context.Context, doing string, number int64, do func(*book, *version)) error {
	fail, end, err := s.begin(ctx, doing)
	if err != nil {
		return err
	}
	defer end()
	b := s.book.clone()
	v := b.find(number)
	if v == nil {
		return fail(fmt.Errorf("%w with this number: choose one that is kept", state.ErrNone))
	}
	do(&b, v)
	return fail(s.change(b))
}

// Unpin moves Served to the head again.
func (s *Store) Unpin(ctx context.Context) error {
	fail, end, err := s.begin(ctx, "unpin")
	if err != nil {
		return err
	}
	defer end()
	if s.book.Pinned == 0 {
		return nil
	}
	b := s.book.clone()
	b.Pinned = 0
	return fail(s.change(b))
}

const promotionName = "promotion.json"

// Promote says which model answers in the place of this one. It changes no version.
func (s *Store) Promote(ctx context.Context, p state.Promotion) error {
	fail, end, err := s.begin(ctx, "promote in the place of")
	if err != nil {
		return err
	}
	defer end()
	b, err := p.AppendBinary(nil)
	if err == nil {
		err = s.dir.folder(s.folder)
	}
	if err == nil {
		err = s.dir.write(filepath.Join(s.folder, promotionName), b)
	}
	return fail(err)
}

// Promotion returns what Promote said last. Before that the error wraps [state.ErrNone].
func (s *Store) Promotion(ctx context.Context) (p state.Promotion, err error) {
	fail, end, err := s.begin(ctx, "read which model answers in the place of")
	if err != nil {
		return p, err
	}
	defer end()
	b, err := s.dir.read(filepath.Join(s.folder, promotionName))
	if errors.Is(err, fs.ErrNotExist) {
		err = state.ErrNone
	}
	if err == nil {
		err = p.UnmarshalBinary(b)
	}
	return p, fail(err)
}
