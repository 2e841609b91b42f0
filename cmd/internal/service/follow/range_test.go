package follow_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// A range is read in order, each record once, and ends with the caller's error.
func TestRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 700
		log := filled(t, n)
		log.Compact(40, 41, n-1)
		read := func(from, to int64, each func(*stream.Record) error) (got []int64, err error) {
			err = follow.Range(t.Context(), follow.Config{Log: log}, from, to, func(r *stream.Record) error {
				got = append(got, r.Offset)
				return each(r)
			})
			return got, err
		}
		for _, c := range []struct{ from, to, first, last, n int64 }{
			{0, n, 0, n - 2, n - 3}, {250, 251, 250, 250, 1}, {39, 43, 39, 42, 2}, {40, 42, 0, 0, 0}, {5, 5, 0, 0, 0}, {n - 1, n, 0, 0, 0},
		} {
			got, err := read(c.from, c.to, func(*stream.Record) error { return nil })
			if err != nil || int64(len(got)) != c.n || !slices.IsSorted(got) || len(got) > 0 && (got[0] != c.first || got[len(got)-1] != c.last) {
				t.Errorf("%+v: %d records, %v", c, len(got), err)
			}
		}
		enough := errors.New("enough")
		if got, err := read(100, n, func(r *stream.Record) error {
			if r.Offset == 300 {
				return enough
			}
			return nil
		}); !errors.Is(err, enough) || len(got) != 201 {
			t.Errorf("%d records, %v", len(got), err)
		}
		log.Fail(stream.ErrAway)
		time.AfterFunc(3*time.Second, func() { log.Fail(nil) })
		if got, err := read(100, 110, func(*stream.Record) error { return nil }); err != nil || len(got) != 10 {
			t.Errorf("after a failure: %d records, %v", len(got), err)
		}
	})
}

// Records that retention took are missing for good.
func TestRangeOfWhatIsGone(t *testing.T) {
	log := filled(t, 110)
	log.Retain(100)
	nothing := func(*stream.Record) error { return nil }
	err := follow.Range(t.Context(), follow.Config{Log: log, Name: "topic t"}, 20, 110, nothing)
	if !errors.Is(err, stream.ErrGone) || !strings.HasPrefix(err.Error(), "topic t: read offsets 20 to 110") {
		t.Errorf("offsets from 20 of a log that begins at 100: %v", err)
	}
	if err := follow.Range(t.Context(), follow.Config{Log: log}, 100, 110, nothing); err != nil {
		t.Error(err)
	}
}

// A log whose end has moved back is waited for. It is never taken for one that was read whole.
func TestRangeOfALogThatEndsEarly(t *testing.T) {
	const n, cut = 100, 60
	for _, c := range []struct {
		from int64
		back time.Duration // after it the log has its end again; 0: never
		want error
	}{
		{cut, 5 * time.Second, nil}, {cut, 0, follow.ErrOutage},
		{cut + 1, time.Second, nil}, {cut + 1, 0, stream.ErrBeyond},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := filled(t, n)
			log.Cut(cut)
			if c.back > 0 {
				time.AfterFunc(c.back, func() { _ = log.Append(t.Context(), numbered(cut, n-cut)...) })
			}
			cfg, next := follow.Config{Log: log, MaxOutage: 20 * time.Second}, c.from
			err := follow.Range(t.Context(), cfg, c.from, n, func(r *stream.Record) error {
				if r.Offset != next {
					t.Errorf("%+v: offset %d, want %d", c, r.Offset, next)
				}
				next++
				return nil
			})
			if !errors.Is(err, c.want) || err == nil && next != n {
				t.Errorf("%+v: read up to %d, %v", c, next, err)
			}
		})
	}
}

func hasHeader(key string) func(*stream.Record) bool {
	return func(r *stream.Record) bool { _, ok := stream.FindHeader(r.Headers, key); return ok }
}

