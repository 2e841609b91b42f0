package filelog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/filelog/disktest"
)

// The power fails at every operation of the disk in turn, and again and again after it. What was
// acknowledged is there, under its offset, and nothing that nobody appended.
func TestPowerCuts(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 5
	}
	torn, kept := 0, 0
	marks := []time.Duration{0, time.Microsecond} // seldom, and after nearly each group
	for seed := range seeds {
		for left := 0; ; left++ {
			d := disktest.New(uint64(seed))
			random := rand.New(rand.NewPCG(uint64(seed), uint64(left)))
			var acknowledged, given []string // values by offset
			d.Left = left
			whole := false
			for range 3 { // cuts
				l, err := OpenIn(d, "", Options{SegmentBytes: 1500, markAfter: marks[seed%2]})
				for err == nil && !whole {
					var records []stream.Record
					for range 1 + random.IntN(4) {
						value := fmt.Sprintf("%d.%d.%d", len(acknowledged), len(given), random.IntN(1<<30))
						given = append(given, value)
						records = append(records, stream.Record{Value: append([]byte(value+" "), make([]byte, random.IntN(700))...)})
					}
					b, _ := l.Bounds(context.Background())
					if err = l.Append(context.Background(), records...); err != nil {
						break
					}
					for len(acknowledged) < int(b.End) { // what was not acknowledged, and is there
						acknowledged = append(acknowledged, "")
						kept++
					}
					for _, r := range records {
						value, _, _ := cutAtSpace(r.Value)
						acknowledged = append(acknowledged, value)
					}
					if random.IntN(4) == 0 {
						_, err = l.Retain(time.Now().Add(time.Hour), 0, int64(random.IntN(len(acknowledged))))
					}
					whole = len(given) > 60
				}
				if err != nil && !errors.Is(err, disktest.ErrOff) {
					t.Fatalf("seed %d, power off after %d: %v", seed, left, err)
				}
				if l != nil {
					_ = l.Close()
				}
				if whole {
					break
				}
				if random.IntN(3) > 0 { // else the program was killed, and the disk lost nothing
					d = d.Cut()
				}
				d.Left = random.IntN(left + 1)
			}
			d = d.Cut()
			d.Left = -1
			l, err := OpenIn(d, "", Options{SegmentBytes: 1500})
			if err != nil {
				t.Fatalf("seed %d, power off after %d: %v", seed, left, err)
			}
			b, _ := l.Bounds(t.Context())
			records, err := all(l, b.First)
			if err != nil {
				t.Fatalf("seed %d, power off after %d: %v", seed, left, err)
			}
			if damaged, err := l.Verify(t.Context()); err != nil || len(damaged) > 0 {
				t.Fatalf("seed %d, power off after %d: damaged %v, %v", seed, left, damaged, err)
			}
			if b.End < int64(len(acknowledged)) {
				t.Fatalf("seed %d, power off after %d: the log ends at %d, and %d were acknowledged", seed, left, b.End, len(acknowledged))
			}
			for i, r := range records {
				value, _, _ := cutAtSpace(r.Value)
				if r.Offset != b.First+int64(i) || !slices.Contains(given, value) ||
					r.Offset < int64(len(acknowledged)) && acknowledged[r.Offset] != "" && acknowledged[r.Offset] != value {
					t.Fatalf("seed %d, power off after %d: at %d is %q", seed, left, r.Offset, value)
				}
			}
			for name := range d.Files {
				if len(name) > 5 && name[:5] == "torn-" {
					torn++
				}
			}
			_ = l.Close()
			if whole {
				break
			}
		}
	}
	if torn == 0 || kept == 0 {
		t.Errorf("%d writes were cut off, %d records were kept that nobody was told of: the test misses its point", torn, kept)
	}
	t.Logf("%d writes were cut off, %d records were kept that nobody was told of", torn, kept)
}

func cutAtSpace(b []byte) (before string, after []byte, found bool) {
	for i, c := range b {
		if c == ' ' {
			return string(b[:i]), b[i+1:], true
		}
	}
	return string(b), nil, false
}

// A full disk refuses records, and takes them again once there is room. Nothing is lost or there in
// part.
func TestFullDisk(t *testing.T) {
	d := disktest.New(1)
	l, err := OpenIn(d, "", Options{SegmentBytes: 1500})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n, refused := 0, 0
	for i := range 300 {
		switch {
		case i%30 == 10:
			d.Lock()
			d.Room = i * 7 % 900
			d.Unlock()
		case i%30 == 25:
			d.Lock()
			d.Room = -1
			d.Unlock()
		}
		err := l.Append(t.Context(), numbered(n, 1, 100+i%500)...)
		switch {
		case errors.Is(err, stream.ErrFull):
			refused++
		case err != nil:
			t.Fatal(err)
		default:
			n++
		}
		records, err := all(l, 0)
		if err != nil || len(records) != n {
			t.Fatalf("after %d: %d records of %d, %v", i, len(records), n, err)
		}
	}
	if refused < 50 || n < 150 {
		t.Errorf("%d were refused and %d taken", refused, n)
	}
	d = d.Cut()
	again, err := OpenIn(d, "", Options{SegmentBytes: 1500})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if records, err := all(again, 0); err != nil || len(records) != n {
		t.Errorf("opened again: %d records of %d, %v", len(records), n, err)
	}
}

