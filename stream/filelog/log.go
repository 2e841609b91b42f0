// Package filelog keeps a log in files: a [stream.Log] that loses nothing it has acknowledged, not
// with the power either, and that says which bytes are not those that were written.
//
//	log, err := filelog.Open("data/log", filelog.Options{})
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	if err := log.Append(ctx, stream.Record{Value: event}); err != nil { // it is on the disk
//		return err
//	}
//	records, end, err := log.Read(ctx, 0, stream.Limit{}, time.Second)
//
// # Files
//
//	log                        identity, first offset, what is left out (see skip)
//	00000000000000000000.log   segments, by their first offset; records are appended to the last one
//	torn-…                     the end of a write that was cut off: nobody was told that it is there
//	lock                       held by the one program that has the log open
//
// frame.go has the bytes of a segment. One write and one fsync serve all that is appended meanwhile.
//
// # What can happen
//
//   - The power fails, or the program is killed. The last write may be there in part. It was not
//     acknowledged: what is whole of it stays, the rest is moved aside.
//   - A bit flips. A record that does not read as written ends Read with a *[DamagedError], which
//     wraps [stream.ErrDamaged] and names the file and the offsets. All others can be read. Skip
//     leaves the damage out. What the disk cannot read is damage too.
//   - How these two differ: a later group proves that the records before were durable. A second
//     after the last one a mark is written, which proves that of it. Of a program that was killed
//     within that second, damage of the last group looks like a cut write until it is opened again.
//   - The disk is full. Append returns [stream.ErrFull], and works again once there is room.
//   - An fsync fails. The descriptor is given up, because what it had may be lost without
//     another word. What was not acknowledged is cut off over another one. If that fails too,
//     every Append fails until the log is opened again.
//   - A file is missing. The offsets that it had are damaged. No offset is ever given twice, if
//     Options.Next says up to where they were given.
package filelog

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"hamlet/stream"
	"hamlet/stream/filelog/disk"
	"hamlet/stream/lockfile"
)

const (
	segmentBytes = 8 << 20   // of a closed segment, about
	groupBytes   = 4 << 20   // of one write, about
	readBytes    = 4 << 20   // that Read returns where the caller does not say
	fillBytes    = 256 << 10 // that are read of a file at a time: what is read behind the limit is read again
	markAfter    = time.Second
	maxCursors   = 16
)

// MaxRecord bounds the Size of a record.
const MaxRecord = 1<<20 - 1<<10

// Options of a log. Zero fields mean defaults.
type Options struct {
	// First is where a log begins that is made now. One that is there begins where it does.
	First int64

	// Next is the first offset that was certainly never given, as the checkpoint of a model
	// says. If the log ends before, records were lost: it goes on there.
	Next int64

	SegmentBytes int64 // of a segment, about; default 8 MiB
	Log          *slog.Logger

	markAfter time.Duration // for tests; default 1 s
}

// ErrClosed: the log was closed before Append or Read, or during it.
var ErrClosed = errors.New("log closed")

// A Log is a log in files. Its methods may be called concurrently.
type Log struct {
	folder disk.Folder
	opt    Options
	name   string // of the folder
	unlock func() error
	id     [16]byte
	seed   seed

	mu       sync.Mutex
	segments []segment
	first    int64
	end      int64         // all records below are durable
	left     []span        // what Skip has left out, ascending
	moved    chan struct{} // closed and renewed when end grows, and at Close
	closed   bool
	unsaid   bool // the file "log" says an earlier first than first: the disk was full
	queue    []*request
	cursors  map[int64]cursor // where some offsets stand
	rolling  chan error       // what waits for a new segment; nil: nobody

	wake chan struct{} // has room for one token: there is something in queue, or the log is closed
	done chan struct{} // closed when the appender has ended

	// Of the appender's goroutine.
	tail   disk.File
	bytes  []byte // scratch
	marked bool   // nothing was written since the last mark
	broken error  // why nothing can be appended any more
}

// A segment is one file. Only the last one grows.
type segment struct {
	base int64 // its first offset
	size int64 // up to which it is durable
}

type span struct{ from, to int64 } // offsets from to to−1

// A cursor is where an offset stands.
type cursor struct{ base, at int64 } // the first offset of its segment, and where in that file

// A request is the records of one Append, or some of them.
type request struct {
	frames []byte
	n      int
	err    error // set before done is closed
	done   chan struct{}
}

func segmentName(base int64) string { return fmt.Sprintf("%020d.log", base) }

