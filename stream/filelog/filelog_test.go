package filelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/lockfile"
	"hamlet/stream/logtest"
)

// opened opens the log of a folder, which is closed with the test.
func opened(t testing.TB, path string, opt Options) *Log {
	t.Helper()
	l, err := Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// numbered returns records with the values first, first+1, …
func numbered(first, n, size int) []stream.Record {
	records := make([]stream.Record, n)
	for i := range records {
		records[i] = stream.Record{Key: fmt.Appendf(nil, "k%d", i%3), Value: fmt.Appendf(make([]byte, 0, size+20), "%0*d", size, first+i),
			Headers: []stream.Header{{Key: "h", Value: []byte("1")}}, Time: time.UnixMilli(int64(1_700_000_000_000 + first + i))}
	}
	return records
}

func add(t testing.TB, l *Log, records ...stream.Record) {
	t.Helper()
	if err := l.Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

// all reads from an offset to the end, or to the first error.
func all(l *Log, from int64) (records []stream.Record, err error) {
	b, err := l.Bounds(context.Background())
	for next := from; err == nil && next < b.End; {
		var some []stream.Record
		some, _, err = l.Read(context.Background(), next, stream.Limit{}, 0)
		records = append(records, some...)
		if len(some) == 0 {
			break
		}
		next = some[len(some)-1].Offset + 1
	}
	return records, err
}

// A reached forwards to a log that a test opens again. Two see the same one.
type reached struct {
	mu  *sync.RWMutex
	log **Log
}

func (r reached) Bounds(ctx context.Context) (stream.Bounds, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return (*r.log).Bounds(ctx)
}

func (r reached) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) ([]stream.Record, int64, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return (*r.log).Read(ctx, from, most, wait)
}

func (r reached) Append(ctx context.Context, records ...stream.Record) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return (*r.log).Append(ctx, records...)
}

// A log in files keeps the laws of a log, with segments of any size.
func TestLogKeepsTheLaws(t *testing.T) {
	for _, size := range []int64{1, 300, 4000, 0} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			logtest.Run(t, func(t *testing.T) logtest.Subject {
				path := filepath.Join(t.TempDir(), "log")
				opt := Options{SegmentBytes: size}
				log := opened(t, path, opt)
				r := reached{new(sync.RWMutex), &log}
				t.Cleanup(func() { log.Close() })
				again := func(t *testing.T, between func()) {
					t.Helper()
					r.mu.Lock()
					defer r.mu.Unlock()
					if err := log.Close(); err != nil {
						t.Fatal(err)
					}
					between()
					var err error
					if log, err = Open(path, opt); err != nil {
						t.Fatal(err)
					}
				}
				s := logtest.Subject{
					Log: r, Appender: r,
					Open:    func(*testing.T) (stream.Log, stream.Appender) { return r, r },
					Restart: func(t *testing.T) { again(t, func() {}) },
					Replace: func(t *testing.T) {
						again(t, func() {
							if err := os.RemoveAll(path); err != nil {
								t.Fatal(err)
							}
						})
					},
					TooLarge: 1 << 20,
				}
				if size == 1 { // else all may be in one segment
					s.Retain = func(t *testing.T) int64 {
						add(t, log, stream.Record{Value: []byte("of another segment")})
						first, err := log.Retain(time.Now().Add(time.Hour), 0, 1000)
						if err != nil {
							t.Fatal(err)
						}
						return first
					}
				}
				return s
			})
		})
	}
}

// One program has a log.
func TestLocked(t *testing.T) {
	path := t.TempDir()
	l := opened(t, path, Options{})
	if _, err := Open(path, Options{}); !errors.Is(err, lockfile.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	opened(t, path, Options{})
}

// flipped opens a copy of a log in which one bit is flipped.
func flipped(t *testing.T, from *disk, name string, bit int64, opt Options) *Log {
	t.Helper()
	d := newDisk(1)
	from.mu.Lock()
	defer from.mu.Unlock()
	for name, i := range from.files {
		f, err := d.create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(i.now, 0); err != nil {
			t.Fatal(err)
		}
	}
	d.files[name].now[bit/8] ^= 1 << (bit % 8)
	l, err := open(d, "", opt)
	if err != nil {
		t.Fatalf("%s, bit %d: %v", name, bit, err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Wherever a bit flips in any file, no record reads as another one, no other record is lost, and
// the damage is named. Records that are appended later have offsets of their own.
func TestFlippedBits(t *testing.T) {
	from := newDisk(1)
	l, err := open(from, "", Options{SegmentBytes: 2000, markAfter: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	var want []stream.Record
	for i := range 12 {
		records := numbered(10*i, 10, 5+i*i)
		add(t, l, records...)
		if i%2 == 0 {
			l.awaitMark(t)
		}
		want = append(want, records...)
	}
	for i := range want {
		want[i].Offset = int64(i)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	type bit struct {
		file string
		at   int64
	}
	var bits []bit
	for _, name := range slices.Sorted(maps.Keys(from.files)) {
		for at := range int64(len(from.files[name].now)) * 8 {
			bits = append(bits, bit{name, at})
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	random.Shuffle(len(bits), func(i, j int) { bits[i], bits[j] = bits[j], bits[i] })
	const n = 1000
	harmless := 0
	for _, flip := range bits[:n] {
		l := flipped(t, from, flip.file, flip.at, Options{SegmentBytes: 2000, Next: 120})
		damaged, err := l.Verify(t.Context())
		if err != nil {
			t.Fatalf("%+v: %v", flip, err)
		}
		lost := 0
		for _, d := range damaged {
			if d.File != flip.file {
				t.Errorf("%+v: named is %v", flip, d)
			}
			if d.To > d.From {
				if err := l.Skip(d.From, d.To); err != nil {
					t.Fatal(err)
				}
				lost += int(d.To - d.From)
			}
		}
		if lost > 1 || len(damaged) > 1 {
			t.Errorf("%+v: %d records are lost: %v", flip, lost, damaged)
		}
		if len(damaged) == 0 {
			harmless++
		}
		add(t, l, numbered(1000, 1, 3)...)
		got, err := all(l, 0)
		if err != nil {
			t.Fatalf("%+v: %v", flip, err)
		}
		last := got[len(got)-1]
		if last.Offset < 120 || string(last.Value) != "1000" {
			t.Errorf("%+v: what is appended then is %s at %d", flip, last.Value, last.Offset)
		}
		if len(got)-1 != len(want)-lost {
			t.Errorf("%+v: %d of %d records are left, and %d are damaged", flip, len(got)-1, len(want), lost)
		}
		for _, r := range got[:len(got)-1] {
			if !same(r, want[r.Offset]) {
				t.Errorf("%+v: offset %d reads %q", flip, r.Offset, r.Value)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if harmless > n/20 { // of the file "log", the padding of headers, and marks
		t.Errorf("%d of %d flips were not noticed", harmless, n)
	}
	t.Logf("%d flips, %d of them in no record", n, harmless)
}

func same(a, b stream.Record) bool {
	return a.Offset == b.Offset && string(a.Key) == string(b.Key) && string(a.Value) == string(b.Value) && a.Time.Equal(b.Time) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b stream.Header) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}

// What is damaged ends Read with its name, after the records before it. Read goes on behind it, and
// over it once it is left out, also after a restart.
func TestDamageIsNamed(t *testing.T) {
	from := newDisk(1)
	l, err := open(from, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, numbered(0, 100, 50)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	size := int64(frameSize + 8 + 3 + 1 + 2 + 2 + 50) // of each frame
	l = flipped(t, from, segmentName(0), (headerSize+40*size+30)*8, Options{})
	records, err := all(l, 0)
	var damaged *DamagedError
	if len(records) != 40 || !errors.As(err, &damaged) || !errors.Is(err, stream.ErrDamaged) ||
		*damaged != (DamagedError{File: segmentName(0), At: headerSize + 40*size, From: 40, To: 41}) {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if text := err.Error(); strings.Count(text, "damage") != 1 {
		t.Errorf("not once: %s", text)
	}
	if records, err := all(l, 41); len(records) != 59 || err != nil {
		t.Errorf("behind it: %d records, %v", len(records), err)
	}
	if err := l.Skip(40, 41); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = reopened(t, l.folder.(*disk))
	if records, err := all(l, 0); len(records) != 99 || err != nil {
		t.Errorf("left out: %d records, %v", len(records), err)
	}
	if damaged, err := l.Verify(t.Context()); len(damaged) > 0 || err != nil {
		t.Errorf("left out, and still %v, %v", damaged, err)
	}
	for _, wrong := range [][2]int64{{-1, 3}, {5, 5}, {99, 101}} {
		if err := l.Skip(wrong[0], wrong[1]); err == nil {
			t.Errorf("%v was left out", wrong)
		}
	}
}

// A segment that is missing is damage: its offsets are named, and those behind are read.
func TestMissingSegment(t *testing.T) {
	for missing := range 4 {
		path := t.TempDir()
		l := opened(t, path, Options{SegmentBytes: 1})
		for i := range 4 {
			add(t, l, numbered(10*i, 10, 5)...)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		first, last := int64(10*missing), int64(10*missing+10)
		if err := os.Remove(filepath.Join(path, segmentName(first))); err != nil {
			t.Fatal(err)
		}
		l = opened(t, path, Options{Next: 40})
		if b, err := l.Bounds(t.Context()); b.First != 0 || b.End != 40 || err != nil {
			t.Errorf("without segment %d: %+v, %v", missing, b, err)
		}
		_, err := all(l, 0)
		var damaged *DamagedError
		if !errors.As(err, &damaged) || damaged.From != first || damaged.To != last || damaged.At != -1 {
			t.Errorf("without segment %d: %v", missing, err)
			continue
		}
		if records, err := all(l, last); len(records) != int(40-last) || err != nil {
			t.Errorf("behind segment %d: %d records, %v", missing, len(records), err)
		}
		if err := l.Skip(first, last); err != nil {
			t.Fatal(err)
		}
		if records, err := all(l, 0); len(records) != 30 || err != nil {
			t.Errorf("without segment %d: %d records, %v", missing, len(records), err)
		}
	}
}

// Retention deletes whole segments, and none that is wanted.
func TestRetain(t *testing.T) {
	path := t.TempDir()
	l := opened(t, path, Options{SegmentBytes: 1})
	for i := range 6 {
		records := numbered(10*i, 10, 1000)
		for i := range records {
			records[i].Time = time.Now()
		}
		add(t, l, records...)
	}
	later, long := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for _, c := range []struct {
		before     time.Time
		most, upTo int64
		first      int64
	}{
		{long, 0, 60, 0},
		{long, 1 << 20, 60, 0},
		{later, 0, 9, 0},
		{later, 0, 19, 10},
		{long, 42_000, 60, 20},
		{later, 0, 60, 50},
		{later, 1, 60, 50},
	} {
		if first, err := l.Retain(c.before, c.most, c.upTo); first != c.first || err != nil {
			t.Errorf("%+v: the log begins at %d, %v", c, first, err)
		}
	}
	if records, err := all(l, 50); len(records) != 10 || err != nil {
		t.Errorf("%d records, %v", len(records), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = opened(t, path, Options{})
	if b, err := l.Bounds(t.Context()); b.First != 50 || b.End != 60 || err != nil {
		t.Errorf("opened again: %+v, %v", b, err)
	}
	if damaged, err := l.Verify(t.Context()); len(damaged) > 0 || err != nil {
		t.Errorf("%v, %v", damaged, err)
	}
}

// A segment is as old as its newest record, also in a file that was copied or converted just now. A record
// that says a time to come, or that cannot be read, leaves the time of the file.
func TestRetainByTheTimeOfRecords(t *testing.T) {
	now := time.Now()
	old, keep := now.Add(-3*time.Hour), now.Add(-time.Hour)
	for name, c := range map[string]struct {
		first, last, file time.Time
		size              int
		damaged           bool
		goes              bool
	}{
		"converted":          {first: old, last: old, file: now, size: 100, goes: true},
		"long records":       {first: old, last: old, file: now, size: 600_000, goes: true},
		"its last is new":    {first: old, last: now, file: now, size: 100},
		"of a time to come":  {first: now.Add(time.Hour), last: now.Add(time.Hour), file: old, size: 100, goes: true},
		"damaged and new":    {first: old, last: old, file: now, size: 100, damaged: true},
		"damaged and old":    {first: old, last: old, file: old, size: 100, damaged: true, goes: true},
		"a file of long ago": {first: now, last: now, file: old, size: 100, goes: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(1)
			l, err := open(d, "", Options{SegmentBytes: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			records := numbered(0, 3, c.size)
			for i := range records {
				records[i].Time = c.first
			}
			records[2].Time = c.last
			add(t, l, records...)
			add(t, l, numbered(3, 1, 100)...)
			d.mu.Lock()
			segment := d.files[segmentName(0)]
			segment.changed = c.file
			for i := headerSize; c.damaged && i < len(segment.now); i += 20 {
				segment.now[i] ^= 1
			}
			d.mu.Unlock()
			want := int64(0)
			if c.goes {
				want = 3
			}
			if first, err := l.Retain(keep, 0, 4); first != want || err != nil {
				t.Errorf("the log begins at %d, want %d (%v)", first, want, err)
			}
		})
	}
}

// A segment that is not full ends once its first record is old, and is deleted with the others then.
func TestRollByAge(t *testing.T) {
	l := opened(t, t.TempDir(), Options{})
	now := time.Now()
	for _, age := range []time.Duration{10 * time.Hour, 2 * time.Hour} {
		r := numbered(0, 1, 100)
		r[0].Time = now.Add(-age)
		add(t, l, r...)
	}
	for i, c := range []struct {
		before time.Time
		first  int64
	}{
		{now.Add(-11 * time.Hour), 0}, // none is that old
		{now.Add(-9 * time.Hour), 2},
		{now, 2}, // there is no record any more
	} {
		if err := l.Roll(t.Context(), c.before); err != nil {
			t.Fatal(err)
		}
		if first, err := l.Retain(now.Add(time.Hour), 0, 2); first != c.first || err != nil {
			t.Errorf("%d: the log begins at %d, %v", i, first, err)
		}
	}
	add(t, l, numbered(2, 3, 100)...)
	if records, err := all(l, 2); len(records) != 3 || err != nil {
		t.Errorf("%d records, %v", len(records), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Roll(t.Context(), now); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed log: %v", err)
	}
}

// The log's own file is made again from the segments.
func TestManifestIsMadeAgain(t *testing.T) {
	path := t.TempDir()
	l := opened(t, path, Options{SegmentBytes: 1})
	add(t, l, numbered(0, 10, 5)...)
	add(t, l, numbered(10, 10, 5)...)
	before, err := l.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, manifestName)); err != nil {
		t.Fatal(err)
	}
	l = opened(t, path, Options{})
	if now, err := l.Bounds(t.Context()); now != before || err != nil {
		t.Errorf("%+v, %v; before %+v", now, err, before)
	}
	if _, err := os.Stat(filepath.Join(path, manifestName)); errors.Is(err, fs.ErrNotExist) {
		t.Error("it is not made again")
	}
}

// awaitMark waits until a mark stands behind the last record.
func (l *Log) awaitMark(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		l.mu.Lock()
		last := l.segments[len(l.segments)-1]
		l.mu.Unlock()
		f, err := l.folder.open(segmentName(last.base))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, frameSize)
		if _, err := f.ReadAt(b, last.size-frameSize); err != nil {
			t.Fatal(err)
		}
		if fr, _, err := l.seed.frame(b); err == nil && len(fr.body) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("there is no mark")
		}
	}
}

// A mark that is damaged costs no record, neither at the next opening nor for a reader. It is named.
func TestDamagedMark(t *testing.T) {
	for _, groups := range []int{1, 2} {
		from := newDisk(1)
		l, err := open(from, "", Options{markAfter: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, numbered(0, 5, 50)...)
		l.awaitMark(t)
		mark := l.sizeOf(0) - frameSize
		for i := range groups {
			add(t, l, numbered(5+5*i, 5, 50)...)
		}
		again := flipped(t, from, segmentName(0), (mark+9)*8, Options{}) // the program was killed
		records, err := all(again, 0)
		if err != nil || len(records) != 5+5*groups {
			t.Errorf("%d groups behind it: %d records, %v", groups, len(records), err)
		}
		damaged, err := again.Verify(t.Context())
		if err != nil || len(damaged) != 1 || damaged[0].From != 5 || damaged[0].To != 5 {
			t.Errorf("%d groups behind it: %v, %v", groups, damaged, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is opened after a kill is proven durable by a mark: a bit that flips then is damage.
func TestAMarkAfterAKill(t *testing.T) {
	d := newDisk(1)
	l, err := open(d, "", Options{markAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, numbered(0, 5, 50)...)
	size := l.sizeOf(0)
	killed := d.cut()
	again, err := open(killed, "", Options{markAfter: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	again.awaitMark(t)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	third := flipped(t, killed, segmentName(0), (size-10)*8, Options{})
	if b, err := third.Bounds(t.Context()); b.End != 5 || err != nil {
		t.Errorf("the log ends at %d, %v; want 5", b.End, err)
	}
	if damaged, err := third.Verify(t.Context()); len(damaged) != 1 || damaged[0].From != 4 || err != nil {
		t.Errorf("%v, %v", damaged, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A segment of another log is no reason to move anything.
func TestASegmentOfAnotherLog(t *testing.T) {
	var logs [2]*disk
	for i := range logs {
		logs[i] = newDisk(uint64(i))
		l, err := open(logs[i], "", Options{SegmentBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, numbered(0, 3, 5)...)
		add(t, l, numbered(3, 3, 5)...)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	logs[0].files[segmentName(3)] = logs[1].files[segmentName(3)]
	before := len(logs[0].files)
	if l, err := open(logs[0], "", Options{}); err == nil || !strings.Contains(err.Error(), "is of another log") || len(logs[0].files) != before {
		t.Errorf("it was opened, %v, %v", l, err)
	}
}

// The end of the last segment but one was durable, if the last one was being made.
func TestDamageBeforeASegmentThatWasBeingMade(t *testing.T) {
	from := newDisk(1)
	l, err := open(from, "", Options{SegmentBytes: 300, markAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, numbered(0, 5, 100)...)
	size := l.sizeOf(0)
	add(t, l, numbered(5, 1, 5)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	from.files[segmentName(5)].now = from.files[segmentName(5)].now[:20]
	again := flipped(t, from, segmentName(0), (size-10)*8, Options{SegmentBytes: 300})
	if b, err := again.Bounds(t.Context()); b.End != 5 || err != nil {
		t.Errorf("the log ends at %d, %v; want 5", b.End, err)
	}
	if damaged, err := again.Verify(t.Context()); len(damaged) != 1 || damaged[0].From != 4 || damaged[0].To != 5 || err != nil {
		t.Errorf("%v, %v", damaged, err)
	}
}

// What the disk cannot read is damage: the rest can be read.
func TestUnreadableSector(t *testing.T) {
	d := newDisk(1)
	l, err := open(d, "", Options{SegmentBytes: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		add(t, l, numbered(20*i, 20, 100)...)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{segmentName(0), segmentName(l.segments[len(l.segments)-1].base)} {
		d.mu.Lock()
		d.unreadable = map[string][2]int64{name: {4096, 8192}}
		d.mu.Unlock()
		again, err := open(d, "", Options{SegmentBytes: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		damaged, err := again.Verify(t.Context())
		if err != nil || len(damaged) != 1 || damaged[0].File != name || damaged[0].To-damaged[0].From < 20 {
			t.Fatalf("%s: %v, %v", name, damaged, err)
		}
		if err := again.Skip(damaged[0].From, damaged[0].To); err != nil {
			t.Fatal(err)
		}
		records, err := all(again, 0)
		if int64(len(records)) != 400-(damaged[0].To-damaged[0].From) || err != nil {
			t.Errorf("%s: %d records, %v", name, len(records), err)
		}
		again.left = nil
		if err := again.writeManifest(); err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// sizeOf returns up to where a segment is durable.
func (l *Log) sizeOf(i int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments[i].size
}

// A log that is made anew begins where it is told to. One that is there does not move.
func TestFirst(t *testing.T) {
	path := t.TempDir()
	for range 2 { // the second time nothing was appended yet
		l, err := Open(path, Options{First: 70})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := l.Bounds(t.Context()); err != nil || b.First != 70 || b.End != 70 {
			t.Fatalf("bounds %+v, %v; want 70 to 70", b, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(path, Options{First: 5})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, numbered(0, 3, 10)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = opened(t, path, Options{})
	if _, _, err := l.Read(t.Context(), 69, stream.Limit{}, 0); !errors.Is(err, stream.ErrGone) {
		t.Errorf("offset 69: %v, want ErrGone", err)
	}
	if records, err := all(l, 70); err != nil || len(records) != 3 || records[0].Offset != 70 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// Offsets that never were are left out by hand: Next goes on behind them, and Skip says that they
// are no damage. Package from010 writes holes so.
func TestHoles(t *testing.T) {
	path := t.TempDir()
	end := int64(3)
	for _, next := range []int64{10, 17, 19} {
		l, err := Open(path, Options{First: 3, Next: next})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Skip(end, next); err != nil {
			t.Fatal(err)
		}
		add(t, l, numbered(int(next), 1, 10)...)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		end = next + 1
	}
	l := opened(t, path, Options{})
	var got []int64
	records, err := all(l, 3)
	for i := range records {
		got = append(got, records[i].Offset)
	}
	if damaged, bad := l.Verify(t.Context()); bad != nil || len(damaged) > 0 {
		t.Errorf("damaged %v, %v", damaged, bad)
	}
	if err != nil || !slices.Equal(got, []int64{10, 17, 19}) {
		t.Errorf("offsets %v, %v", got, err)
	}
}
