package redis

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// A server is a Redis that a test uses, under a model name of its own.
type server struct {
	addr           string
	user, password string // empty on a server without users
	model          string
	plain          *redis.Client              // to read and write keys directly
	pass           func(period time.Duration) // lets time pass, as far as it makes keys expire
}

var models atomic.Int64

// eachServer runs a test on a Redis in process, and, if the environment variable
// HAMLET_REDIS holds a host:port, on the one there as well, as the user that
// HAMLET_REDIS_USER and HAMLET_REDIS_PASSWORD name. It leaves no keys.
func eachServer(t *testing.T, test func(t *testing.T, srv server)) {
	t.Run("embedded", func(t *testing.T) {
		m := miniredis.RunT(t)
		test(t, connect(t, m.Addr(), m.FastForward))
	})
	if addr := os.Getenv("HAMLET_REDIS"); addr != "" {
		t.Run("real", func(t *testing.T) {
			srv := connect(t, addr, nil)
			srv.pass = func(period time.Duration) { srv.age(t, period) }
			test(t, srv)
		})
	}
}

func connect(t testing.TB, addr string, pass func(time.Duration)) server {
	srv := server{
		addr:  addr,
		model: fmt.Sprintf("test-%d-%d", os.Getpid(), models.Add(1)),
		pass:  pass,
	}
	if addr == os.Getenv("HAMLET_REDIS") {
		srv.user, srv.password = os.Getenv("HAMLET_REDIS_USER"), os.Getenv("HAMLET_REDIS_PASSWORD")
	}
	srv.plain = redis.NewClient(&redis.Options{Addr: addr, Username: srv.user, Password: srv.password})
	t.Cleanup(func() {
		srv.clear(t)
		if err := srv.plain.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// age shortens the time to live of every key that has one.
func (srv server) age(t testing.TB, period time.Duration) {
	t.Helper()
	ctx := context.Background()
	for _, key := range srv.keys(t, "*") {
		left, err := srv.plain.PTTL(ctx, key).Result()
		switch {
		case err != nil:
		case left < 0: // it has none, or came to it
		case left <= period:
			err = srv.plain.Del(ctx, key).Err()
		default:
			err = srv.plain.PExpire(ctx, key, left-period).Err()
		}
		if err != nil {
			t.Fatalf("let %v pass for %s: %v", period, key, err)
		}
	}
}

// clear removes all keys of the test's model.
func (srv server) clear(t testing.TB) {
	for _, key := range srv.keys(t, "*") {
		if err := srv.plain.Del(context.Background(), key).Err(); err != nil {
			t.Errorf("clean up: %v", err)
		}
	}
}

// keys returns the model's keys that match a pattern after the model's prefix.
func (srv server) keys(t testing.TB, pattern string) []string {
	t.Helper()
	var keys []string
	scan := srv.plain.Scan(context.Background(), 0, "hamlet:{"+srv.model+"}:"+pattern, 1000).Iterator()
	for scan.Next(context.Background()) {
		keys = append(keys, scan.Val())
	}
	if err := scan.Err(); err != nil {
		t.Fatalf("scan: %v", err)
	}
	return keys
}

// config returns what a store on the server needs.
func (srv server) config() Config {
	return Config{Addr: srv.addr, Username: srv.user, Password: srv.password, Model: srv.model}
}

// open returns a store on the server, with a test's changes to its Config.
func (srv server) open(t testing.TB, change func(*Config)) *Store {
	t.Helper()
	cfg := srv.config()
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// model returns a model's bytes: a chunk for each letter, filled with it, and a
// short one at the end.
func model(letters string) []byte {
	var b []byte
	for _, letter := range []byte(letters) {
		b = append(b, bytes.Repeat([]byte{letter}, state.ChunkSize)...)
	}
	return append(b, "the end of "+letters...)
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// checkpoint returns a checkpoint after next records.
func checkpoint(epoch, next int64, letters string) *state.Checkpoint {
	c := &state.Checkpoint{
		Schema:   1,
		Numerics: "1/test",
		Config:   []byte(`{}`),
		Epoch:    epoch,
		Events:   uint64(next),
		Position: state.Position{Next: next, Chain: [32]byte{byte(next)}},
		Model:    model(letters),
		Saved:    noon,
	}
	c.ModelSHA256 = sha256.Sum256(c.Model)
	return c
}

// learnt is checkpoint with small model bytes of its own for each next.
func learnt(epoch, next int64) *state.Checkpoint {
	c := checkpoint(epoch, next, "")
	c.Model = fmt.Appendf(nil, "the model after %d", next)
	c.ModelSHA256 = sha256.Sum256(c.Model)
	return c
}

func take(t testing.TB, s *Store) int64 {
	t.Helper()
	lease, err := s.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	return lease.Epoch
}

func save(t testing.TB, s *Store, c *state.Checkpoint) int64 {
	t.Helper()
	version, err := s.Save(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// logTo returns a logger that writes lines to w.
func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, nil))
}

func mustContain(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}
