package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/process/clock"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// readingOf returns a reading of a log from a position.
func readingOf(t *testing.T, log stream.Log, next int64) *reading {
	t.Helper()
	f := New(Config{Log: log})
	return &reading{Follower: f, next: next, pause: newPause(context.Background())}
}

// filled returns a log of n records, and its records.
func filled(t *testing.T, n int) (*logtest.Memory, []stream.Record) {
	t.Helper()
	log := new(logtest.Memory)
	for i := range n {
		r := stream.Record{Key: []byte("k"), Value: fmt.Append(nil, i), Headers: []stream.Header{{Key: "h", Value: []byte("1")}}}
		if err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	records, _, err := log.Read(t.Context(), 0, stream.Limit{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return log, records
}

// verify tells another log from the one that was absorbed, and from one that lost old records to
// retention.
func TestVerify(t *testing.T) {
	const end = 20
	_, records := filled(t, end)
	key, value, headers := records[9], records[9], records[9]
	key.Key, value.Value, headers.Headers = []byte("other"), []byte("other"), []stream.Header{{Key: "h", Value: []byte("2")}}
	var none stream.Record
	for _, c := range []struct {
		name   string
		last   stream.Record // none: nothing was absorbed
		next   int64
		seen   stream.Bounds // before
		change func(*logtest.Memory)
		want   error
		says   string
	}{
		{"nothing absorbed", none, 0, stream.Bounds{}, nil, nil, ""},
		{"the same", records[9], 10, stream.Bounds{End: end}, nil, nil, ""},
		{"at the end", records[19], end, stream.Bounds{End: end}, nil, nil, ""},
		{"another key", key, 10, stream.Bounds{}, nil, ErrReplaced, "offset 9"},
		{"another value", value, 10, stream.Bounds{}, nil, ErrReplaced, "offset 9"},
		{"another header", headers, 10, stream.Bounds{}, nil, ErrReplaced, "offset 9"},
		{"the position is beyond the end", records[9], end + 1, stream.Bounds{}, nil, ErrBehind, "ends at 20"},
		{"the end moved back", records[9], 10, stream.Bounds{End: end + 5}, nil, ErrReplaced, "from 25 to 20"},
		{"the beginning moved back", records[9], 10, stream.Bounds{First: 2}, nil, ErrReplaced, "from 2 to 0"},
		{"retention took what was absorbed", value, 10, stream.Bounds{}, func(log *logtest.Memory) { log.Retain(12) }, nil, ""},
		{"compaction took what was absorbed", value, 10, stream.Bounds{}, func(log *logtest.Memory) { log.Compact(9) }, nil, ""},
		{"another ID", records[9], 10, stream.Bounds{}, func(log *logtest.Memory) { log.ID = "b" }, ErrReplaced, "another ID"},
		{"the same ID, so nothing is compared", value, 10, stream.Bounds{ID: "b"}, func(log *logtest.Memory) { log.ID = "b" }, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, _ := filled(t, end)
				if c.change != nil {
					c.change(log)
				}
				r := readingOf(t, log, c.next)
				r.known, r.last, r.seen = c.last.Key != nil, c.last, c.seen
				err := r.verify(t.Context())
				if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Fatalf("got %v, want %v with %q", err, c.want, c.says)
				}
				if err == nil && c.seen.ID == "" && r.confirmed != c.last.Offset {
					t.Errorf("confirmed is at offset %d, want %d", r.confirmed, c.last.Offset)
				}
			})
		})
	}
}

// A broker that recovers its log shows an early end for a moment.
func TestVerifyDuringRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, records := filled(t, 20)
		log.Cut(15)
		r := readingOf(t, log, 20)
		r.taken(records)
		r.told(20)
		time.AfterFunc(time.Second, func() {
			if err := log.Append(context.Background(), records[15:]...); err != nil {
				t.Error(err)
			}
		})
		if err := r.verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A handler that asks before it saves gets an answer in bounded time, also if nobody answers.
func TestConfirmWithoutALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, records := filled(t, 20)
		log.Fail(stream.ErrAway)
		r := readingOf(t, log, 6)
		if err := r.confirm(t.Context()); err != nil {
			t.Errorf("nothing was handed over: got %v", err)
		}
		r.taken(records[4:6])
		began := time.Now()
		if err := r.confirm(t.Context()); !errors.Is(err, ErrUnconfirmed) || r.doubts.Load() != 1 || r.confirmed != -1 || time.Since(began) > time.Second {
			t.Errorf("got %v after %v, %d doubts, confirmed up to %d", err, time.Since(began), r.doubts.Load(), r.confirmed)
		}
		log.Fail(nil)
		if err := r.confirm(t.Context()); err != nil || r.confirmed != 5 {
			t.Errorf("got %v, confirmed up to %d, want 5", err, r.confirmed)
		}
	})
}

// Nor does it wait for the reader, which may be asking the log.
func TestConfirmWhileTheReaderAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, records := filled(t, 20)
		r := readingOf(t, log, 6)
		r.taken(records[4:6])
		r.confirming.Lock()
		defer r.confirming.Unlock()
		if err := r.confirm(t.Context()); !errors.Is(err, ErrUnconfirmed) || r.doubts.Load() != 0 {
			t.Errorf("got %v, %d doubts", err, r.doubts.Load())
		}
	})
}

// A slowLog answers each read after a while.
type slowLog struct {
	stream.Log
	pause time.Duration
}

func (s slowLog) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) ([]stream.Record, int64, error) {
	clock.Sleep(ctx, s.pause)
	return s.Log.Read(ctx, from, most, wait)
}

// A log that answers, but needs longer than confirmTimeout for a read, as for a large batch over a
// slow connection, does not keep a handler from saving for ever.
func TestConfirmOverASlowConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, records := filled(t, 20)
		r := readingOf(t, slowLog{log, 5 * confirmTimeout}, 2)
		r.taken(records[:2])
		if err := r.confirm(t.Context()); err != nil || r.confirmed != 1 {
			t.Errorf("got %v, confirmed up to offset %d, want 1", err, r.confirmed)
		}
	})
}

// The end that comes with a read may be older than what was asked since. A read that tells an
// earlier end than another read is a doubt.
func TestTold(t *testing.T) {
	var l absorbedLog
	l.seen.End = 30
	for i, c := range []struct{ told, doubts, end int64 }{{20, 0, 30}, {25, 0, 30}, {40, 0, 40}, {40, 0, 40}, {39, 1, 40}} {
		if l.told(c.told); l.doubts.Load() != c.doubts || l.seen.End != c.end {
			t.Errorf("%d, told %d: %d doubts, the end is %d; want %+v", i, c.told, l.doubts.Load(), l.seen.End, c)
		}
	}
}