// baseOf returns the base that a file's name says.
func baseOf(name string) (base int64, ok bool) {
	n, err := fmt.Sscanf(name, "%020d.log", &base)
	return base, n == 1 && err == nil && base >= 0 && name == segmentName(base)
}

// Open opens the log of a folder, which it makes if it is missing. Another program that has it open
// is an error, which wraps [lockfile.ErrLocked].
func Open(path string, opt Options) (*Log, error) {
	err := os.MkdirAll(path, 0o700)
	if err == nil {
		err = disk.Dir(filepath.Dir(filepath.Clean(path))).Sync()
	}
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	unlock, err := lockfile.Lock(filepath.Join(path, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open the log in %s: %w", path, err)
	}
	l, err := OpenIn(disk.Dir(path), path, opt)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the log in %s: %w", path, err), unlock())
	}
	l.unlock = unlock
	return l, nil
}

// OpenIn opens the log of a folder that no other program has, as [Open] does. Name is what errors call it.
func OpenIn(folder disk.Folder, name string, opt Options) (*Log, error) {
	opt.SegmentBytes = cmp.Or(opt.SegmentBytes, segmentBytes)
	opt.markAfter = cmp.Or(opt.markAfter, markAfter)
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	l := &Log{
		folder: folder, opt: opt, name: name, unlock: func() error { return nil }, cursors: map[int64]cursor{},
		moved: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if err := l.load(); err != nil {
		return nil, err
	}
	go l.run()
	return l, nil
}

// Close ends Reads that wait and Appends that were not begun, and closes the files.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.moved)
	}
	l.mu.Unlock()
	l.nudge()
	<-l.done
	l.mu.Lock()
	tail := l.tail
	l.tail = nil
	l.mu.Unlock()
	if tail == nil {
		return nil
	}
	return errors.Join(tail.Close(), l.unlock())
}

// Name returns what errors and logs call it.
func (l *Log) Name() string { return "the log in " + l.name }

// Bounds implements [stream.Log]. Another ID is another log.
func (l *Log) Bounds(context.Context) (stream.Bounds, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return stream.Bounds{}, ErrClosed
	}
	return stream.Bounds{First: l.first, End: l.end, ID: hex.EncodeToString(l.id[:])}, nil
}

