package filelog

import (
	"testing"

	"hamlet/stream/filelog/disktest"
	"time"
)

// awaitMark waits until a mark stands behind the last record.
func (l *Log) awaitMark(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		l.mu.Lock()
		last := l.segments[len(l.segments)-1]
		l.mu.Unlock()
		f, err := l.folder.Open(segmentName(last.base))
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
		from := disktest.New(1)
		l, err := OpenIn(from, "", Options{markAfter: time.Microsecond})
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
	d := disktest.New(1)
	l, err := OpenIn(d, "", Options{markAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, numbered(0, 5, 50)...)
	size := l.sizeOf(0)
	killed := d.Cut()
	again, err := OpenIn(killed, "", Options{markAfter: time.Microsecond})
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
