// Package files keeps the checkpoints of models in a directory, for one machine. Package
// storetest has its laws.
//
//	dir, err := files.Open("data/models", files.Config{})
//	if err != nil {
//		return err
//	}
//	defer dir.Close()
//	store := dir.Store("default")
//	lease, err := store.Seize(ctx, "web-2/4711")
//	version, err := store.Save(ctx, &state.Checkpoint{Epoch: lease.Epoch, Position: position, Model: bytes})
//
// # Files
//
//	lock                        held by the one program that has the directory open
//	chunks/01/0123…             up to 1 MiB of a model's bytes, named by its SHA-256
//	MODEL/book.json             the epoch, the pointers, and what is kept: see book
//	MODEL/N-IDENTITY.manifest   a manifest (see [state.Manifest]) of version N
//	MODEL/promotion.json        which model answers in the place of this one
//	.new-…                      a file that is being written
//
// A file has its name once it is whole and on the disk. A chunk is written before the manifest
// that names it, a manifest before the book that names that. So whatever is cut off leaves the state
// before. What no book names is deleted at the next save.
//
// A save writes the chunks that are not there. One of bytes that are there writes the manifest
// and the book alone; one of the same checkpoint writes nothing.
//
// The lease is in memory: one program has the directory, and whoever held a lease in another one
// is dead. The epoch is in the book.
package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"hamlet/state"
)

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
	step   func() // for tests: called before each change of a file

	saves sync.RWMutex // held for reading while chunks are written that no book names yet

	mu     sync.Mutex
	stores map[string]*Store
}

// Open opens a directory, which it makes if it is missing. Another program that has it open is an
// error, which wraps [ErrLocked].
func Open(path string, cfg Config) (*Dir, error) {
	cfg.Keep = cmp.Or(cfg.Keep, 3)
	cfg.Daily = cmp.Or(cfg.Daily, 30)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(filepath.Join(path, chunkFolder), 0o700); err != nil {
		return nil, fmt.Errorf("open the models: %w", err)
	}
	unlock, err := lock(filepath.Join(path, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open the models in %s: %w", path, err)
	}
	return &Dir{path: path, cfg: cfg, unlock: unlock, step: func() {}, stores: map[string]*Store{}}, nil
}

// Close lets another program open the directory.
func (d *Dir) Close() error { return d.unlock() }

// Store returns the store of a model, which may have no checkpoint yet.
func (d *Dir) Store(model string) *Store {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stores[model] == nil {
		d.stores[model] = &Store{dir: d, model: model, folder: filepath.Join(d.path, model)}
	}
	return d.stores[model]
}

// A Store keeps the checkpoints of one model. Its methods may be called concurrently.
type Store struct {
	dir    *Dir
	model  string
	folder string

	mu     sync.Mutex
	loaded bool
	book   book
	beats  int64  // of the lease; 0: it is free
	writer string // who holds it
}

// A book says what is kept of a model. Its file is JSON, a line break, and the CRC-32C of the
// JSON in eight hexadecimal digits.
type book struct {
	Epoch    int64     `json:"epoch"`
	Last     int64     `json:"last"` // the highest number of a version
	Head     int64     `json:"head"` // 0: nothing is saved
	Pinned   int64     `json:"pinned,omitempty"`
	Versions []version `json:"versions"` // ascending
}

// A version is what the book says of one.
type version struct {
	Number   int64  `json:"version"`
	Identity string `json:"identity"`
	Epoch    int64  `json:"epoch"`
	Writer   string `json:"writer,omitempty"`
	Next     int64  `json:"next"`
	SHA256   string `json:"sha256"`
	Day      int64  `json:"day"` // of the first save of these bytes, since 1970
	Replaced bool   `json:"replaced,omitempty"`
	Lost     bool   `json:"lost,omitempty"`
	Counted  int64  `json:"counted,omitempty"` // the day of the last save that was counted in Waited
	Waited   int    `json:"waited,omitempty"`  // the days since it was replaced or lost on which the model was saved
}

const (
	chunkFolder = "chunks"
	bookName    = "book.json"
	unfinished  = ".new-"

	// marked is on how many days the model was saved until a version goes that was replaced or
	// lost, and mostLost how many of the lost are kept.
	marked, mostLost = 30, 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (v *version) file() string { return fmt.Sprintf("%d-%s.manifest", v.Number, v.Identity) }

func (b *book) find(number int64) *version {
	for i := range b.Versions {
		if b.Versions[i].Number == number {
			return &b.Versions[i]
		}
	}
	return nil
}

// served is the pinned version, if it is kept, else the head.
func (b *book) served() int64 {
	if b.Pinned != 0 && b.find(b.Pinned) != nil {
		return b.Pinned
	}
	return b.Head
}

func (b *book) pointer(which state.Pointer) int64 {
	if which == state.Served {
		return b.served()
	}
	return b.Head
}

// begin locks the store, reads its book once, and returns an error of an ended context. The caller
// calls end.
func (s *Store) begin(ctx context.Context, doing string) (fail func(error) error, end func(), err error) {
	fail = func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("%s model %s in %s: %w", doing, s.model, s.dir.path, err)
	}
	s.mu.Lock()
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		s.mu.Unlock()
		return nil, nil, fail(state.Transient(err))
	case err != nil:
		s.mu.Unlock()
		return nil, nil, fail(err)
	}
	if !s.loaded {
		if err := s.readBook(); err != nil {
			s.mu.Unlock()
			return nil, nil, fail(err)
		}
		s.loaded = true
	}
	return fail, s.mu.Unlock, nil
}

