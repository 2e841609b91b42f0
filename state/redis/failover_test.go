package redis

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hamlet/state"
	"hamlet/state/redis/redistest"
	"hamlet/state/storetest"
)

// A group is real servers that replace a lost master, and how a store reaches them.
type group struct {
	*redistest.Group
	cluster bool
}

// eachGroup runs a test with Sentinels and with a Cluster.
func eachGroup(t *testing.T, test func(t *testing.T, g group)) {
	redistest.Require(t)
	t.Run("sentinel", func(t *testing.T) { test(t, group{redistest.Sentinel(t), false}) })
	t.Run("cluster", func(t *testing.T) { test(t, group{redistest.Cluster(t), true}) })
}

func (g group) open(t *testing.T, model string, change func(*Config)) *Store {
	t.Helper()
	return server{}.open(t, func(cfg *Config) {
		*cfg = Config{Addr: g.Addr(), Sentinel: g.Name, Cluster: g.cluster, Model: model}
		if change != nil {
			change(cfg)
		}
	})
}

// master returns the server that holds a store's model.
func (g group) master(t *testing.T, s *Store) *redistest.Server {
	t.Helper()
	return g.Master(t, s.key("head"))
}

func TestLawsOfGroups(t *testing.T) {
	eachGroup(t, func(t *testing.T, g group) {
		storetest.Run(t, func(t *testing.T) func() state.Store {
			model := fmt.Sprintf("test-%d", models.Add(1))
			return func() state.Store { return g.open(t, model, nil) }
		})
		s := g.open(t, "one-more", nil)
		save(t, s, checkpoint(take(t, s), 1, "a"))
		found, err := s.Models(t.Context())
		if err != nil || len(found) < 5 {
			t.Errorf("models %v, %v; want those of the laws", found, err)
		}
		if err := s.CheckPolicy(t.Context()); err != nil {
			t.Errorf("policy: %v", err)
		}
		refused := g.master(t, s)
		if err := refused.Client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
			t.Fatal(err)
		}
		if err := g.open(t, "else", nil).CheckPolicy(t.Context()); err == nil {
			t.Error("a master that may evict the model is accepted")
		} else {
			mustContain(t, err.Error(), "allkeys-lru")
		}
	})
}

// saveUntil saves until it works, as the learner does, and returns how long that took.
func saveUntil(t *testing.T, s *Store, c *state.Checkpoint) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		_, err := s.Save(t.Context(), c)
		switch {
		case err == nil:
			return time.Since(begin)
		case errors.Is(err, state.ErrLost):
			var lease state.Lease
			if lease, err = s.Seize(t.Context(), "w"); err == nil {
				c.Epoch = lease.Epoch
			}
		}
		if err != nil && !errors.Is(err, state.ErrTransient) {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("no save in a minute: %v", err)
		}
		time.Sleep(10 * time.Millisecond) // a real server fails over in its own time
	}
}

// A master is killed, or hangs, between saves that replicas have. No save is lost, a zombie
// stays out, and a reader sees no version twice.
func TestALostMasterLosesNoSave(t *testing.T) {
	eachGroup(t, func(t *testing.T, g group) {
		waits := func(cfg *Config) { cfg.Replicas = 1 }
		zombie, s := g.open(t, "", waits), g.open(t, "", waits)
		old := take(t, zombie)
		epoch := take(t, s)
		next := int64(0)
		lose := map[string]func(m *redistest.Server){
			"killed": func(m *redistest.Server) { m.Kill(t) },
		}
		if !g.cluster { // it has one replica a master
			lose["stopped"] = func(m *redistest.Server) { m.Stop(t) }
		}
		for _, how := range []string{"stopped", "killed"} {
			if lose[how] == nil {
				continue
			}
			for range 5 {
				next++
				save(t, s, checkpoint(epoch, next, string(rune('a'+next))))
			}
			m := g.master(t, s)
			lose[how](m)
			reader := g.open(t, "", nil)
			c, _ := loadUntil(t, reader)
			if c.Position.Next != next {
				t.Errorf("%s: loaded %d after the fail-over, want %d", how, c.Position.Next, next)
			}
			await(t, func() bool { // its first tries may go to the lost one
				_, err := zombie.Save(t.Context(), checkpoint(old, next+1, "z"))
				if err == nil {
					t.Fatalf("%s: a zombie saved", how)
				}
				return errors.Is(err, state.ErrStale)
			})
			next++
			writer := s
			if g.cluster { // no replica is left
				writer = g.open(t, "", nil)
			}
			took := saveUntil(t, writer, checkpoint(epoch, next, "after"))
			t.Logf("%s: a save worked %v after the reader had loaded", how, took)
			if how == "stopped" {
				m.Continue(t)
				await(t, func() bool { return len(g.Replicas(t, g.master(t, s))) == 2 })
			}
			if g.cluster {
				return
			}
		}
	})
}

// Replicas lack the last saves, and one becomes the master. The writer finds out, saves again,
// and goes on.
func TestAMasterThatTakesSavesAlongWithIt(t *testing.T) {
	for _, lost := range []string{"saves", "the epoch too"} {
		t.Run(lost, func(t *testing.T) {
			eachGroup(t, func(t *testing.T, g group) {
				s := g.open(t, "", nil)
				epoch := take(t, s)
				save(t, g.open(t, "", func(cfg *Config) { cfg.Replicas = 1 }), checkpoint(epoch, 1, "a"))
				m := g.master(t, s)
				g.Cut(t, m)
				if lost != "saves" {
					epoch = take(t, s)
				}
				save(t, s, checkpoint(epoch, 2, "b"))
				save(t, s, checkpoint(epoch, 3, "c"))
				careful := g.open(t, "", func(cfg *Config) { cfg.Replicas, cfg.ReplicaWait = 1, 50*time.Millisecond })
				if _, err := careful.Save(t.Context(), checkpoint(epoch, 3, "c")); !errors.Is(err, state.ErrTransient) {
					t.Errorf("a save that no replica has: %v, want ErrTransient", err)
				}
				m.Kill(t)
				c, version := loadUntil(t, s)
				if c.Position.Next != 1 || version != 1 {
					t.Errorf("loaded version %d at %d after the fail-over, want version 1 at 1", version, c.Position.Next)
				}
				again := checkpoint(epoch, 3, "c")
				_, err := s.Save(t.Context(), again)
				if lost == "saves" && err != nil || lost != "saves" && !errors.Is(err, state.ErrLost) {
					t.Errorf("the writer saves again: %v", err)
				}
				saveUntil(t, s, again)
				if c, _, err := g.open(t, "", nil).Load(t.Context(), state.Served); err != nil || c.Position.Next != 3 {
					t.Errorf("served after that: %v", err)
				}
			})
		})
	}
}

// loadUntil loads the head once there is a master.
func loadUntil(t *testing.T, s *Store) (c *state.Checkpoint, version int64) {
	t.Helper()
	begin := time.Now()
	await(t, func() (done bool) {
		var err error
		c, version, err = s.Load(t.Context(), state.Head)
		if err != nil && !errors.Is(err, state.ErrTransient) {
			t.Fatalf("load: %v", err)
		}
		return err == nil
	})
	t.Logf("the head could be read again after %v", time.Since(begin))
	return c, version
}

func await(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not after a minute")
		}
	}
}
