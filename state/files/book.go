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
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hamlet/state"
)

// A book says what is kept of a model. Its file is JSON, a line break, and the CRC-32C of the
// JSON in eight hexadecimal digits.
//
// A book is not changed: a changed copy takes its place.
type book struct {
	Epoch    int64     `json:"epoch"`
	Last     int64     `json:"last"` // the highest number of a version
	Head     int64     `json:"head"` // 0: nothing is saved
	Pinned   int64     `json:"pinned,omitempty"`
	Versions []version `json:"versions"`          // ascending
	Dropped  []string  `json:"dropped,omitempty"` // manifests that it named before, and that are to be deleted
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
	manifestEnd = ".manifest"
	unfinished  = ".new-"

	// marked is on how many days the model was saved until a version goes that was replaced or
	// lost, and mostLost how many of the lost are kept.
	marked, mostLost = 30, 30
)

var (
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
	manifestName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([0-9]{1,18})-([0-9a-f]{64})\.manifest$`)
	})
)

func (v *version) file() string { return fmt.Sprintf("%d-%s%s", v.Number, v.Identity, manifestEnd) }

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

func (b *book) clone() book {
	c := *b
	c.Versions = slices.Clone(b.Versions)
	return c
}

// encode returns the bytes of a manifest's file, and the identity of a checkpoint: one that is saved
// again differs only in the time. The file is the writer, quoted, a line break and the manifest.
func encode(m *state.Manifest) (b []byte, identity string, err error) {
	if b, err = m.AppendBinary(fmt.Appendf(nil, "%q\n", m.Writer)); err != nil {
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

// decode reads the bytes of a manifest's file. The manifest has a hash; the writer is in the identity
// alone.
func decode(b []byte) (*state.Manifest, error) {
	quoted, text, _ := strings.Cut(string(b), "\n")
	writer, err := strconv.Unquote(quoted)
	if err != nil {
		return nil, fmt.Errorf("%w: it does not begin with a writer", state.ErrCorrupt)
	}
	m := new(state.Manifest)
	if err := m.UnmarshalBinary([]byte(text)); err != nil {
		return nil, err
	}
	m.Writer = writer
	return m, nil
}

// load reads the book. Where it is missing or damaged, but manifests are there, it makes it again.
func (s *Store) load() error {
	found, err := s.tidy()
	if err != nil {
		return err
	}
	path := filepath.Join(s.folder, bookName)
	var b book
	text, err := s.dir.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(found) == 0:
		err = nil
	case errors.Is(err, fs.ErrNotExist):
		b, err = s.rebuild(found, "missing")
	case err != nil:
	default:
		body, sum, _ := strings.Cut(string(text), "\n")
		if sum == fmt.Sprintf("%08x\n", crc32.Checksum([]byte(body), castagnoli)) {
			err = json.Unmarshal([]byte(body), &b)
			break
		}
		if len(found) == 0 {
			return fmt.Errorf("%w: %s is not what was written, and there is no manifest to make it again from: "+
				"restore it from a backup, or remove it to begin without a checkpoint", state.ErrCorrupt, path)
		}
		aside := filepath.Join(s.folder, "book.damaged-"+time.Now().UTC().Format("20060102T150405.000000000Z"))
		if err := os.Rename(path, aside); err != nil {
			return err
		}
		b, err = s.rebuild(found, "damaged")
	}
	if err != nil {
		return err
	}
	s.book = b
	named := map[string]bool{}
	for i := range b.Versions {
		named[b.Versions[i].file()] = true
	}
	for i := range found {
		name := found[i].file()
		s.book.Last = max(s.book.Last, found[i].Number)
		if !named[name] && !slices.Contains(b.Dropped, name) {
			s.dir.cfg.Log.Warn("a manifest that the book does not name stays, with its chunks: remove it if nobody "+
				"needs it", "model", s.model, "file", filepath.Join(s.folder, name))
		}
	}
	return nil
}

// tidy returns a version of each manifest that is there, with number and identity alone. It removes
// files that another program did not finish.
func (s *Store) tidy() (found []version, err error) {
	entries, err := os.ReadDir(s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished) {
			s.dir.step()
			_ = os.Remove(filepath.Join(s.folder, e.Name()))
		} else if is := manifestName().FindStringSubmatch(e.Name()); is != nil {
			number, err := strconv.ParseInt(is[1], 10, 64)
			if err == nil && number > 0 {
				found = append(found, version{Number: number, Identity: is[2]})
			}
		}
	}
	return found, nil
}

// rebuild makes a book from the manifests. The head is the highest version that is whole, and what is
// above that is left out. Where none is whole all are in the book, so that a reader is told.
func (s *Store) rebuild(found []version, why string) (b book, err error) {
	saved := map[string]time.Time{}
	for i := range found {
		v := &found[i]
		m, err := s.manifest(v)
		if errors.Is(err, state.ErrCorrupt) {
			continue
		}
		if err != nil {
			return book{}, err
		}
		v.Epoch, v.Writer, v.Next, v.SHA256 = m.Epoch, m.Writer, m.Position.Next, hex.EncodeToString(m.Model[:])
		v.Day = day(m.Saved)
		saved[v.file()] = m.Saved
		b.Epoch = max(b.Epoch, v.Epoch)
	}
	b.Epoch++
	// Of several with one number the last one is taken. An in-place save makes two for a moment.
	slices.SortFunc(found, func(v, w version) int {
		return cmp.Or(cmp.Compare(w.Number, v.Number), cmp.Compare(w.Next, v.Next), cmp.Compare(w.Epoch, v.Epoch),
			saved[w.file()].Compare(saved[v.file()]))
	})
	for i := range found {
		err := s.whole(&found[i])
		if err == nil {
			b.Head, found = found[i].Number, found[i:]
			break
		}
		if !errors.Is(err, state.ErrCorrupt) {
			return book{}, err
		}
	}
	for i := range found {
		v := found[i]
		if b.Head != 0 && v.SHA256 == "" || len(b.Versions) > 0 && b.Versions[len(b.Versions)-1].Number == v.Number {
			continue // damaged, or an older one of this number
		}
		b.Versions = append(b.Versions, v)
	}
	slices.Reverse(b.Versions)
	b.Last = b.Versions[len(b.Versions)-1].Number
	b.Head = cmp.Or(b.Head, b.Last)
	s.dir.cfg.Log.Error("the book of a model was "+why+" and is made again from the manifests: the pin, and the marks "+
		"of versions that were replaced or lost, are gone", "model", s.model, "directory", s.dir.path,
		"head", b.Head, "epoch", b.Epoch, "versions", len(b.Versions), "manifests", len(found))
	if err := s.change(b); err != nil { // the next program makes it again
		s.dir.cfg.Log.Error("the book that was made again cannot be written", "model", s.model, "error", err)
	}
	return b, nil
}

// change writes a changed book, and uses it once it is on the disk.
func (s *Store) change(b book) error {
	named := map[string]bool{}
	for i := range b.Versions {
		named[b.Versions[i].file()] = true
	}
	dropped := slices.Clone(s.book.Dropped)
	for i := range s.book.Versions {
		dropped = append(dropped, s.book.Versions[i].file())
	}
	b.Dropped = nil
	for _, name := range dropped {
		if !named[name] && !slices.Contains(b.Dropped, name) {
			b.Dropped = append(b.Dropped, name)
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := s.dir.folder(s.folder); err != nil {
		return err
	}
	text = fmt.Appendf(text, "\n%08x\n", crc32.Checksum(text, castagnoli))
	if err := s.dir.write(filepath.Join(s.folder, bookName), text); err != nil {
		s.doubtful = s.doubtful || errors.As(err, new(undurable))
		return err
	}
	s.book, s.doubtful = b, false
	return nil
}

// manifest reads the manifest of a version.
func (s *Store) manifest(v *version) (*state.Manifest, error) {
	b, err := s.dir.readPart(filepath.Join(s.folder, v.file()))
	if err != nil {
		return nil, fmt.Errorf("version %d: %w", v.Number, err)
	}
	m, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("version %d: %s: %w", v.Number, v.file(), err)
	}
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
		if data[i], err = s.dir.readPart(s.dir.chunk(name)); err != nil {
			return nil, fmt.Errorf("version %d: chunk %d of %d: %w", v.Number, i+1, len(data), err)
		}
	}
	c, err := state.Join(m, data)
	if err != nil {
		return nil, fmt.Errorf("version %d: %w", v.Number, err)
	}
	return c, nil
}

// whole verifies every hash of a version, one chunk at a time.
func (s *Store) whole(v *version) error {
	m, err := s.manifest(v)
	if err != nil {
		return err
	}
	for i, name := range m.Chunks {
		b, err := s.dir.readPart(s.dir.chunk(name))
		if err == nil && sha256.Sum256(b) != name {
			err = fmt.Errorf("%w: it does not have the hash that names it", state.ErrCorrupt)
		}
		if err != nil {
			return fmt.Errorf("version %d: chunk %d of %d: %w", v.Number, i+1, len(m.Chunks), err)
		}
	}
	return nil
}

// newest calls read for the version that a pointer names and, where that is corrupt, for those
// before it that are not lost, until one is whole.
func (s *Store) newest(b *book, which state.Pointer, read func(*version) error) (number int64, err error) {
	named := b.find(b.pointer(which))
	if named == nil {
		return 0, state.ErrNone
	}
	err = read(named)
	for i := len(b.Versions) - 1; i >= 0 && errors.Is(err, state.ErrCorrupt); i-- {
		v := &b.Versions[i]
		if v.Lost || v.Number >= named.Number {
			continue
		}
		s.dir.cfg.Log.Error("a version is damaged: the one before is read", "model", s.model, "version", named.Number,
			"error", err)
		switch again := read(v); {
		case again == nil:
			return v.Number, nil
		case !errors.Is(again, state.ErrCorrupt):
			return 0, again
		}
	}
	return named.Number, err
}

// view returns the book as it is.
func (s *Store) view(ctx context.Context) (book, error) {
	if err := s.mu.lock(ctx); err != nil {
		return book{}, err
	}
	defer s.mu.unlock()
	return s.current()
}

// current returns the book, which it loads once. The caller holds s.mu.
func (s *Store) current() (book, error) {
	if !s.loaded {
		if err := s.load(); err != nil {
			return book{}, err
		}
		s.loaded = true
	}
	return s.book, nil
}

func day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// trim drops versions from a copy of a book. What stays is what package redis keeps:
//
//   - the last Keep versions with distinct bytes that are not lost
//   - of older ones, with other bytes, the first of each day, of the last Daily days that have one
//   - one that was replaced, and one that is lost, until the model was saved on 30 further days; of
//     the lost that were not replaced those among the last 30
//   - the pinned one, and the head
//
// The days are in the order of the versions. A clock that runs ahead for a while makes one more day.
// A distrusted version is a head that was found corrupt: it goes, unless it is pinned.
func (s *Store) trim(b *book, today, distrusted int64) {
	cfg := &s.dir.cfg
	stays := map[int64]bool{}
	bytes := map[string]bool{}
	fits := func(v *version) bool {
		return v.SHA256 != "" && !v.Lost && v.Number != distrusted && !bytes[v.SHA256]
	}
	for i := len(b.Versions) - 1; i >= 0 && len(bytes) < cfg.Keep; i-- {
		if v := &b.Versions[i]; fits(v) {
			bytes[v.SHA256], stays[v.Number] = true, true
		}
	}
	lost := 0
	for i := len(b.Versions) - 1; i >= 0; i-- {
		v := &b.Versions[i]
		if !v.Replaced && !v.Lost {
			continue
		}
		if v.Counted != today {
			v.Counted = today
			v.Waited++
		}
		if v.Lost {
			lost++
		}
		if v.Waited <= marked && (v.Replaced || lost <= mostLost) {
			stays[v.Number] = true
		}
	}
	var firsts []int64
	days := map[int64]bool{}
	for i := range b.Versions {
		if v := &b.Versions[i]; fits(v) && v.Day > 0 && !days[v.Day] {
			bytes[v.SHA256], days[v.Day] = true, true
			firsts = append(firsts, v.Number)
		}
	}
	for _, number := range firsts[max(0, len(firsts)-*cfg.Daily):] {
		stays[number] = true
	}
	if distrusted != 0 {
		delete(stays, distrusted)
	}
	stays[b.Head], stays[b.Pinned] = true, true
	b.Versions = slices.DeleteFunc(b.Versions, func(v version) bool { return !stays[v.Number] })
}
