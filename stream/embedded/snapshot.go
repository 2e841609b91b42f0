package embedded

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/cespare/xxhash/v2"
)

// A snapshot is all data of an embedded Redis at one moment. Version 1 of its file,
// with all integers big-endian, is
//
//	at  bytes
//	 0   8    "hamletRD"
//	 8   4    version of this layout: 1
//	12   8    number of keys
//	20   …    the keys, ascending by database and name, each:
//	            1   database, 0 to 15
//	            1   kind: s string, h hash, l list, t set, z sorted set
//	            8   expires: milliseconds since 1970-01-01 UTC, 0 never
//	            4+  name, as length and bytes
//	            4   number of items n: 1 for a string
//	            n × item: string, list, set: 4+ bytes
//	                      hash:              4+ field, 4+ value
//	                      sorted set:        4+ member, 8 score (IEEE 754)
//	end  8    xxHash64 of all bytes before
//
// Nothing may follow. Fields and members ascend, so a snapshot has one encoding.
type snapshot struct {
	keys []snapshotKey
}

type snapshotKey struct {
	database uint8
	kind     byte
	expires  int64 // milliseconds since 1970, 0 never
	name     string
	items    []snapshotItem
}

type snapshotItem struct {
	name  string  // the value of a string, an element, a field or a member
	value string  // of a hash's field
	score float64 // of a sorted set's member
}

const (
	snapshotMagic     = "hamletRD"
	snapshotVersion   = 1
	snapshotHeader    = 20
	snapshotDatabases = 16 // as a Redis has by default
)

// kinds are the types that a snapshot holds, by miniredis's names.
var kinds = map[string]byte{"string": 's', "hash": 'h', "list": 'l', "set": 't', "zset": 'z'}

// collect returns all data of a Redis in which no command runs.
func collect(m *miniredis.Miniredis, now time.Time) (snapshot, error) {
	var s snapshot
	for database := range snapshotDatabases {
		db := m.DB(database)
		for _, name := range db.Keys() { // sorted
			key := snapshotKey{database: uint8(database), kind: kinds[db.Type(name)], name: name}
			if ttl := db.TTL(name); ttl > 0 {
				key.expires = now.Add(ttl).UnixMilli()
			}
			if err := key.collect(db); err != nil {
				return snapshot{}, fmt.Errorf("key %s: %w", name, err)
			}
			s.keys = append(s.keys, key)
		}
	}
	return s, nil
}

func (k *snapshotKey) collect(db *miniredis.RedisDB) error {
	var names []string
	var scores map[string]float64
	var err error
	switch k.kind {
	case 's':
		names = make([]string, 1)
		names[0], err = db.Get(k.name)
	case 'h':
		names, err = db.HKeys(k.name)
	case 'l':
		names, err = db.List(k.name)
	case 't':
		names, err = db.Members(k.name)
	case 'z':
		scores, err = db.SortedSet(k.name)
		names = slices.Collect(maps.Keys(scores))
	default:
		err = fmt.Errorf("a %s cannot be stored in a snapshot: use a real redis for it", db.Type(k.name))
	}
	if err != nil {
		return err
	}
	if k.kind != 'l' {
		slices.Sort(names)
	}
	k.items = make([]snapshotItem, len(names))
	for i, name := range names {
		k.items[i] = snapshotItem{name: name, score: scores[name]}
		if k.kind == 'h' {
			k.items[i].value = db.HGet(k.name, name)
		}
	}
	return nil
}

// restore puts the data that has not expired into an empty Redis.
func (s *snapshot) restore(m *miniredis.Miniredis, now time.Time) error {
	for _, key := range s.keys {
		var ttl time.Duration
		if key.expires != 0 {
			if ttl = time.UnixMilli(key.expires).Sub(now); ttl <= 0 {
				continue
			}
		}
		db := m.DB(int(key.database))
		var err error
		for _, item := range key.items {
			switch key.kind {
			case 's':
				err = db.Set(key.name, item.name)
			case 'h':
				db.HSet(key.name, item.name, item.value)
			case 'l':
				_, err = db.Push(key.name, item.name)
			case 't':
				_, err = db.SetAdd(key.name, item.name)
			case 'z':
				_, err = db.ZAdd(key.name, item.score, item.name)
			}
			if err != nil {
				return fmt.Errorf("key %s: %w", key.name, err)
			}
		}
		if ttl > 0 {
			db.SetTTL(key.name, ttl)
		}
	}
	return nil
}

// write replaces the file at path. The file stays complete if the machine dies.
func (s *snapshot) write(path string) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // removeTemporary expects this name
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = s.encode(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close()) // or a power failure could undo the renaming
}