// Retention makes room on a disk that has none: it needs none first. It goes on where it was if what it
// freed was taken, and after the power has failed anywhere in it.
func TestRetainOnAFullDisk(t *testing.T) {
	filled := func(t *testing.T) (*disktest.Disk, *Log) {
		d := disktest.New(1)
		l, err := OpenIn(d, "", Options{SegmentBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			add(t, l, numbered(10*i, 10, 30)...)
		}
		d.Lock()
		d.Room = 0
		d.Unlock()
		return d, l
	}
	later := time.Now().Add(time.Hour)
	d, l := filled(t)
	if err := l.Append(t.Context(), numbered(50, 1, 30)...); !errors.Is(err, stream.ErrFull) {
		t.Fatal(err)
	}
	if first, err := l.Retain(later, 0, 29); first != 20 || err != nil {
		t.Fatalf("the log begins at %d, %v", first, err)
	}
	add(t, l, numbered(50, 1, 30)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = reopened(t, d)
	if records, err := all(l, 20); len(records) != 31 || err != nil {
		t.Errorf("%d records, %v", len(records), err)
	}
	if damaged, err := l.Verify(t.Context()); len(damaged) > 0 || err != nil {
		t.Errorf("%v, %v", damaged, err)
	}

	for left := range 12 { // operations until the power is off
		d, l := filled(t)
		d.Lock()
		d.Left = left
		d.Unlock()
		_, failed := l.Retain(later, 0, 29)
		_ = l.Close()
		d = d.Cut()
		l = reopened(t, d)
		first, err := l.Retain(later, 0, 29)
		if first != 20 || err != nil {
			t.Fatalf("cut after %d operations (%v): the log begins at %d, %v", left, failed, first, err)
		}
		if records, err := all(l, 20); len(records) != 30 || err != nil {
			t.Errorf("cut after %d operations: %d records, %v", left, len(records), err)
		}
	}
}

// Another program takes what a deletion frees. The log begins with what is left, and says so once it can.
func TestRetainWhereNoRoomIsLeft(t *testing.T) {
	d := disktest.New(1)
	l, err := OpenIn(&greedy{Disk: d}, "", Options{SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 5 {
		add(t, l, numbered(10*i, 10, 30)...)
	}
	taken := l.folder.(*greedy)
	d.Lock()
	d.Room = 0
	d.Unlock()
	later := time.Now().Add(time.Hour)
	taken.takes = 10
	first, err := l.Retain(later, 0, 29)
	if first != 20 || !full(err) {
		t.Errorf("the log begins at %d, %v", first, err)
	}
	if records, err := all(l, first); len(records) != 30 || err != nil {
		t.Errorf("%d records, %v", len(records), err)
	}
	d.Lock()
	d.Room = -1
	d.Unlock()
	taken.takes = 0
	if first, err := l.Retain(time.Time{}, 0, 29); first != 20 || err != nil {
		t.Errorf("with room again: the log begins at %d, %v", first, err)
	}
	again, err := OpenIn(d, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if b, err := again.Bounds(t.Context()); b.First != 20 || err != nil {
		t.Errorf("opened again: %+v, %v", b, err)
	}
}

// A greedy disk gives what is freed to somebody else, some times.
type greedy struct {
	*disktest.Disk
	takes int
}

func (g *greedy) Remove(name string) error {
	err := g.Disk.Remove(name)
	if g.takes--; g.takes >= 0 && err == nil {
		g.Lock()
		g.Room = 0
		g.Unlock()
	}
	return err
}

// After an fsync that failed, only what was acknowledged is in the log, and appends go on over
// another descriptor.
func TestFailedSync(t *testing.T) {
	d := disktest.New(2)
	l, err := OpenIn(d, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	add(t, l, numbered(0, 5, 100)...)
	d.Lock()
	d.Syncs = 0
	d.Unlock()
	if err := l.Append(t.Context(), numbered(5, 5, 2000)...); !errors.Is(err, syscall.EIO) {
		t.Errorf("an fsync failed: %v", err)
	}
	d.Lock()
	there := len(d.Files[segmentName(0)].Now)
	d.Unlock()
	if size := l.sizeOf(0); int64(there) != size {
		t.Errorf("the file has %d bytes, and %d were acknowledged", there, size)
	}
	add(t, l, numbered(10, 5, 100)...)
	for _, l := range []*Log{l, reopened(t, d.Cut())} {
		records, err := all(l, 0)
		if err != nil || len(records) != 10 || string(records[5].Value) != string(numbered(10, 1, 100)[0].Value) {
			t.Errorf("%d records, %v", len(records), err)
		}
	}
}

func reopened(t *testing.T, d *disktest.Disk) *Log {
	t.Helper()
	l, err := OpenIn(d, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
