package filelog

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"hamlet/stream/filelog/disk"
)

// A manifest is what the file "log" says, before the CRC of its bytes.
type manifest struct {
	ID    string     `json:"id"`
	First int64      `json:"first"`
	Left  [][2]int64 `json:"left_out,omitempty"`
}

const manifestName = "log"

// load reads the log in the folder. In an empty folder it makes one.
func (l *Log) load() error {
	names, err := l.folder.Names()
	if err != nil {
		return err
	}
	var bases []int64
	for _, name := range names {
		if base, ok := baseOf(name); ok {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	known, err := l.readManifest(slices.Contains(names, manifestName))
	if err != nil {
		return err
	}
	if !known {
		if known, err = l.identify(bases); err != nil {
			return err
		}
		if !known && len(bases) > 0 {
			return &DamagedError{File: segmentName(bases[0]), At: 0, From: bases[0], To: bases[0] + 1}
		}
		if !known {
			if _, err := rand.Read(l.id[:]); err != nil {
				return err
			}
		}
		l.first = l.opt.First
		if len(bases) > 0 {
			l.first = bases[0]
			l.opt.Log.Warn("the log's file was not there or is damaged: it is made again",
				"file", manifestName, "first_offset", l.first)
		}
		if err := l.writeManifest(); err != nil {
			return err
		}
	}
	l.seed = seedOf(l.id)
	for len(bases) > 1 && bases[1] <= l.first { // a retention was cut off
		if err := l.folder.Remove(segmentName(bases[0])); err != nil {
			return err
		}
		bases = bases[1:]
	}
	for _, base := range bases {
		l.segments = append(l.segments, segment{base: base})
	}
	return l.loadTail()
}

// loadTail opens the last segment. Without any it makes the first one.
func (l *Log) loadTail() error {
	l.end = l.first
	for i := range l.segments[:max(len(l.segments)-1, 0)] {
		f, err := l.folder.Open(segmentName(l.segments[i].base))
		if err != nil {
			return err
		}
		l.segments[i].size, err = f.Size()
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if len(l.segments) > 0 {
		if err := l.recover(0); err != nil {
			return err
		}
	}
	if l.end < l.opt.Next {
		l.opt.Log.Error("the log has lost records: it goes on behind the offsets that were given",
			"log_ends_at", l.end, "goes_on_at", l.opt.Next)
		l.end = l.opt.Next
	} else if l.tail != nil {
		return nil
	}
	err := l.roll()
	if err != nil && l.tail != nil {
		err = errors.Join(err, l.tail.Close())
	}
	return err
}

// identify takes the identity from a segment's header.
func (l *Log) identify(bases []int64) (known bool, err error) {
	for _, base := range bases {
		f, err := l.folder.Open(segmentName(base))
		if err != nil {
			return false, err
		}
		head := make([]byte, headerSize)
		n, _ := f.ReadAt(head, 0)
		if err := f.Close(); err != nil {
			return false, err
		}
		if id, of, ok := parseHeader(head[:n]); ok && of == base {
			l.id = id
			return true, nil
		}
	}
	return false, nil
}

// recover reads the last segment, and moves the end of a write aside that was cut off. All records
// below floor are known to have been durable.
func (l *Log) recover(floor int64) error {
	s := &l.segments[len(l.segments)-1]
	name := segmentName(s.base)
	f, err := l.folder.Open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	b := make([]byte, size)
	unreadable := false
	if err == nil {
		_, unreadable, err = readAt(f, b, 0)
	}
	if err == nil {
		id, base, ok := parseHeader(b)
		switch {
		case ok && (base != s.base || id != l.id):
			err = fmt.Errorf("%s is of another log: move it out of the folder", name)
		case !ok && size <= headerSize: // it was being made: all before it was durable
			return errors.Join(f.Close(), l.drop(name, s.base, b))
		case !ok:
			l.opt.Log.Error("the header of a segment is damaged: its records are read all the same", "file", name)
		}
	}
	if err == nil {
		err = l.recoverFrames(f, name, s, b, floor, unreadable)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.tail = f
	return nil
}

// drop drops a segment that was being made, and goes on with the one before.
func (l *Log) drop(name string, base int64, b []byte) error {
	if err := l.setAside(name, base, b); err != nil {
		return err
	}
	if err := l.folder.Remove(name); err != nil {
		return err
	}
	l.segments = l.segments[:len(l.segments)-1]
	if len(l.segments) == 0 {
		return nil
	}
	return l.recover(base)
}

func (l *Log) recoverFrames(f disk.File, name string, s *segment, b []byte, floor int64, unreadable bool) error {
	l.end, l.marked = s.base, true
	_, _, ok := parseHeader(b)
	at, size := int64(headerSize), int64(len(b))
	for at < size {
		fr, _, err := l.seed.frame(b[at:])
		if err == nil && fr.offset == l.end {
			at += fr.size
			if l.marked = len(fr.body) == 0; !l.marked {
				l.end++
			}
			continue
		}
		next, to := l.durable(b, at)
		if next < 0 && (l.end < floor || !ok && at == headerSize || unreadable) { // nothing is left of what was durable
			next, to = size, max(l.end, floor, l.opt.Next)
			if to == l.end {
				return &DamagedError{File: name, At: at, From: l.end, To: l.end + 1}
			}
		}
		if next < 0 { // nobody was told of it
			if err := l.setAside(name, l.end, b[at:]); err != nil {
				return err
			}
			if err := f.Truncate(at); err != nil {
				return err
			}
			break
		}
		l.opt.Log.Error("damage was found when the log was opened",
			"error", &DamagedError{File: name, At: at, From: l.end, To: to})
		at, l.end, l.marked = next, to, false
	}
	l.end = max(l.end, floor)
	s.size = at
	// What is read from here on must not be lost with the power.
	return errors.Join(f.Sync(), l.folder.Sync())
}

// durable reports whether what follows bytes that are no frame proves that they were durable. It returns
// where the next whole frame is, and its offset; −1: nothing does. A frame of the offset that is
// expected proves that the bytes were a mark.
func (l *Log) durable(b []byte, at int64) (next, to int64) {
	next = -1
	most := l.end + int64(len(b))/frameSize
	for p := at + 1; ; {
		n, fr := l.seed.find(b[p:], l.end-1, most)
		if n < 0 {
			return -1, 0
		}
		if next < 0 {
			next, to = p+int64(n), fr.offset
		}
		if fr.group > l.end || fr.offset == l.end && fr.group == l.end {
			return next, to
		}
		p += int64(n) + fr.size
	}
}

// readAt reads as io.ReaderAt does. What the disk cannot read is zero, and so no frame: what is around
// it can be read.
func readAt(f disk.File, b []byte, at int64) (n int, unreadable bool, err error) {
	n, err = f.ReadAt(b, at)
	if !errors.Is(err, syscall.EIO) {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, false, err
	}
	const block = 4096
	for n = 0; n < len(b); {
		to := min(n+block-int(at+int64(n))%block, len(b))
		k, err := f.ReadAt(b[n:to], at+int64(n))
		switch {
		case errors.Is(err, syscall.EIO):
			clear(b[n:to])
		case errors.Is(err, io.EOF):
			return n + k, true, nil
		case err != nil:
			return n, true, err
		}
		n = to
	}
	return n, true, nil
}

// setAside keeps bytes that were not acknowledged, for whoever wants to look at them.
func (l *Log) setAside(name string, offset int64, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	aside := fmt.Sprintf("torn-%020d-%d", offset, time.Now().UnixNano())
	l.opt.Log.Warn("the last write was cut off: nobody was told that it is in the log, and it is moved aside",
		"file", name, "offset", offset, "bytes", len(b), "to", aside)
	f, err := l.folder.Create(aside)
	if err == nil {
		_, err = f.WriteAt(b, 0)
		err = errors.Join(err, f.Sync(), f.Close(), l.folder.Sync())
	}
	if full(err) {
		l.opt.Log.Warn("there is no room to keep it: it is dropped", "bytes", len(b))
		return nil
	}
	return err
}

func (l *Log) readManifest(there bool) (known bool, err error) {
	if !there {
		return false, nil
	}
	f, err := l.folder.Open(manifestName)
	if err != nil {
		return false, err
	}
	size, err := f.Size()
	b := make([]byte, size)
	if err == nil && size > 0 {
		_, err = f.ReadAt(b, 0)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	text, sum, _ := strings.Cut(string(b), "\n")
	var m manifest
	if sum != fmt.Sprintf("%08x\n", crc32.Checksum([]byte(text), castagnoli)) || json.Unmarshal([]byte(text), &m) != nil {
		return false, nil
	}
	id, err := hex.DecodeString(m.ID)
	if err != nil || len(id) != len(l.id) || m.First < 0 {
		return false, nil
	}
	l.id, l.first = [16]byte(id), m.First
	for _, s := range m.Left {
		l.left = append(l.left, span{s[0], s[1]})
	}
	return true, nil
}

// writeManifest replaces the file "log" as a whole.
func (l *Log) writeManifest() error {
	m := manifest{ID: hex.EncodeToString(l.id[:]), First: l.first}
	for _, s := range l.left {
		m.Left = append(m.Left, [2]int64{s.from, s.to})
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	const fresh = manifestName + ".new"
	if err := l.folder.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := l.folder.Create(fresh)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(text, "\n%08x\n", crc32.Checksum(text, castagnoli)), 0)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(l.folder.Rename(fresh, manifestName), l.folder.Sync())
}