func (s *Store) readBook() error {
	b, err := os.ReadFile(filepath.Join(s.folder, bookName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, sum, _ := strings.Cut(string(b), "\n")
	if sum != fmt.Sprintf("%08x\n", crc32.Checksum([]byte(text), castagnoli)) {
		return fmt.Errorf("%w: %s is not what was written: restore it from a backup", state.ErrCorrupt, filepath.Join(s.folder, bookName))
	}
	return json.Unmarshal([]byte(text), &s.book)
}

// change writes a changed book, and uses it once it is on the disk.
func (s *Store) change(b book) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	if err := s.dir.write(filepath.Join(s.folder, bookName), fmt.Appendf(text, "\n%08x\n", crc32.Checksum(text, castagnoli))); err != nil {
		return err
	}
	s.book = b
	return nil
}

func (b *book) clone() book {
	c := *b
	c.Versions = slices.Clone(b.Versions)
	return c
}

// write makes a file appear as a whole, and durable. Only its owner may read it: a model is a
// statistic of mail.
func (d *Dir) write(path string, data []byte) (err error) {
	d.step()
	f, err := os.CreateTemp(filepath.Dir(path), unfinished+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	d.step()
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes names in a directory survive a loss of power.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d *Dir) chunk(name [sha256.Size]byte) string {
	text := hex.EncodeToString(name[:])
	return filepath.Join(d.path, chunkFolder, text[:2], text)
}

// writeChunk writes a chunk unless it is there, and whole.
func (d *Dir) writeChunk(c *state.Chunk) error {
	path := d.chunk(c.Name)
	if b, err := os.ReadFile(path); err == nil && sha256.Sum256(b) == c.Name {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err == nil {
		if err := syncFolder(filepath.Dir(filepath.Dir(path))); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.write(path, c.Data)
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
	if now := s.lease(); seen != nil && (now.Epoch != seen.Epoch || now.Beats != seen.Beats || now.Writer != seen.Writer) {
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
		return fmt.Errorf("%w: %w: the epoch is %d, this writer has %d", state.ErrStale, state.ErrLost, s.book.Epoch, epoch)
	case s.book.Epoch != epoch, s.writer != "" && writer != "" && s.writer != writer:
		return fmt.Errorf("%w: another writer has the epoch %d", state.ErrStale, s.book.Epoch)
	}
	return nil
}

// Save writes a checkpoint as a version and moves the head to it. Where the head has the model's
// bytes already it takes the head's place, under its number. The epoch must be the last one that
// was acquired or seized, and the offset not below the head's: else nothing changes and the error
// wraps [state.ErrStale]. A zero Saved means now.
func (s *Store) Save(ctx context.Context, c *state.Checkpoint) (number int64, err error) {
	fail, end, err := s.begin(ctx, "save")
	if err != nil {
		return 0, err
	}
	defer end()
	if err := s.owned(c.Epoch, c.Writer); err != nil {
		return 0, fail(err)
	}
	b := s.book.clone()
	head := b.find(b.Head)
	if head != nil && c.Position.Next < head.Next {
		return 0, fail(fmt.Errorf("%w: the head's next offset is %d, this one's %d: reload", state.ErrStale, head.Next, c.Position.Next))
	}
	m, chunks := state.Split(c)
	if m.Saved.IsZero() {
		m.Saved = time.Now()
	}
	manifest, identity, err := encode(m)
	if err != nil {
		return 0, fail(err)
	}
	if head != nil && head.Identity == identity && s.whole(head) {
		return head.Number, nil
	}
	if number, err = s.write(c, m, chunks, manifest, identity, b); err != nil {
		return 0, fail(err)
	}
	s.sweep()
	return number, nil
}

// write writes the files of a checkpoint, and the book last.
func (s *Store) write(c *state.Checkpoint, m *state.Manifest, chunks []state.Chunk, manifest []byte, identity string, b book) (number int64, err error) {
	s.dir.saves.RLock()
	defer s.dir.saves.RUnlock()
	for i := range chunks {
		if err := s.dir.writeChunk(&chunks[i]); err != nil {
			return 0, err
		}
	}
	head := b.find(b.Head)
	day := m.Saved.Unix() / (24 * 60 * 60)
	v := version{Identity: identity, Epoch: c.Epoch, Writer: c.Writer, Next: c.Position.Next, SHA256: hex.EncodeToString(m.Model[:]), Day: day}
	if head != nil && head.SHA256 == v.SHA256 {
		v.Number, v.Day = head.Number, head.Day
		*head = v
	} else {
		b.Last++
		v.Number = b.Last
		b.Versions = append(b.Versions, v)
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return 0, err
	}
	if err := s.dir.write(filepath.Join(s.folder, v.file()), manifest); err != nil {
		return 0, err
	}
	b.Head = v.Number
	s.trim(&b, day)
	if err := s.change(b); err != nil {
		return 0, err
	}
	return v.Number, nil
}

// encode returns a manifest's bytes, and the identity of a checkpoint: one that is saved again
// differs only in the time.
func encode(m *state.Manifest) (b []byte, identity string, err error) {
	if b, err = m.AppendBinary(nil); err != nil {
		return nil, "", err
	}
	timeless := *m
	timeless.Saved = time.Time{}
	t, err := timeless.AppendBinary(nil)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(append(t, m.Writer...))
	return b, hex.EncodeToString(sum[:]), nil
}

// trim drops versions from a book. What stays:
//
//   - the last Keep versions that are not lost
//   - of older ones the first of each day, of the last Daily days that have one
//   - one that was replaced or lost, until the model was saved on 30 further days; of the lost the
//     last 30
//   - the pinned one, and the head
//
// The days are in the order of the versions. A clock that runs ahead for a while makes one more day.
func (s *Store) trim(b *book, today int64) {
	stays := map[int64]bool{b.Head: true, b.Pinned: true}
	recent := 0
	for i := len(b.Versions) - 1; i >= 0 && recent < s.dir.cfg.Keep; i-- {
		if v := &b.Versions[i]; !v.Lost {
			stays[v.Number] = true
			recent++
		}
	}
	var firsts, lost []int64
	days := map[int64]bool{}
	for i := range b.Versions {
		v := &b.Versions[i]
		if v.Replaced || v.Lost {
			if v.Counted != today {
				v.Counted = today
				v.Waited++
			}
			if v.Waited <= marked {
				if v.Lost {
					lost = append(lost, v.Number)
				} else {
					stays[v.Number] = true
				}
			}
		}
		if !v.Lost && !stays[v.Number] && !days[v.Day] {
			days[v.Day] = true
			firsts = append(firsts, v.Number)
		} else if !v.Lost {
			days[v.Day] = true
		}
	}
	for _, number := range slices.Concat(firsts[max(0, len(firsts)-max(s.dir.cfg.Daily, 0)):], lost[max(0, len(lost)-mostLost):]) {
		stays[number] = true
	}
	b.Versions = slices.DeleteFunc(b.Versions, func(v version) bool { return !stays[v.Number] })
}

var manifestName = regexp.MustCompile(`^[0-9]+-[0-9a-f]{64}\.manifest$`)

// sweep deletes manifests that the book does not name, and chunks that no manifest in the
// directory names. What cannot be deleted stays until the next save.
func (s *Store) sweep() {
	named := map[string]bool{}
	for i := range s.book.Versions {
		named[s.book.Versions[i].file()] = true
	}
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return
	}
	gone := false
	for _, e := range entries {
		if name := e.Name(); manifestName.MatchString(name) && !named[name] || strings.HasPrefix(name, unfinished) {
			s.dir.step()
			gone = os.Remove(filepath.Join(s.folder, name)) == nil || gone
		}
	}
	if gone {
		s.dir.sweep()
	}
}

// whole reports whether all files of a version are there.
func (s *Store) whole(v *version) bool {
	_, err := s.read(v)
	return err == nil
}

// manifest reads the manifest of a version. An error wraps [state.ErrCorrupt].
func (s *Store) manifest(v *version) (*state.Manifest, error) {
	b, err := os.ReadFile(filepath.Join(s.folder, v.file()))
	if err != nil {
		return nil, fmt.Errorf("%w: version %d: %w", state.ErrCorrupt, v.Number, err)
	}
	m := new(state.Manifest)
	if err := m.UnmarshalBinary(b); err != nil {
		return nil, fmt.Errorf("version %d: %s: %w", v.Number, v.file(), err)
	}
	m.Writer = v.Writer
	if _, identity, err := encode(m); err != nil || identity != v.Identity {
		return nil, fmt.Errorf("%w: version %d: %s is not what was written", state.ErrCorrupt, v.Number, v.file())
	}
	return m, nil
}

// read reads a version, and verifies every hash.
func (s *Store) read(v *version) (*state.Checkpoint, error) {
	m, err := s.manifest(v)
	if err != nil {
		return nil, err
	}
	data := make([][]byte, len(m.Chunks))
	for i, name := range m.Chunks {
		if data[i], err = os.ReadFile(s.dir.chunk(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	c, err := state.Join(m, data)
	if err != nil {
		return nil, fmt.Errorf("version %d: %w", v.Number, err)
	}
	return c, nil
}

// newest calls read for the version that a pointer names and, where that is corrupt, for those
// before it that are not lost, until one is whole.
func (s *Store) newest(which state.Pointer, read func(*version) error) (number int64, err error) {
	named := s.book.find(s.book.pointer(which))
	if named == nil {
		return 0, state.ErrNone
	}
	err = read(named)
	for i := len(s.book.Versions) - 1; i >= 0 && errors.Is(err, state.ErrCorrupt); i-- {
		v := &s.book.Versions[i]
		if v.Lost || v.Number >= named.Number {
			continue
		}
		s.dir.cfg.Log.Error("a version is damaged: the one before is read", "model", s.model, "version", named.Number, "error", err)
		if again := read(v); again == nil {
			return v.Number, nil
		}
	}
	return named.Number, err
}

// Load returns the checkpoint that a pointer names and its version or, where that is corrupt, the
// newest before it that is whole. Before the first save the error wraps [state.ErrNone].
func (s *Store) Load(ctx context.Context, which state.Pointer) (c *state.Checkpoint, number int64, err error) {
	fail, end, err := s.begin(ctx, "load the "+which.String()+" of")
	if err != nil {
		return nil, 0, err
	}
	defer end()
	number, err = s.newest(which, func(v *version) (err error) { c, err = s.read(v); return err })
	if err != nil {
		return nil, 0, fail(err)
	}
	return c, number, nil
}

// LoadVersion returns a kept version. If it is not kept the error wraps [state.ErrNone].
func (s *Store) LoadVersion(ctx context.Context, number int64) (*state.Checkpoint, error) {
	fail, end, err := s.begin(ctx, fmt.Sprintf("load version %d of", number))
	if err != nil {
		return nil, err
	}
	defer end()
	v := s.book.find(number)
	if v == nil {
		return nil, fail(state.ErrNone)
	}
	c, err := s.read(v)
	return c, fail(err)
}

// Manifest returns the manifest of the version that a pointer names, and its number. Where that is
// corrupt, it is of a version before.
func (s *Store) Manifest(ctx context.Context, which state.Pointer) (m *state.Manifest, number int64, err error) {
	fail, end, err := s.begin(ctx, "read the manifest of the "+which.String()+" of")
	if err != nil {
		return nil, 0, err
	}
	defer end()
	number, err = s.newest(which, func(v *version) (err error) { m, err = s.manifest(v); return err })
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
	return state.Heading{Version: v.Number, Next: v.Next, Identity: v.Identity, Model: v.SHA256, Pinned: s.book.Pinned, Epoch: v.Epoch, Writer: v.Writer}, nil
}

// History returns the kept versions that are not lost, newest first. It leaves out those whose
// manifest cannot be read. Before the first save the error wraps [state.ErrNone].
func (s *Store) History(ctx context.Context) (history []state.Version, err error) {
	fail, end, err := s.begin(ctx, "list the versions of")
	if err != nil {
		return nil, err
	}
	defer end()
	if len(s.book.Versions) == 0 {
		return nil, fail(state.ErrNone)
	}
	for i := len(s.book.Versions) - 1; i >= 0; i-- {
		v := &s.book.Versions[i]
		if v.Lost {
			continue
		}
		m, err := s.manifest(v)
		if err != nil {
			s.dir.cfg.Log.Warn("a version cannot be read", "model", s.model, "version", v.Number, "error", err)
			continue
		}
		history = append(history, state.Version{Number: v.Number, Events: m.Events, Position: m.Position, Saved: m.Saved, Replaced: v.Replaced})
	}
	return history, nil
}

// Layout returns nil: a model here has one log.
func (s *Store) Layout(context.Context) error { return nil }

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
	return s.mark(ctx, fmt.Sprintf("pin version %d of", number), number, func(b *book, v *version) { b.Pinned = number })
}

// MarkReplaced keeps a version because another model takes its place.
func (s *Store) MarkReplaced(ctx context.Context, number int64) error {
	return s.mark(ctx, fmt.Sprintf("keep version %d of", number), number, func(b *book, v *version) { v.Replaced = true })
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
	if err != nil || s.book.Pinned == 0 {
		if err == nil {
			end()
		}
		return err
	}
	defer end()
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
		err = os.MkdirAll(s.folder, 0o700)
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
	b, err := os.ReadFile(filepath.Join(s.folder, promotionName))
	if errors.Is(err, fs.ErrNotExist) {
		err = state.ErrNone
	}
	if err == nil {
		err = p.UnmarshalBinary(b)
	}
	return p, fail(err)
}

// sweep deletes chunks that no manifest names, unless a model is being saved.
func (d *Dir) sweep() {
	if !d.saves.TryLock() {
		return
	}
	defer d.saves.Unlock()
	named := map[string]bool{}
	manifests, err := filepath.Glob(filepath.Join(d.path, "*", "*.manifest"))
	if err != nil {
		return
	}
	for _, path := range manifests {
		b, err := os.ReadFile(path)
		var m state.Manifest
		if err == nil {
			err = m.UnmarshalBinary(b)
		}
		if err != nil {
			return // what it names is not known
		}
		for _, name := range m.Chunks {
			named[d.chunk(name)] = true
		}
	}
	chunks, err := filepath.Glob(filepath.Join(d.path, chunkFolder, "*", "*"))
	if err != nil {
		return
	}
	for _, path := range chunks {
		if !named[path] {
			d.step()
			_ = os.Remove(path)
		}
	}
}