// The newest record that is wanted is found, however far back, among as many as are allowed.
func TestLast(t *testing.T) {
	const n = 3000
	records := numbered(0, n)
	for _, i := range []int{5, 2000, 2500, n - 2} {
		records[i].Headers = []stream.Header{{Key: "other", Value: []byte("x")}, {Key: "mark", Value: []byte("y")}}
	}
	records[n-1].Headers = []stream.Header{{Key: "other"}}
	log := new(logtest.Memory)
	if err := log.Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	last := func(most int64, wanted func(*stream.Record) bool) int64 {
		t.Helper()
		r, ok, err := follow.Last(t.Context(), follow.Config{Log: log}, most, wanted)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return -1
		}
		return r.Offset
	}
	if got := last(math.MaxInt64, nil); got != n-1 {
		t.Errorf("the last record is at %d", got)
	}
	for most, want := range map[int64]int64{1: -1, 2: n - 2, n: n - 2, math.MaxInt64: n - 2, 0: -1, -1: -1} {
		if got := last(most, hasHeader("mark")); got != want {
			t.Errorf("among the last %d: %d, want %d", most, got, want)
		}
	}
	before := log.Reads()
	if got := last(math.MaxInt64, func(r *stream.Record) bool { return r.Offset <= 2400 }); got != 2400 {
		t.Errorf("several windows before the end: %d", got)
	}
	if reads := log.Reads() - before; reads > 5 {
		t.Errorf("%d reads for 600 records, want windows of 64, 256 and 1024", reads)
	}
	if got := last(math.MaxInt64, hasHeader("no such")); got != -1 {
		t.Errorf("a header that is nowhere: %d", got)
	}
	log.Retain(2990)
	if got := last(math.MaxInt64, func(r *stream.Record) bool { return r.Offset <= 2400 }); got != -1 {
		t.Errorf("what is gone was found at %d", got)
	}
	if got := func() int64 { log.Replace(""); return last(10, nil) }(); got != -1 {
		t.Errorf("in an empty log: %d", got)
	}
}

// Retention may take the records that are looked through.
func TestLastWhileRetentionDeletes(t *testing.T) {
	log := filled(t, 3000)
	r, ok, err := follow.Last(t.Context(), follow.Config{Log: log}, math.MaxInt64, func(r *stream.Record) bool {
		if r.Offset == 2999 {
			log.Retain(2500)
		}
		return r.Offset <= 2600
	})
	if err != nil || !ok || r.Offset != 2600 {
		t.Errorf("%d, %v, %v; want 2600", r.Offset, ok, err)
	}
}

// The offset of a time is that of the first record written then or later.
func TestSince(t *testing.T) {
	log := new(logtest.Memory)
	first := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for i := range 5 {
		if err := log.Append(t.Context(), stream.Record{Time: first.Add(time.Duration(i) * time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	for after, want := range map[time.Duration]int64{-time.Hour: 0, 0: 0, time.Second: 1, 3 * time.Minute: 3, time.Hour: 5} {
		if got, err := follow.Since(t.Context(), follow.Config{Log: log}, first.Add(after)); err != nil || got != want {
			t.Errorf("%v after the first: %d (%v), want %d", after, got, err, want)
		}
	}
}

// Last passes over damaged records, of which it is not said what they were.
func TestLastPassesOverDamage(t *testing.T) {
	log := &rotten{filled(t, 500), map[int64]bool{70: true, 71: true, 430: true, 499: true}}
	for want, wanted := range map[int64]func(*stream.Record) bool{
		498: nil,
		69:  func(r *stream.Record) bool { return r.Offset <= 71 },
		429: func(r *stream.Record) bool { return r.Offset <= 430 },
	} {
		r, ok, err := follow.Last(t.Context(), follow.Config{Log: log, Name: "topic t"}, 1000, wanted)
		if err != nil || !ok || r.Offset != want {
			t.Errorf("the last is offset %d, %t, %v, want %d", r.Offset, ok, err, want)
		}
	}
}

// A rotten log has records that cannot be read.
type rotten struct {
	*logtest.Memory
	damaged map[int64]bool
}

func (l *rotten) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) ([]stream.Record, int64, error) {
	records, end, err := l.Memory.Read(ctx, from, most, wait)
	i := slices.IndexFunc(records, func(r stream.Record) bool { return l.damaged[r.Offset] })
	if i == 0 {
		return nil, end, stream.ErrDamaged
	}
	if i > 0 {
		records = records[:i]
	}
	return records, end, err
}
