package filelog

import (
	"errors"
	"testing"

	"hamlet/stream"
	"hamlet/stream/filelog/disktest"
)

// A record may hold any bytes: also those of a frame. When the frame around it is damaged, what is in it
// is no record of the log.
func TestFramesInRecords(t *testing.T) {
	from := disktest.New(1)
	l, err := OpenIn(from, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	forged := appendRecord(nil, &stream.Record{Value: []byte("forged")})
	seedOf([16]byte{1}).seal(forged, 1, 0) // by who does not know this log's identity
	add(t, l, stream.Record{Value: forged}, stream.Record{Value: []byte("real")})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = flipped(t, from, segmentName(0), (headerSize+1)*8, Options{})
	records, _, err := l.Read(t.Context(), 1, stream.Limit{}, 0)
	if err != nil || len(records) != 1 || string(records[0].Value) != "real" {
		t.Errorf("behind the damage: %d records, %v", len(records), err)
	}
	if _, _, err := l.Read(t.Context(), 0, stream.Limit{}, 0); !errors.Is(err, stream.ErrDamaged) {
		t.Errorf("the damage: %v", err)
	}
	if b, err := l.Bounds(t.Context()); err != nil || b.End != 2 {
		t.Errorf("%+v, %v", b, err)
	}
}
