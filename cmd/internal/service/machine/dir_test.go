package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/lockfile"
)

// fill appends n records of some bytes to a log, and returns it.
func fill(t *testing.T, m Machine, name string, n, bytes int, at time.Time) stream.Topic {
	t.Helper()
	if err := m.Ensure(t.Context(), name, 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	l, err := m.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := l.Append(t.Context(), stream.Record{Value: make([]byte, bytes), Time: at}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func bounds(t *testing.T, l stream.Log) stream.Bounds {
	t.Helper()
	b, err := l.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Old records are deleted, but of an events log none that the model has not learnt.
func TestRetention(t *testing.T) {
	d := opened(t, t.TempDir(), Config{})
	now := time.Now()
	events, letters := stream.EventsTopic("m"), stream.DeadLetterTopic
	for _, name := range []string{events, letters} {
		l := fill(t, d, name, 3, 100, now)
		d.retain(t.Context(), now.Add(30*time.Minute)) // a segment ends, because its first record is old
		fill(t, d, name, 2, 100, now.Add(30*time.Minute))
		if b := bounds(t, l); b.First != 0 || b.End != 5 {
			t.Fatalf("%s: %+v", name, b)
		}
	}
	later := now.Add(2 * time.Hour)
	d.retain(t.Context(), later)
	of := func(name string) stream.Bounds {
		l, err := d.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		return bounds(t, l)
	}
	if b := of(events); b.First != 0 {
		t.Errorf("nothing is learnt, and %+v is left", b)
	}
	if b := of(letters); b.First != 5 || b.End != 5 {
		t.Errorf("of the dead letters %+v is left", b)
	}
	store, err := d.Store("m")
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	c := &state.Checkpoint{Schema: 1, Numerics: "1", Config: []byte("{}"), Epoch: lease.Epoch, Writer: "w", Position: state.Position{Next: 4}, Model: []byte("m"), Saved: now}
	if _, err := store.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	d.retain(t.Context(), time.Time{})
	if b := of(events); b.First != 0 {
		t.Errorf("nobody knows the time, and %+v is left", b)
	}
	d.retain(t.Context(), later)
	if b := of(events); b.First != 3 || b.End != 5 { // whole segments alone
		t.Errorf("4 are learnt, and %+v is left", b)
	}
}

// A bound of bytes deletes what is learnt, however new it is.
func TestRetentionByBytes(t *testing.T) {
	d := opened(t, t.TempDir(), Config{MaxBytes: 10 << 20})
	l := fill(t, d, stream.ReceiptTopic, 40, 1<<19, time.Now())
	d.retain(t.Context(), time.Now())
	if b := bounds(t, l); b.First == 0 || b.End != 40 {
		t.Errorf("%+v", b)
	}
}

// A log keeps its retention over a restart. Without a word it is 90 days.
func TestRetentionIsKept(t *testing.T) {
	path := t.TempDir()
	d := opened(t, path, Config{})
	for name, keep := range map[string]time.Duration{"a": time.Hour, "b": 0, "c": -1} {
		if err := d.Ensure(t.Context(), name, 0, keep); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	c := served(t, opened(t, path, Config{}))
	for name, want := range map[string]time.Duration{"a": time.Hour, "b": DefaultRetention, "c": -1} {
		if got, bounded, err := c.Retention(t.Context(), name); err != nil || bounded || got != want && (want > 0 || got >= 0) {
			t.Errorf("%s: %v, %t, %v; want %v", name, got, bounded, err, want)
		}
	}
}

// A retention that cannot be written, as on a full disk, holds all the same.
func TestRetentionWithoutItsFile(t *testing.T) {
	d := opened(t, t.TempDir(), Config{})
	if err := os.MkdirAll(filepath.Join(d.folder("a"), retentionName, "no file takes its place"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Ensure(t.Context(), "a", 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if keep, _, err := d.Retention(t.Context(), "a"); keep != time.Hour || err != nil {
		t.Errorf("%v, %v", keep, err)
	}
	if names, err := filepath.Glob(filepath.Join(d.folder("a"), ".retention-*")); len(names) > 0 || err != nil {
		t.Errorf("%v, %v are left", names, err)
	}
}

// One program has a directory. Another one finds it over the socket while that runs.
func TestFind(t *testing.T) {
	path := t.TempDir()
	if _, err := Find(t.Context(), path, nil); !errors.Is(err, ErrNoMachine) {
		t.Errorf("an empty directory: %v", err)
	}
	d := opened(t, path, Config{})
	fill(t, d, "log", 1, 10, time.Now())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if m, err := Find(ctx, path, nil); err == nil {
		t.Errorf("it is open and not served, and there is %T", m)
	}
	if _, err := Open(t.Context(), path, Config{}); !errors.Is(err, lockfile.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	served(t, d)
	m, err := Find(t.Context(), path, nil)
	if _, ok := m.(*Client); err != nil || !ok {
		t.Fatalf("%T, %v", m, err)
	}
	if n, err := m.Partitions(t.Context(), "log"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// After the end of the program that served it, a directory is found on its files.
func TestFindStopped(t *testing.T) {
	path := t.TempDir()
	d := opened(t, path, Config{})
	fill(t, d, "log", 1, 10, time.Now())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx) }()
	for {
		if c, err := Dial(t.Context(), path); err == nil {
			c.Close()
			break
		}
	}
	stop()
	if err := errors.Join(<-ended, d.Close()); err != nil {
		t.Fatal(err)
	}
	m, err := Find(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, ok := m.(*Dir); !ok {
		t.Errorf("%T", m)
	}
	if b := bounds(t, fill(t, m, "log", 1, 10, time.Now())); b.End != 2 {
		t.Errorf("%+v", b)
	}
}

// A command that finds a stopped directory, and saves there, drops none of the versions that the
// program of the directory has kept, however many they are.
func TestFindDropsNoVersion(t *testing.T) {
	path := t.TempDir()
	const kept = 5
	now, next := time.Now(), int64(0)
	save := func(m Machine) state.Store {
		t.Helper()
		store, err := m.Store("m")
		if err != nil {
			t.Fatal(err)
		}
		lease, err := store.Seize(t.Context(), "w")
		if err != nil {
			t.Fatal(err)
		}
		next++
		c := &state.Checkpoint{Schema: 1, Numerics: "n", Config: []byte("{}"), Epoch: lease.Epoch, Writer: lease.Writer,
			Position: state.Position{Next: next}, Model: fmt.Append(nil, "model ", next), Saved: now}
		if _, err := store.Save(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return store
	}
	d := opened(t, path, Config{Keep: kept})
	fill(t, d, "log", 1, 10, now)
	for range kept {
		save(d)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := Find(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if list, err := save(m).Versions(t.Context()); err != nil || len(list) != kept+1 {
		t.Errorf("%d versions are kept, want %d; %v", len(list), kept+1, err)
	}
}

// A directory whose path is longer than a socket's name may be is served all the same.
func TestLongPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	c := served(t, opened(t, path, Config{}))
	fill(t, c, "log", 1, 10, time.Now())
}

// A socket that cannot be made, as on a full disk, is made once it can.
func TestTheSocketIsTriedAgain(t *testing.T) {
	path := t.TempDir()
	inTheWay := filepath.Join(path, socketName)
	if err := os.MkdirAll(filepath.Join(inTheWay, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int32
	log := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		if strings.Contains(string(b), "cannot reach this program") {
			told.Add(1)
			return len(b), os.RemoveAll(inTheWay)
		}
		return len(b), nil
	}), nil))
	served(t, opened(t, path, Config{Log: log}))
	if told.Load() != 1 {
		t.Errorf("told %d times", told.Load())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// The socket is for this user alone.
func TestSocketIsPrivate(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "d"), Config{})
	served(t, d)
	for name, want := range map[string]os.FileMode{"": 0o700 | os.ModeDir, socketName: 0o600 | os.ModeSocket} {
		if info, err := os.Stat(filepath.Join(d.Path(), name)); err != nil || info.Mode() != want {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
}

// A record that is damaged ends reading with an error that names it, over the socket too. Left out, it is a hole.
func TestSkipOverTheSocket(t *testing.T) {
	path := t.TempDir()
	d := opened(t, path, Config{})
	fill(t, d, "log", 3, 1000, time.Now())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, "logs", "log", "00000000000000000000.log")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := served(t, opened(t, path, Config{}))
	l, err := c.Open("log")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Read(t.Context(), 1, stream.Limit{}, 0); !errors.Is(err, stream.ErrDamaged) {
		t.Fatal(err)
	}
	for _, whole := range [][2]int64{{0, 1}, {0, 2}, {1, 3}, {2, 3}} {
		if err := c.Skip(t.Context(), "log", whole[0], whole[1]); err == nil || !strings.Contains(err.Error(), "can be read") {
			t.Errorf("offsets from %d to %d are left out: %v", whole[0], whole[1]-1, err)
		}
	}
	for _, wrong := range [][2]int64{{1, 1}, {3, 4}, {-1, 0}} {
		if err := c.Skip(t.Context(), "log", wrong[0], wrong[1]); err == nil {
			t.Errorf("offsets from %d up to %d are left out", wrong[0], wrong[1])
		}
	}
	if err := c.Skip(t.Context(), "log", 1, 2); err != nil {
		t.Fatal(err)
	}
	if records, _, err := l.Read(t.Context(), 1, stream.Limit{}, 0); err != nil || len(records) != 1 || records[0].Offset != 2 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// What ends with the program that served is away, and nothing else.
func TestTheOtherProgramEnds(t *testing.T) {
	d := opened(t, t.TempDir(), Config{})
	fill(t, d, "log", 1, 10, time.Now())
	c, err := NewClient(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Open("log")
	if err != nil {
		t.Fatal(err)
	}
	store, err := c.Store("m")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), stream.Record{}); !errors.Is(err, stream.ErrAway) {
		t.Errorf("append: %v", err)
	}
	if _, err := store.Heading(t.Context(), state.Head); !errors.Is(err, state.ErrTransient) {
		t.Errorf("heading: %v", err)
	}
	served(t, d)
	if err := l.Append(t.Context(), stream.Record{}); err != nil {
		t.Errorf("the same client, once it is served: %v", err)
	}
}

// What is asked while the other program ends is answered or away.
func TestAStopWithCallsUnderWay(t *testing.T) {
	d, err := Open(t.Context(), t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := fill(t, d, "log", 1, 10, time.Now())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx) }()
	c, err := NewClient(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	remote, err := c.Open("log")
	if err != nil {
		t.Fatal(err)
	}
	for c.Ping(t.Context()) != nil {
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				if err := remote.Append(t.Context(), stream.Record{Value: []byte("x")}); err != nil {
					if !errors.Is(err, stream.ErrAway) {
						t.Errorf("append: %v", err)
					}
					return
				}
			}
		})
		callers.Go(func() {
			for {
				if _, _, err := remote.Read(t.Context(), 1<<20, stream.Limit{}, 0); errors.Is(err, stream.ErrAway) {
					return
				}
				b, err := remote.Bounds(t.Context())
				if err == nil {
					_, _, err = remote.Read(t.Context(), b.End, stream.Limit{}, time.Minute)
				}
				if err != nil {
					if !errors.Is(err, stream.ErrAway) {
						t.Errorf("read: %v", err)
					}
					return
				}
			}
		})
	}
	for bounds(t, l).End < 20 {
	}
	stop()
	if err := errors.Join(<-ended, d.Close()); err != nil {
		t.Error(err)
	}
	callers.Wait()
}

// A temporary directory of a program that was killed is deleted by the next one, and none that is in use.
func TestTemporary(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, remove, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	opened(t, used, Config{})
	killed, _, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, path := range []string{used, killed} {
		if err := os.Chtimes(filepath.Join(path, temporaryMark), old, old); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(os.TempDir(), temporaryName+"backup") // somebody's own
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	third, removeThird, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{used: true, killed: false, third: true, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t", path, err == nil)
		}
	}
	remove()
	removeThird()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