// Skip leaves damaged offsets out of the log: it reads as if there were a hole from one up to another.
// Where the file "log" is damaged, that is forgotten, and the damage is named again.
func (l *Log) Skip(from, to int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from < l.first || to <= from || to > l.end {
		return fmt.Errorf("leave out the offsets from %d to %d: the log goes from %d to %d", from, to-1, l.first, l.end-1)
	}
	before := l.left
	l.left = append(slices.Clone(before), span{from, to})
	slices.SortFunc(l.left, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	if err := l.writeManifest(); err != nil {
		l.left = before
		return fmt.Errorf("leave out offsets: %w", err)
	}
	return nil
}

// leftOut returns the offset behind what was left out at an offset.
func (l *Log) leftOut(at int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.left {
		if s.from <= at && at < s.to {
			at = s.to
		}
	}
	return at
}

// Roll begins a new segment if the first record of the last one is of before a time. So [Log.Retain]
// can delete what is there, also where too little is written to fill a segment.
func (l *Log) Roll(ctx context.Context, before time.Time) error {
	l.mu.Lock()
	base, end := l.segments[len(l.segments)-1].base, l.end
	l.mu.Unlock()
	if base == end {
		return nil
	}
	records, _, err := l.Read(ctx, base, stream.Limit{Records: 1}, 0)
	if err != nil && !errors.Is(err, stream.ErrDamaged) {
		return err
	}
	if len(records) > 0 && !records[0].Time.Before(before) {
		return nil
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	if l.rolling != nil {
		l.mu.Unlock()
		return nil // another one waits for it
	}
	rolled := make(chan error, 1)
	l.rolling = rolled
	l.mu.Unlock()
	l.nudge()
	return <-rolled
}

// Retain deletes whole segments from the beginning of the log: those whose newest record is of before a
// time, and, if most is above 0, as many as there are more bytes than that. It keeps the offsets from
// upTo on, and the last segment. It returns the log's beginning. It works on a full disk too.
func (l *Log) Retain(before time.Time, most, upTo int64) (first int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var bytes int64
	for _, s := range l.segments {
		bytes += s.size
	}
	n := 0
	var newest time.Time // of what is before n, too: a record is no older than those before it
	for ; n+1 < len(l.segments) && l.segments[n+1].base <= upTo; n++ {
		s := l.segments[n]
		at, err := l.newest(s, l.segments[n+1].base)
		if err != nil {
			return l.first, fmt.Errorf("retain: %w", err)
		}
		if at.After(newest) {
			newest = at
		}
		if !newest.Before(before) && (most <= 0 || bytes <= most) {
			break
		}
		bytes -= s.size
	}
	if n == 0 && !l.unsaid || l.closed {
		return l.first, nil
	}
	if err := l.deleteFirst(n, before); err != nil {
		return l.first, fmt.Errorf("retain: %w", err)
	}
	return l.first, nil
}

// deleteFirst deletes the first n segments. The caller holds mu.
//
// The file "log" comes before the segments: what is missing was deleted. On a full disk it cannot be written.
// Then segments go first, until there is room for it. If the program dies before that, their offsets are
// named as damaged until retention deletes a further segment.
func (l *Log) deleteFirst(n int, before time.Time) error {
	first, gone := l.first, l.segments[:n]
	l.first = l.segments[n].base
	err := l.writeManifest()
	for full(err) && len(gone) > 0 {
		if removed := l.folder.Remove(segmentName(gone[0].base)); removed != nil {
			err = errors.Join(err, removed)
			break
		}
		gone, l.unsaid = gone[1:], true
		if err = l.folder.Sync(); err == nil {
			err = l.writeManifest()
		}
	}
	l.segments = slices.Clone(l.segments[n-len(gone):])
	if err != nil {
		if l.first = first; l.unsaid {
			l.first = l.segments[0].base
		}
		return err
	}
	l.unsaid = false
	l.segments = l.segments[len(gone):]
	l.forgetTorn(before)
	for _, s := range gone {
		err = errors.Join(err, l.folder.Remove(segmentName(s.base)))
	}
	return errors.Join(err, l.folder.Sync())
}

// oldest returns the time that the first record of a closed segment carries, or the zero time if it cannot
// be read. A mark may stand before it.
func (l *Log) oldest(f disk.File, s segment, next int64) (at time.Time, err error) {
	b := make([]byte, min(s.size, headerSize+2*frameSize+maxBody))
	n, _, err := readAt(f, b, 0)
	if err != nil {
		return at, err
	}
	for b = b[:n]; ; {
		where, first := l.seed.find(b, s.base-1, next-1)
		if where < 0 {
			return at, nil
		}
		if r, err := first.record(nil); err == nil {
			return r.Time, nil
		}
		b = b[int64(where)+first.size:]
	}
}

// newest returns when the newest record of a closed segment was written: the later one of the times that its
// first and its last record carry. The last record says a time before the first one's where the clock was set
// back. A time that is yet to come counts as that of the file. Else that says nothing: a file is younger than
// its records where it was copied or converted, and older where the clock was set back when it was written
// last. It reads the ends of the file.
func (l *Log) newest(s segment, next int64) (at time.Time, err error) {
	f, err := l.folder.Open(segmentName(s.base))
	if err != nil {
		return at, err
	}
	defer f.Close()
	if at, err = f.Changed(); err != nil {
		return at, err
	}
	for size := min(s.size, 64<<10); ; size = min(s.size, 8*size) { // one frame may be longer
		b := make([]byte, size)
		n, _, err := readAt(f, b, s.size-size)
		if err != nil {
			return at, err
		}
		if last, ok := l.seed.last(b[:n], s.base-1, next-1); ok {
			r, err := last.record(nil)
			if err != nil {
				return at, nil
			}
			first, err := l.oldest(f, s, next)
			if err != nil {
				return at, err
			}
			changed, now := at, time.Now()
			at = time.Time{}
			for _, t := range []time.Time{first, r.Time} {
				if t.After(now) {
					t = changed
				}
				if t.After(at) {
					at = t
				}
			}
			return at, nil
		}
		if size == s.size { // all is damaged
			return at, nil
		}
	}
}

// forgetTorn deletes what was moved aside before a time: it may be mail.
func (l *Log) forgetTorn(before time.Time) {
	names, _ := l.folder.Names()
	for _, name := range names {
		if !strings.HasPrefix(name, "torn-") {
			continue
		}
		if f, err := l.folder.Open(name); err == nil {
			changed, err := f.Changed()
			if err := errors.Join(err, f.Close()); err == nil && changed.Before(before) {
				_ = l.folder.Remove(name)
			}
		}
	}
}

// busy reports whether the program has too many files open.
func busy(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }
