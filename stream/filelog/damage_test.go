package filelog

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/filelog/disktest"
)

// flipped opens a copy of a log in which one bit is flipped.
func flipped(t *testing.T, from *disktest.Disk, name string, bit int64, opt Options) *Log {
	t.Helper()
	d := from.Copy()
	d.Files[name].Now[bit/8] ^= 1 << (bit % 8)
	l, err := OpenIn(d, "", opt)
	if err != nil {
		t.Fatalf("%s, bit %d: %v", name, bit, err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Wherever a bit flips in any file, no record reads as another one, no other record is lost, and
// the damage is named. Records that are appended later have offsets of their own.
func TestFlippedBits(t *testing.T) {
	from := disktest.New(1)
	l, err := OpenIn(from, "", Options{SegmentBytes: 2000, markAfter: time.Microsecond})
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
	for _, name := range slices.Sorted(maps.Keys(from.Files)) {
		for at := range int64(len(from.Files[name].Now)) * 8 {
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
	from := disktest.New(1)
	l, err := OpenIn(from, "", Options{})
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
	l = reopened(t, l.folder.(*disktest.Disk))
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

// A segment of another log is no reason to move anything.
func TestASegmentOfAnotherLog(t *testing.T) {
	var logs [2]*disktest.Disk
	for i := range logs {
		logs[i] = disktest.New(uint64(i))
		l, err := OpenIn(logs[i], "", Options{SegmentBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, numbered(0, 3, 5)...)
		add(t, l, numbered(3, 3, 5)...)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	logs[0].Files[segmentName(3)] = logs[1].Files[segmentName(3)]
	before := len(logs[0].Files)
	if l, err := OpenIn(logs[0], "", Options{}); err == nil || !strings.Contains(err.Error(), "is of another log") || len(logs[0].Files) != before {
		t.Errorf("it was opened, %v, %v", l, err)
	}
}

// The end of the last segment but one was durable, if the last one was being made.
func TestDamageBeforeASegmentThatWasBeingMade(t *testing.T) {
	from := disktest.New(1)
	l, err := OpenIn(from, "", Options{SegmentBytes: 300, markAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, numbered(0, 5, 100)...)
	size := l.sizeOf(0)
	add(t, l, numbered(5, 1, 5)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	from.Files[segmentName(5)].Now = from.Files[segmentName(5)].Now[:20]
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
	d := disktest.New(1)
	l, err := OpenIn(d, "", Options{SegmentBytes: 20_000})
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
		d.Lock()
		d.Unreadable = map[string][2]int64{name: {4096, 8192}}
		d.Unlock()
		again, err := OpenIn(d, "", Options{SegmentBytes: 20_000})
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
