package from010

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// A snapshot is all data of the Redis of 0.1.0. Version 1 of its file, with all integers big-endian, is
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
// It is replaced as a whole, and durable, so no part of it is ever missing.
type snapshot struct {
	path string
	file *os.File
	size int64
}

// A key is one of a snapshot.
type key struct {
	database int
	kind     byte
	name     string
	items    []item
	at       int64 // of a string's bytes in the file
}

// An item of a key. A string has a name alone.
type item struct {
	name, value []byte
	score       float64
}

const (
	snapshotMagic   = "hamletRD"
	snapshotHeader  = 20
	snapshotSum     = 8
	snapshotName    = "redis.snapshot"
	snapshotVersion = 1
)

// openSnapshot opens the snapshot in a folder. The error wraps [fs.ErrNotExist] if there is none: then
// that Redis was empty.
func openSnapshot(folder string) (*snapshot, error) {
	path := filepath.Join(folder, snapshotName)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &snapshot{path: path, file: f, size: info.Size()}, nil
}

func (s *snapshot) Close() error { return s.file.Close() }

// scan calls each with all keys, and read with the bytes of each. It verifies the sum of the file
// at its end: until then nothing may be relied on.
func (s *snapshot) scan(each func(*key) error, read func(bytes int64) error) error {
	sum := xxhash.New()
	end := max(s.size-snapshotSum, 0)
	body := io.NewSectionReader(s.file, 0, end)
	r := &keyReader{in: bufio.NewReaderSize(io.TeeReader(body, sum), 1<<20), end: end}
	err := r.keys(each, read)
	if errors.Is(err, errBroken) {
		return s.damaged(r.at, err)
	}
	if err != nil {
		return err
	}
	var want [snapshotSum]byte
	if _, err := s.file.ReadAt(want[:], end); err != nil {
		return s.damaged(r.at, err)
	}
	if got := sum.Sum64(); got != binary.BigEndian.Uint64(want[:]) {
		return s.damaged(r.at, fmt.Errorf("%w: the file's sum is %016x, not %016x", errBroken, got, want))
	}
	return nil
}

func (s *snapshot) damaged(at int64, why error) error {
	return &DamagedError{s.path, at,
		fmt.Errorf("%w. Put the file back from a copy, or move it away: "+
			"then the learner makes the model again from its log", why)}
}

// A keyReader reads keys from the front of a file.
type keyReader struct {
	in  *bufio.Reader
	at  int64 // of what is read next
	end int64
}

func (r *keyReader) keys(each func(*key) error, read func(bytes int64) error) error {
	var head [snapshotHeader]byte
	if err := r.full(head[:]); err != nil {
		return err
	}
	if string(head[:8]) != snapshotMagic {
		return fmt.Errorf("%w: this is no snapshot", errBroken)
	}
	if v := binary.BigEndian.Uint32(head[8:]); v != snapshotVersion {
		return fmt.Errorf("%w: it has version %d, and hamlet 0.1.0 wrote %d", errBroken, v, snapshotVersion)
	}
	last := &key{database: -1}
	for range binary.BigEndian.Uint64(head[12:]) {
		before := r.at
		k, err := r.key()
		if err != nil {
			return err
		}
		if k.database < last.database || k.database == last.database && k.name <= last.name {
			return fmt.Errorf("%w: the keys do not ascend", errBroken)
		}
		if err := each(k); err != nil {
			return err
		}
		last = k
		if err := read(r.at - before); err != nil {
			return err
		}
	}
	if r.at != r.end {
		return fmt.Errorf("%w: something follows the last key", errBroken)
	}
	return nil
}

// full reads all of b.
func (r *keyReader) full(b []byte) error {
	if int64(len(b)) > r.end-r.at {
		return fmt.Errorf("%w: the file ends within a key", errBroken)
	}
	n, err := io.ReadFull(r.in, b)
	r.at += int64(n)
	return err
}

func (r *keyReader) uint32() (uint32, error) {
	var b [4]byte
	err := r.full(b[:])
	return binary.BigEndian.Uint32(b[:]), err
}

// text reads bytes with their length before them.
func (r *keyReader) text() ([]byte, error) {
	length, err := r.uint32()
	if err != nil {
		return nil, err
	}
	if int64(length) > r.end-r.at {
		return nil, fmt.Errorf("%w: the file ends within a key", errBroken)
	}
	b := make([]byte, length)
	return b, r.full(b)
}

func (r *keyReader) key() (*key, error) {
	var head [10]byte
	if err := r.full(head[:]); err != nil {
		return nil, err
	}
	k := &key{database: int(head[0]), kind: head[1]}
	name, err := r.text()
	if err != nil {
		return nil, err
	}
	k.name = string(name)
	count, err := r.uint32()
	if err != nil {
		return nil, err
	}
	if k.database >= 16 || !strings.ContainsRune("shltz", rune(k.kind)) || count == 0 || k.kind == 's' && count != 1 {
		return nil, fmt.Errorf("%w: a key of kind %q in database %d with %d items", errBroken, k.kind, k.database,
			count)
	}
	for range count {
		var one item
		if one.name, err = r.text(); err == nil && k.kind == 'h' {
			one.value, err = r.text()
		}
		if err == nil && k.kind == 'z' {
			var score [8]byte
			err = r.full(score[:])
			one.score = math.Float64frombits(binary.BigEndian.Uint64(score[:]))
		}
		if err != nil {
			return nil, err
		}
		k.items = append(k.items, one)
	}
	k.at = r.at - int64(len(k.items[0].name))
	return k, nil
}
