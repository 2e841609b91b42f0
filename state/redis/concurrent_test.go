package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"hamlet/state"
)

// Readers that poll while a writer saves and trims as fast as it can always get
// a whole version, and never an older one than before.
func TestReadersAmidTrimming(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		keepOne := func(cfg *Config) { cfg.Keep, cfg.Daily = 1, new(0) }
		w := srv.open(t, keepOne)
		epoch := take(t, w)
		save(t, w, checkpoint(epoch, 0, "a"))
		ctx, stop := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for range 2 {
			s := srv.open(t, keepOne)
			readers.Go(func() {
				last := int64(-1)
				for ctx.Err() == nil {
					c, _, err := s.Load(context.Background(), state.Served)
					if err != nil {
						t.Errorf("load amid trimming: %v", err)
						return
					}
					if c.Position.Next < last {
						t.Errorf("loaded offset %d after %d", c.Position.Next, last)
					}
					last = c.Position.Next
				}
			})
		}
		for next := int64(1); next <= 40; next++ {
			save(t, w, checkpoint(epoch, next, string(rune('a'+next%5))))
		}
		stop()
		readers.Wait()
		checkInvariants(t, srv)
	})
}

// Two writers race. The last one to take the model wins. The other one gets an
// error, and nothing of it is in the head.
func TestWritersRace(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		var writers sync.WaitGroup
		for range 3 {
			s := srv.open(t, nil)
			writers.Go(func() {
				ctx := context.Background()
				for range 10 {
					lease, err := s.Seize(ctx, "w")
					if err != nil {
						t.Error(err)
						return
					}
					next := int64(0)
					if c, _, err := s.Load(ctx, state.Head); err == nil {
						next = c.Position.Next
					} else if !errors.Is(err, state.ErrNone) {
						t.Error(err)
						return
					}
					for range 5 {
						next++
						if _, err := s.Save(ctx, learnt(lease.Epoch, next)); errors.Is(err, state.ErrStale) {
							break
						} else if err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		writers.Wait()
		checkInvariants(t, srv)
		infos, err := srv.open(t, nil).Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(infos); i++ {
			newer, older := infos[i-1], infos[i]
			if newer.Epoch < older.Epoch || newer.Position.Next < older.Position.Next {
				t.Errorf("version %d (epoch %d, offset %d) came after version %d (epoch %d, offset %d)",
					newer.Version, newer.Epoch, newer.Position.Next, older.Version, older.Epoch, older.Position.Next)
			}
		}
	})
}

// The connection breaks after any number of bytes of Redis' replies. The second attempt
// always succeeds, and there is one version.
func TestSaveSurvivesBrokenConnections(t *testing.T) {
	m := miniredis.RunT(t)
	srv := connect(t, m.Addr(), m.FastForward)
	direct := srv.open(t, nil)
	epoch := take(t, direct)
	base := save(t, direct, learnt(epoch, 0))
	done := false
	lost := 0 // saves that were done though the writer had no reply
	for limit := 0; limit < 2000; limit++ {
		c := learnt(epoch, int64(limit+1))
		err := saveThrough(t, cutAfter(t, m.Addr(), limit), srv.model, c)
		if err != nil && !errors.Is(err, state.ErrTransient) {
			t.Fatalf("replies cut after %d bytes: %v is not transient", limit, err)
		}
		if head, headErr := direct.Heading(t.Context(), state.Head); headErr != nil {
			t.Fatal(headErr)
		} else if err != nil && head.Version > base+int64(limit) {
			lost++
		}
		if got, want := save(t, direct, c), base+int64(limit)+1; got != want {
			t.Fatalf("replies cut after %d bytes, saved again as version %d, want %d", limit, got, want)
		}
		if done = err == nil; done {
			break
		}
	}
	if !done {
		t.Error("no save came through whole")
	}
	if lost == 0 {
		t.Error("no connection broke between a save and its reply: the test misses its point")
	}
	checkInvariants(t, srv)
}

func saveThrough(t *testing.T, addr, model string, c *state.Checkpoint) error {
	s, err := New(Config{Addr: addr, Model: model})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Save(t.Context(), c)
	return err
}

// cutAfter is a proxy to addr that breaks all connections after a number of bytes of
// replies.
func cutAfter(t *testing.T, addr string, replies int) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var relay sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		relay.Wait()
	})
	var left atomic.Int64
	left.Store(int64(replies))
	relay.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			if left.Load() < 0 {
				client.Close() // the listener stays: another might get its port
				continue
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			relay.Go(func() {
				io.Copy(server, client)
				server.Close()
			})
			relay.Go(func() {
				defer client.Close()
				defer server.Close()
				b := make([]byte, 1)
				for left.Add(-1) >= 0 {
					if _, err := server.Read(b); err != nil {
						return
					}
					if _, err := client.Write(b); err != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}
