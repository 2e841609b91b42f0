package redis

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	resp "github.com/alicebob/miniredis/v2/server"

	"hamlet/state"
)

// A save counts once the replicas have it. One that they do not have yet is tried again,
// under the same version.
func TestASaveWaitsForReplicas(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	var mu sync.Mutex
	var have int           // replicas
	var waits [][]string   // arguments of each WAIT
	var scripts *resp.Peer // the connection of the last script
	m.Server().SetPreHook(func(peer *resp.Peer, command string, args ...string) bool {
		mu.Lock()
		defer mu.Unlock()
		switch strings.ToUpper(command) {
		case "EVAL", "EVALSHA":
			scripts = peer
		case "WAIT":
			if waits = append(waits, slices.Clone(args)); peer != scripts {
				t.Error("WAIT comes on another connection than the commit, so it waits for nothing")
			}
			peer.WriteInt(have)
			return true
		}
		return false
	})
	srv := server{addr: m.Addr(), model: "waiting"}
	s := srv.open(t, func(cfg *Config) { cfg.Replicas, cfg.ReplicaWait = 2, 1500*time.Millisecond })
	epoch := take(t, s)
	have = 1
	for range 2 {
		_, err := s.Save(t.Context(), checkpoint(epoch, 5, "ab"))
		if !errors.Is(err, state.ErrTransient) {
			t.Fatalf("Save with one replica of two: %v, want ErrTransient", err)
		}
		mustContain(t, err.Error(), "version 1", "1 of the 2 replicas", "1.5s")
	}
	if c, version, err := s.Load(t.Context(), state.Served); err != nil || version != 1 || c.Position.Next != 5 {
		t.Errorf("served is version %d, %v; want version 1", version, err)
	}
	mu.Lock()
	have = 2
	mu.Unlock()
	if version := save(t, s, checkpoint(epoch, 5, "ab")); version != 1 {
		t.Errorf("saved version %d, want 1", version)
	}
	if want := []string{"2", "1500"}; len(waits) != 3 || !slices.Equal(waits[0], want) {
		t.Errorf("WAIT was sent with %q, want three times %q", waits, want)
	}

	plain := srv.open(t, nil)
	save(t, plain, checkpoint(epoch, 6, "abc"))
	if len(waits) != 3 {
		t.Error("WAIT is sent although no replica was asked for")
	}
}
