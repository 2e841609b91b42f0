package filelog

import (
	"errors"
	"slices"
	"testing"

	"hamlet/stream"
)

// What Skip and Retain have returned for outlasts a loss of power.
func TestSkipOutlastsThePower(t *testing.T) {
	for seed := range uint64(40) {
		d := newDisk(seed)
		l, err := open(d, "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, numbered(0, 10, 20)...)
		if err := l.Skip(3, 6); err != nil {
			t.Fatal(err)
		}
		again := reopened(t, d.cut())
		_ = l.Close()
		records, err := all(again, 0)
		if err != nil {
			t.Fatal(err)
		}
		var offsets []int64
		for i := range records {
			offsets = append(offsets, records[i].Offset)
		}
		if want := []int64{0, 1, 2, 6, 7, 8, 9}; !slices.Equal(offsets, want) {
			t.Fatalf("seed %d: after the power came back the log has %v, and not %v", seed, offsets, want)
		}
		if a, b := l.id, again.id; a != b {
			t.Fatalf("seed %d: it is another log", seed)
		}
	}
}

// Records that were refused are not in the log, whatever is appended behind them and wherever it ends.
func TestWhatIsRefusedIsNotInTheLog(t *testing.T) {
	for room := range 500 {
		d := newDisk(uint64(room))
		l, err := open(d, "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, numbered(0, 1, 100)...)
		d.mu.Lock()
		d.room = room
		d.mu.Unlock()
		err = l.Append(t.Context(), numbered(1, 3, 100)...)
		d.mu.Lock()
		d.room = -1
		d.mu.Unlock()
		n := 1
		if err == nil {
			n = 4
		} else if !errors.Is(err, stream.ErrFull) {
			t.Fatal(err)
		}
		add(t, l, numbered(n, 1, 100)...)
		again := reopened(t, d.cut())
		_ = l.Close()
		if records, err := all(again, 0); err != nil || len(records) != n+1 {
			t.Fatalf("room for %d bytes: %d records and not %d, %v", room, len(records), n+1, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
