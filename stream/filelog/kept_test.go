package filelog

import (
	"errors"
	"slices"
	"testing"

	"hamlet/stream"
	"hamlet/stream/filelog/disktest"
)

// What Skip and Retain have returned for outlasts a loss of power.
func TestSkipOutlastsThePower(t *testing.T) {
	for seed := range uint64(40) {
		d := disktest.New(seed)
		l, err := OpenIn(d, "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, numbered(0, 10, 20)...)
		if err := l.Skip(3, 6); err != nil {
			t.Fatal(err)
		}
		again := reopened(t, d.Cut())
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
		d := disktest.New(uint64(room))
		l, err := OpenIn(d, "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, numbered(0, 1, 100)...)
		d.Lock()
		d.Room = room
		d.Unlock()
		err = l.Append(t.Context(), numbered(1, 3, 100)...)
		d.Lock()
		d.Room = -1
		d.Unlock()
		n := 1
		if err == nil {
			n = 4
		} else if !errors.Is(err, stream.ErrFull) {
			t.Fatal(err)
		}
		add(t, l, numbered(n, 1, 100)...)
		again := reopened(t, d.Cut())
		_ = l.Close()
		if records, err := all(again, 0); err != nil || len(records) != n+1 {
			t.Fatalf("room for %d bytes: %d records and not %d, %v", room, len(records), n+1, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What was moved aside as the end of a write that was cut off does not come back behind the next write.
func TestWhatIsTornDoesNotComeBack(t *testing.T) {
	d := disktest.New(1)
	l, err := OpenIn(d, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, numbered(0, 1, 100)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	torn := []byte{}
	for i, r := range numbered(1, 3, 100) {
		at := len(torn)
		torn = appendRecord(torn, &r)
		l.seed.seal(torn[at:], int64(1+i), 1)
	}
	torn[frameSize] ^= 1 // the first of three has not come to the disk
	f, err := d.Open(segmentName(0))
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err == nil {
		_, err = f.WriteAt(torn, size)
	}
	if err := errors.Join(err, f.Sync()); err != nil {
		t.Fatal(err)
	}
	l = reopened(t, d)
	add(t, l, numbered(1, 1, 100)...)
	again := reopened(t, d.Cut())
	if records, err := all(again, 0); err != nil || len(records) != 2 {
		t.Errorf("%d records, and not 2; %v", len(records), err)
	}
}

// A log says which one it is: the same at each opening, and another one in each folder.
func TestEachLogHasAnID(t *testing.T) {
	ids := map[string]bool{}
	for range 3 {
		d := disktest.New(1)
		for range 2 {
			l := reopened(t, d)
			b, err := l.Bounds(t.Context())
			if err == nil {
				err = l.Close()
			}
			if err != nil || b.ID == "" {
				t.Fatalf("%+v, %v", b, err)
			}
			ids[b.ID] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("three logs have %d IDs", len(ids))
	}
}
