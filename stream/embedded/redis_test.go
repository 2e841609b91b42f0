package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

func startTestRedis(t *testing.T, opts RedisOptions) *Redis {
	t.Helper()
	r, err := StartRedis(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func redisOptions() *redis.Options {
	return &redis.Options{
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func dialRedis(t *testing.T, r *Redis) *redis.Client {
	t.Helper()
	opts := redisOptions()
	opts.Addr = r.Addr()
	client := redis.NewClient(opts)
	t.Cleanup(func() { client.Close() })
	return client
}

// mustSay fails the test if an error lacks one of the parts.
func mustSay(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// ok fails the test if one of the commands failed.
func ok(t *testing.T, commands ...redis.Cmder) {
	t.Helper()
	for _, command := range commands {
		if err := command.Err(); err != nil {
			t.Fatalf("%v: %v", command, err)
		}
	}
}

// Every type is there after a restart, with the rest of its time to live.
func TestRedisKeepsData(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	blob := string(bytes.Repeat([]byte{0, 1, 255, '\r', '\n'}, 1<<18))

	r := startTestRedis(t, RedisOptions{Dir: dir})
	c := dialRedis(t, r)
	ok(t,
		c.Set(ctx, "string", blob, 0), c.Set(ctx, "empty", "", 0),
		c.Set(ctx, "soon", "x", time.Hour), c.Set(ctx, "gone", "x", time.Millisecond),
		c.HSet(ctx, "hash", "a", "1", "b", ""), c.RPush(ctx, "list", "z", "a", "z"),
		c.SAdd(ctx, "set", "m", "n"),
		c.ZAdd(ctx, "zset", redis.Z{Member: "low", Score: math.Inf(-1)}, redis.Z{Member: "third", Score: 1. / 3}),
	)
	ok(t, c.Do(ctx, "SELECT", 0))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	c = dialRedis(t, startTestRedis(t, RedisOptions{Dir: dir}))
	if got := c.Get(ctx, "string").Val(); got != blob {
		t.Errorf("string came back with %d bytes, want %d", len(got), len(blob))
	}
	if got, err := c.Get(ctx, "empty").Result(); err != nil || got != "" {
		t.Errorf("the empty string came back as %q, %v", got, err)
	}
	if got := c.TTL(ctx, "soon").Val(); got < 59*time.Minute || got > time.Hour {
		t.Errorf("time to live came back as %v, want an hour", got)
	}
	if _, err := c.Get(ctx, "gone").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("a key that had expired came back: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": ""}, c.HGetAll(ctx, "hash").Val()); diff != "" {
		t.Errorf("hash (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"z", "a", "z"}, c.LRange(ctx, "list", 0, -1).Val()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m", "n"}, c.SMembers(ctx, "set").Val()); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	want := []redis.Z{{Member: "low", Score: math.Inf(-1)}, {Member: "third", Score: 1. / 3}}
	if diff := cmp.Diff(want, c.ZRangeWithScores(ctx, "zset", 0, -1).Val()); diff != "" {
		t.Errorf("sorted set (-want +got):\n%s", diff)
	}
}

// Keys expire by the clock, unlike in a bare miniredis.
func TestRedisClock(t *testing.T) {
	c := dialRedis(t, startTestRedis(t, RedisOptions{}))
	ok(t, c.Set(t.Context(), "k", "v", 20*time.Millisecond))
	for range time.Tick(5 * time.Millisecond) {
		_, err := c.Get(t.Context(), "k").Result()
		if errors.Is(err, redis.Nil) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A snapshot comes within a second of a change, and only then.
func TestRedisSnapshotsWhenChanged(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, err := newRedis(RedisOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		opts := redisOptions()
		opts.Dialer = func(context.Context, string, string) (net.Conn, error) { return r.mini.Dial() }
		c := redis.NewClient(opts)
		path := filepath.Join(dir, snapshotName)
		written := func() time.Time {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				return time.Time{}
			}
			if err != nil {
				t.Fatal(err)
			}
			return info.ModTime()
		}

		ok(t, c.Ping(t.Context()), c.Eval(t.Context(), `return redis.call('EXISTS', KEYS[1])`, []string{"k"}))
		pass(t, 2*snapshotInterval)
		if !written().IsZero() {
			t.Error("a snapshot was written though nothing changed")
		}
		ok(t, c.Eval(t.Context(), `return redis.call('SET', KEYS[1], 'v')`, []string{"k"}))
		pass(t, 2*snapshotInterval)
		first := written()
		if first.IsZero() {
			t.Error("no snapshot was written after a change")
		}
		ok(t, c.Get(t.Context(), "k"))
		pass(t, 3*snapshotInterval)
		if got := written(); got != first {
			t.Error("a snapshot was written though nothing had changed")
		}
		if err := errors.Join(c.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
}

// pass advances the clock of a synctest bubble.
func pass(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	synctest.Wait()
}

// Snapshots are taken between commands, never within a script, while writers go on.
func TestRedisSnapshotIsOneMoment(t *testing.T) {
	dir := t.TempDir()
	r := startTestRedis(t, RedisOptions{Dir: dir})
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 3 {
		c := dialRedis(t, r)
		writers.Go(func() {
			for ctx.Err() == nil {
				// Both counters in one script: a snapshot sees them equal.
				err := c.Eval(context.Background(), `redis.call('INCR', 'a') redis.call('INCR', 'b') return 1`, nil).Err()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		if err := r.Snapshot(); err != nil {
			t.Error(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, snapshotName))
		if errors.Is(err, fs.ErrNotExist) {
			continue // before the first write
		}
		if err != nil {
			t.Fatal(err)
		}
		var s snapshot
		if err := s.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if len(s.keys) != 2 || s.keys[0].items[0].name != s.keys[1].items[0].name {
			t.Errorf("snapshot amid a script: %+v", s.keys)
		}
	}
	stop()
	writers.Wait()
}

func TestRedisErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	used := t.TempDir()
	startTestRedis(t, RedisOptions{Dir: used})
	for name, test := range map[string]struct {
		opts RedisOptions
		say  []string
	}{
		"port taken":       {RedisOptions{Addr: taken.Addr().String()}, []string{taken.Addr().String(), "taken", "choose another port"}},
		"directory in use": {RedisOptions{Dir: used}, []string{used, "another hamlet uses it"}},
	} {
		r, err := StartRedis(test.opts)
		if err == nil {
			t.Errorf("%s: it started at %s", name, r.Addr())
			continue
		}
		mustSay(t, err, test.say...)
	}
}

// Any wrong byte in a snapshot is an error that names the file. The file is not
// changed.
func TestRedisDamagedSnapshot(t *testing.T) {
	dir := t.TempDir()
	r := startTestRedis(t, RedisOptions{Dir: dir})
	c := dialRedis(t, r)
	ok(t, c.HSet(t.Context(), "hash", "field", "value"), c.Set(t.Context(), "k", "v", time.Hour))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, snapshotName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x10
		if err := new(snapshot).UnmarshalBinary(damaged); err == nil {
			t.Errorf("byte %d of %d changed unnoticed", i, len(whole))
		}
		if err := new(snapshot).UnmarshalBinary(whole[:i]); err == nil {
			t.Errorf("a snapshot cut to %d bytes of %d was taken for whole", i, len(whole))
		}
	}
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the lock is given back
		if _, err = StartRedis(RedisOptions{Dir: dir}); err == nil {
			t.Fatal("it started from a cut snapshot")
		}
		mustSay(t, err, path, "damaged", "move the file away")
	}
}

// A snapshot that cannot be written is reported, once, and by Close.
func TestRedisSnapshotFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var log bytes.Buffer
	r, err := newRedis(RedisOptions{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r.mini.DB(0).XAdd("stream", "*", []string{"k", "v"})
	r.commands.writes++
	if err := r.Close(); err == nil {
		t.Error("Close reports no stream that a snapshot cannot hold")
	} else {
		mustSay(t, err, dir, "key stream", "use a real redis")
	}
}

// Decoding never panics, and what it accepts encodes to the same bytes.
func FuzzRedisSnapshot(f *testing.F) {
	for _, s := range []snapshot{
		{},
		{keys: []snapshotKey{
			{kind: 's', name: "a", expires: 1 << 40, items: []snapshotItem{{name: "v"}}},
			{kind: 'h', name: "b", items: []snapshotItem{{name: "f", value: "v"}, {name: "g"}}},
			{kind: 'l', name: "c", items: []snapshotItem{{name: "z"}, {name: "a"}}},
			{kind: 't', name: "d", items: []snapshotItem{{name: ""}, {name: "a"}}},
			{database: 3, kind: 'z', name: "a", items: []snapshotItem{{name: "m", score: -1.5}}},
		}},
	} {
		var b bytes.Buffer
		if err := s.encode(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes()[:b.Len()-8])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		// A fuzzer would not find the right sum.
		b := binary.BigEndian.AppendUint64(bytes.Clone(body), xxhash.Sum64(body))
		var s snapshot
		if err := s.UnmarshalBinary(b); err != nil {
			if s.keys != nil {
				t.Fatal("a failed decode left keys behind")
			}
			return
		}
		var again bytes.Buffer
		if err := s.encode(&again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Bytes(), b) {
			t.Fatalf("decoded and encoded\n%x to\n%x", b, again.Bytes())
		}
	})
}

// A state of 10 versions of 8 MiB, as an embedded learner makes it.
func BenchmarkRedisSnapshot(b *testing.B) {
	r, err := StartRedis(RedisOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for i := range 80 {
		if err := r.mini.Set(fmt.Sprintf("chunk:%d", i), strconv.Itoa(i)+strings.Repeat("x", 1<<20)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(80 << 20)
	for b.Loop() {
		r.commands.writes++
		if err := r.Snapshot(); err != nil {
			b.Fatal(err)
		}
	}
}

// A killed process's unfinished file is removed by the next process.
func TestRedisRemovesUnfinishedSnapshots(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "redis.snapshot.123.tmp")
	other := filepath.Join(dir, "notes.tmp")
	for _, name := range []string{left, other} {
		if err := os.WriteFile(name, []byte("hamletRD"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := StartRedis(RedisOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("somebody else's file: %v", err)
	}
}

// A listener without file descriptors fails at once, again and again.
type exhausted struct {
	net.Listener
	failures int
}

func (e *exhausted) Accept() (net.Conn, error) {
	if e.failures--; e.failures < 0 {
		return nil, net.ErrClosed
	}
	return nil, syscall.EMFILE
}

// Accepting pauses while too many files are open, and gives up when that lasts.
func TestAcceptPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, failures := range []int{5, 20} {
			failed := newFailure("")
			l := patientListener{&exhausted{failures: failures}, failed}
			began := time.Now()
			if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("accept: %v, want %v", err, net.ErrClosed)
			}
			if took := time.Since(began); took != time.Duration(failures)*acceptPause {
				t.Errorf("%d failures took %v, want %v", failures, took, time.Duration(failures)*acceptPause)
			}
			lasting := time.Duration(failures)*acceptPause > acceptPatience
			if err := failed.get(); (err != nil) != lasting {
				t.Errorf("%d failures are recorded as %v", failures, err)
			} else if lasting {
				mustSay(t, err, "ulimit -n")
			}
		}
	})
}
