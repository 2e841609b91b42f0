package filelog

import (
	"errors"
	"testing"

	"hamlet/stream"
	"hamlet/stream/filelog/disktest"
	"time"
)

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

// A segment is as old as its newest record, also in a file that was copied or converted just now, or closed
// while the clock was set back. A record that says a time to come, or that cannot be read, leaves the time of
// the file.
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
		"the clock is back":  {first: now, last: old, file: now, size: 100},
		"back, long records": {first: now, last: old, file: now, size: 600_000},
		"of a time to come":  {first: now.Add(time.Hour), last: now.Add(time.Hour), file: old, size: 100, goes: true},
		"damaged and new":    {first: old, last: old, file: now, size: 100, damaged: true},
		"damaged and old":    {first: old, last: old, file: old, size: 100, damaged: true, goes: true},
		"and it closed it":   {first: now, last: old, file: old, size: 100},
		"it marked the end":  {first: now, last: now, file: old, size: 100},
		"to come, then now":  {first: now.Add(time.Hour), last: now, file: old, size: 100},
	} {
		t.Run(name, func(t *testing.T) {
			d := disktest.New(1)
			l, err := OpenIn(d, "", Options{SegmentBytes: 1})
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
			d.Lock()
			segment := d.Files[segmentName(0)]
			segment.Changed = c.file
			for i := headerSize; c.damaged && i < len(segment.Now); i += 20 {
				segment.Now[i] ^= 1
			}
			d.Unlock()
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

// A segment of a clock that was set back is no older than the one before it.
func TestRetainOfAClockSetBack(t *testing.T) {
	l := opened(t, t.TempDir(), Options{SegmentBytes: 1})
	now := time.Now()
	for i, age := range []time.Duration{2 * time.Hour, 10_000 * time.Hour, 0} {
		r := numbered(i, 1, 100)
		r[0].Time = now.Add(-age)
		add(t, l, r...)
	}
	for _, c := range []struct {
		before time.Time
		want   int64
	}{{now.Add(-3 * time.Hour), 0}, {now.Add(-time.Hour), 2}} {
		if first, err := l.Retain(c.before, 0, 3); first != c.want || err != nil {
			t.Errorf("before %v the log begins at %d, want %d (%v)", c.before, first, c.want, err)
		}
	}
}

// A mark that stands before the first record hides not how new that is. It stands there where a segment began
// on a disk that had no room for the records.
func TestRetainBehindAMark(t *testing.T) {
	d := disktest.New(1)
	l, err := OpenIn(d, "", Options{SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	old := now.Add(-3 * time.Hour)
	records := numbered(0, 4, 1000)
	for i := range records {
		records[i].Time = old
	}
	records[1].Time = now
	add(t, l, records[0])
	d.Lock()
	d.Room = headerSize + frameSize
	d.Unlock()
	if err := l.Append(t.Context(), records[1:3]...); !errors.Is(err, stream.ErrFull) {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // it writes a mark
		t.Fatal(err)
	}
	d.Lock()
	d.Room = -1
	if got := len(d.Files[segmentName(1)].Now); got != headerSize+frameSize {
		t.Fatalf("the segment has %d bytes, want a header and a mark", got)
	}
	d.Unlock()
	if l, err = OpenIn(d, "", Options{SegmentBytes: 1}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	add(t, l, records[1:3]...)
	add(t, l, records[3])
	if first, err := l.Retain(now.Add(-time.Hour), 0, 4); first != 1 || err != nil {
		t.Errorf("the log begins at %d, want 1 (%v)", first, err)
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