// removeTemporary removes the files of a process that was killed in write.
func removeTemporary(path string) error {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name+".") && strings.HasSuffix(e.Name(), ".tmp") {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func (s *snapshot) encode(w io.Writer) error {
	sum := xxhash.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	// Errors of a bufio.Writer stay until Flush.
	var scratch []byte
	put := func(b []byte) { _, _ = buffered.Write(b) }
	text := func(s string) {
		scratch = binary.BigEndian.AppendUint32(scratch[:0], uint32(len(s)))
		put(scratch)
		_, _ = buffered.WriteString(s)
	}
	put([]byte(snapshotMagic))
	scratch = binary.BigEndian.AppendUint32(scratch[:0], snapshotVersion)
	scratch = binary.BigEndian.AppendUint64(scratch, uint64(len(s.keys)))
	put(scratch)
	for i := range s.keys {
		key := &s.keys[i]
		scratch = append(scratch[:0], key.database, key.kind)
		scratch = binary.BigEndian.AppendUint64(scratch, uint64(key.expires))
		put(scratch)
		text(key.name)
		scratch = binary.BigEndian.AppendUint32(scratch[:0], uint32(len(key.items)))
		put(scratch)
		for _, item := range key.items {
			text(item.name)
			switch key.kind {
			case 'h':
				text(item.value)
			case 'z':
				scratch = binary.BigEndian.AppendUint64(scratch[:0], math.Float64bits(item.score))
				put(scratch)
			}
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	_, err := w.Write(binary.BigEndian.AppendUint64(nil, sum.Sum64()))
	return err
}

var errSnapshot = errors.New("the file is damaged")

// UnmarshalBinary reads a file's bytes. The snapshot shares no memory with them.
func (s *snapshot) UnmarshalBinary(b []byte) error {
	if len(b) < snapshotHeader+8 || string(b[:8]) != snapshotMagic {
		return fmt.Errorf("%w: %d bytes that are not a snapshot", errSnapshot, len(b))
	}
	if v := binary.BigEndian.Uint32(b[8:]); v != snapshotVersion {
		return fmt.Errorf("it has version %d, this program reads %d", v, snapshotVersion)
	}
	body := b[:len(b)-8]
	if got, want := xxhash.Sum64(body), binary.BigEndian.Uint64(b[len(body):]); got != want {
		return fmt.Errorf("%w: its sum is %016x, not %016x", errSnapshot, got, want)
	}
	r := snapshotReader{rest: body[snapshotHeader:]}
	var keys []snapshotKey
	count := binary.BigEndian.Uint64(b[12:])
	for i := uint64(0); i < count && !r.failed; i++ {
		key := r.key()
		if n := len(keys); n > 0 && !keys[n-1].before(key) {
			r.failed = true
		}
		keys = append(keys, key)
	}
	if r.failed || len(r.rest) > 0 {
		return fmt.Errorf("%w at byte %d", errSnapshot, len(body)-len(r.rest))
	}
	s.keys = keys
	return nil
}

func (k *snapshotKey) before(other snapshotKey) bool {
	return k.database < other.database || k.database == other.database && k.name < other.name
}

// A snapshotReader reads from the front of bytes. After a failure it returns zeros.
type snapshotReader struct {
	rest   []byte
	failed bool // once true, it stays true
}

func (r *snapshotReader) take(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed = true
		return make([]byte, min(n, 8)) // zeros for an integer
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *snapshotReader) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *snapshotReader) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
func (r *snapshotReader) text() string   { return string(r.take(uint64(r.uint32()))) }

func (r *snapshotReader) key() snapshotKey {
	head := r.take(2)
	key := snapshotKey{database: head[0], kind: head[1]}
	key.expires = int64(r.uint64())
	key.name = r.text()
	count := r.uint32()
	if key.database >= snapshotDatabases || !strings.ContainsRune("shltz", rune(key.kind)) ||
		key.expires < 0 || count == 0 || key.kind == 's' && count != 1 {
		r.failed = true
	}
	for i := uint32(0); i < count && !r.failed; i++ {
		item := snapshotItem{name: r.text()}
		switch key.kind {
		case 'h':
			item.value = r.text()
		case 'z':
			item.score = math.Float64frombits(r.uint64())
			if math.IsNaN(item.score) {
				r.failed = true
			}
		}
		if n := len(key.items); n > 0 && key.kind != 'l' && key.items[n-1].name >= item.name {
			r.failed = true
		}
		key.items = append(key.items, item)
	}
	return key
}
