package filelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

func (r reached) Since(ctx context.Context, t time.Time) (int64, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return (*r.log).Since(ctx, t)
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
