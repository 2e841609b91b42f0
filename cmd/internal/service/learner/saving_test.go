package learner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
)

// A Redis that is emptied while events come gets the model in memory, not an empty one.
func TestLostStateCostsNoModel(t *testing.T) {
	r := newRig(t)
	const n = 200
	records, m := texts(t, n)
	var said bytes.Buffer
	cfg := r.config()
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	forgotten := false
	r.produce(records[:n/2]...)
	cfg.Observe = func(a Applied) { // in the learner's own goroutine, before it saves
		if a.Offset == n/2 {
			r.forget()
			forgotten = true
		}
	}
	p := r.run(cfg)
	p.until(t, "half is saved", func(s Status) bool { return s.SavedEnd >= n/2 })
	r.produce(records[n/2:]...)
	p.until(t, "all is saved", func(s Status) bool { return s.SavedEnd >= n })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if c := r.head(); !forgotten || c.ModelSHA256 != sum(t, m) || c.Position.Next != n {
		t.Errorf("forgotten %v: the head is at %d, or another model", forgotten, c.Position.Next)
	}
	for message, times := range map[string]int{"starting with an empty model": 1, "has lost the model's state": 1, "to another learner": 0} {
		if got := strings.Count(said.String(), message); got != times {
			t.Errorf("%q is logged %d times, want %d:\n%s", message, got, times, &said)
		}
	}
}

// taught returns an active worker after it has learnt and saved n texts. It saves
// at every turn.
func (r *rig) taught(cfg Config, n int) *worker {
	r.t.Helper()
	cfg.SaveEvery = time.Nanosecond
	p := opened(r.t, cfg)
	records, _ := texts(r.t, n)
	if err := handle(r.t, p, records, 0); err != nil {
		r.t.Fatal(err)
	}
	settled(r.t, p)
	if c := r.head(); c.Position.Next != int64(n) {
		r.t.Fatalf("saved up to %d, want %d", c.Position.Next, n)
	}
	return p
}

// lose deletes the keys that match a pattern.
func (r *rig) lose(pattern string) {
	r.t.Helper()
	client := r.client()
	keys, err := client.Keys(r.t.Context(), pattern).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	if n, err := client.Del(r.t.Context(), keys...).Result(); err != nil || n == 0 {
		r.t.Fatalf("%d keys %s deleted, %v", n, pattern, err)
	}
}

// A model whose key partitions Redis lost, and nothing else, gets it again without a new event.
func TestAModelIsListedAgainWithoutEvents(t *testing.T) {
	r := newRig(t)
	p := r.taught(r.config(), 20)
	version := p.status.Version
	for range 2 {
		r.lose("hamlet:{default}:0:partitions")
		for deadline := time.Now().Add(patience); ; {
			if err := p.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if listed, err := r.client().SMembers(t.Context(), key("partitions")).Result(); err != nil {
				t.Fatal(err)
			} else if slices.Equal(listed, []string{"0"}) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the model is not listed again")
			}
		}
		settled(t, p)
	}
	if p.status.Version != version || p.unsaved {
		t.Errorf("version %d became %d, unsaved %v", version, p.status.Version, p.unsaved)
	}
}

// An asked store records what it was asked for. The worker's goroutine reads it when no save is
// running.
type asked struct {
	Store
	calls     []string
	deadlines int // saves with a deadline
}

func (s *asked) Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error) {
	s.calls = append(s.calls, "acquire")
	return s.Store.Acquire(ctx, seen, writer)
}

func (s *asked) Release(ctx context.Context, mine state.Lease) (state.Lease, error) {
	s.calls = append(s.calls, "release")
	return s.Store.Release(ctx, mine)
}

func (s *asked) Save(ctx context.Context, checkpoint *state.Checkpoint) (int64, error) {
	s.calls = append(s.calls, "save")
	if _, ok := ctx.Deadline(); ok {
		s.deadlines++
	}
	return s.Store.Save(ctx, checkpoint)
}

// A quiet learner saves again what the store lost. No save has a deadline of the turn that starts
// it: the store's own limits follow its speed.
func TestAQuietLearnerSavesAgain(t *testing.T) {
	r := newRig(t)
	cfg := r.config()
	store := &asked{Store: cfg.Store}
	cfg.Store = store
	p := r.taught(cfg, 20)
	for _, c := range []struct {
		lose string // what Redis loses
		asks []string
	}{
		{"*", []string{"save", "acquire", "save"}},
		{"hamlet:{default}:0:partitions", []string{"save"}},
	} {
		store.calls, store.deadlines = nil, 0
		r.lose(c.lose)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		for n := len(c.asks); len(store.calls) < n || !slices.Equal(store.calls[len(store.calls)-n:], c.asks); {
			if err := p.Idle(ctx); err != nil {
				t.Fatal(err)
			}
			awaitRunning(t, p)
		}
		cancel()
		if store.deadlines > 0 {
			t.Errorf("without %s %d of %q had a deadline", c.lose, store.deadlines, store.calls)
		}
		settled(t, p)
	}
}

// A mute store answers its next requests to acquire the lease with an error that may pass, though
// it has done what they ask. What is set is read when no save is running.
type mute struct {
	Store
	takes int // how many
}

func (s *mute) Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error) {
	lease, err := s.Store.Acquire(ctx, seen, writer)
	if s.takes > 0 && err == nil {
		s.takes--
		return state.Lease{}, state.Transient(errors.New("the reply was lost"))
	}
	return lease, err
}

// A Redis that was emptied gets the model in memory, although the first replies are lost
// and its keys are damaged again meanwhile.
func TestLostRepliesCostNoModel(t *testing.T) {
	r := newRig(t)
	cfg := r.config()
	store := &mute{Store: cfg.Store}
	cfg.Store = store
	p := r.taught(cfg, 20)
	want := sum(t, p.model)
	store.takes = 2
	r.forget()
	r.set("head", "?")
	for deadline := time.Now().Add(patience); store.takes > 0 || p.unsaved || p.running != nil; {
		if err := p.Idle(t.Context()); err != nil {
			t.Fatalf("with %d replies still to be lost: %v", store.takes, err)
		}
		awaitRunning(t, p)
		if time.Now().After(deadline) {
			t.Fatalf("not saved: the status is %+v", p.status)
		}
	}
	if c := r.head(); c.ModelSHA256 != want || c.Position.Next != 20 || c.Epoch != p.lease.Epoch {
		t.Errorf("the head is at %d under epoch %d, want 20 under %d, or another model", c.Position.Next, c.Epoch, p.lease.Epoch)
	}
}

// awaitRunning returns when the running save or check has ended. It is not settled then.
func awaitRunning(t *testing.T, p *worker) {
	t.Helper()
	if p.running == nil {
		return
	}
	select {
	case <-p.running.done:
	case <-time.After(patience):
		t.Fatal("a save does not end")
	}
}

// settled gives the worker quiet turns until what it has learnt is saved.
func settled(t *testing.T, p *worker) {
	t.Helper()
	for deadline := time.Now().Add(patience); p.unsaved || p.running != nil; {
		if err := p.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("not saved: the status is %+v", p.status)
		}
	}
}

// Whatever key of the bookkeeping is lost, set back or damaged, the live learner heals
// it on a quiet stream: the same bytes are loaded, by pointer and by a scorer's way.
func TestALiveLearnerHealsTheBookkeeping(t *testing.T) {
	prefix := key("")
	for name, damage := range map[string]func(ctx context.Context, c *goredis.Client, p *worker) error{
		"refs deleted": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Del(ctx, prefix+"refs").Err()
		},
		"last set back": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"last", 0, 0).Err()
		},
		"last is garbage": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"last", "?", 0).Err()
		},
		"next raised": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.HSet(ctx, fmt.Sprint(prefix, "version:", p.status.Version), "next", 99999).Err()
		},
		"next is garbage": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.HSet(ctx, fmt.Sprint(prefix, "version:", p.status.Version), "next", "?????").Err()
		},
		"served is garbage": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"served", "?", 0).Err()
		},
		"head is garbage": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"head", "?", 0).Err()
		},
		"head set back": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"head", 1, 0).Err()
		},
		"pinned is garbage": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.MSet(ctx, prefix+"pinned", "?", prefix+"served", "?").Err()
		},
		"epoch set back": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"epoch", 0, 0).Err()
		},
		"epoch is garbage": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"epoch", "?", 0).Err()
		},
		"lease deleted": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Del(ctx, prefix+"lease").Err()
		},
		"lease is garbage": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"lease", "?", 0).Err()
		},
		"lease is another type": func(ctx context.Context, c *goredis.Client, p *worker) error {
			if err := c.Del(ctx, prefix+"lease").Err(); err != nil {
				return err
			}
			return c.SAdd(ctx, prefix+"lease", "?").Err()
		},
		"versions deleted": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Del(ctx, prefix+"versions").Err()
		},
		"version deleted": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Del(ctx, fmt.Sprint(prefix, "version:", p.status.Version)).Err()
		},
		"partitions holds garbage": func(ctx context.Context, c *goredis.Client, p *worker) error {
			if err := c.Del(ctx, prefix+"partitions").Err(); err != nil {
				return err
			}
			return c.SAdd(ctx, prefix+"partitions", "?", "-1", "00").Err()
		},
		"partitions is another type": func(ctx context.Context, c *goredis.Client, p *worker) error {
			return c.Set(ctx, prefix+"partitions", "?", 0).Err()
		},
		"a chunk evicted": func(ctx context.Context, c *goredis.Client, p *worker) error {
			keys, err := c.Keys(ctx, prefix+"chunk:*").Result()
			if err != nil {
				return err
			}
			return c.Del(ctx, keys[0]).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.taught(r.config(), 20)
			client := r.client()
			ctx := t.Context()
			if err := damage(ctx, client, p); err != nil {
				t.Fatal(err)
			}
			want, epoch := sum(t, p.model), p.lease.Epoch
			// The first turn may settle a save from before the damage.
			for range 3 {
				p.l.watch.step(ctx)
				if err := p.Idle(ctx); err != nil {
					t.Fatalf("on a quiet stream: %v", err)
				}
				awaitRunning(t, p)
			}
			settled(t, p)
			fresh, err := redis.New(redis.Config{Addr: r.options.Addr, Model: "default"})
			if err != nil {
				t.Fatal(err)
			}
			defer fresh.Close()
			for _, which := range []state.Pointer{state.Head, state.Served} {
				c, version, err := fresh.Load(ctx, which)
				if err != nil || c.ModelSHA256 != want || version != p.status.Version {
					t.Errorf("%v is version %d, %v, want version %d with the model's bytes", which, version, err, p.status.Version)
				}
				if h, err := fresh.Heading(ctx, which); err != nil || h.Next != 20 || h.Version != version {
					t.Errorf("%v: heading %+v, %v", which, h, err)
				}
			}
			if listed, err := client.SIsMember(ctx, prefix+"partitions", "0").Result(); err != nil || !listed {
				t.Errorf("the model is listed: %v, %v", listed, err)
			}
			if p.lease.Epoch < epoch {
				t.Errorf("the epoch fell from %d to %d", epoch, p.lease.Epoch)
			}
			if l, err := fresh.Lease(ctx); err != nil || !l.Holds(p.lease) {
				t.Errorf("the lease is %+v, %v; this learner has %+v", l, err, p.lease)
			}
			if next, err := fresh.Seize(ctx, "next"); err != nil || next.Epoch <= p.lease.Epoch {
				t.Errorf("the next learner has the epoch %d, %v; this one has %d", next.Epoch, err, p.lease.Epoch)
			}
		})
	}
}

// Nothing is saved while the log does not say that it is the log that the model has learnt. What
// was learnt waits, and is saved once the log says so. Another log ends the worker.
func TestNothingIsSavedUnconfirmed(t *testing.T) {
	r := newRig(t)
	cfg := r.config()
	store := &asked{Store: cfg.Store}
	cfg.Store, cfg.SaveEvery = store, time.Nanosecond
	p := opened(t, cfg)
	says := fmt.Errorf("%w: it does not answer", follow.ErrUnconfirmed)
	p.Position(func(context.Context) error { return says })
	store.calls = nil
	records, m := texts(t, 20)
	if err := handle(t, p, records, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := p.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(store.calls) > 0 || !p.unsaved || p.running != nil {
		t.Fatalf("unsaved %v, and the store was asked to %q", p.unsaved, store.calls)
	}
	says = nil
	settled(t, p)
	if c := r.head(); c.ModelSHA256 != sum(t, m) || c.Position.Next != 20 {
		t.Errorf("saved at %d, or another model", c.Position.Next)
	}
	store.calls, says = nil, follow.ErrReload
	if err := handle(t, p, []stream.Record{letter(0)}, 20); !errors.Is(err, follow.ErrReload) || slices.Contains(store.calls, "save") {
		t.Errorf("%v, and the store was asked to %q", err, store.calls)
	}
}

// Saves write about SaveBytes a minute: a few come one after another, and then each waits until that is
// paid. Save does not wait.
func TestSavesKeepABudget(t *testing.T) {
	const size = 1000
	w := &worker{l: &Learner{cfg: Config{SaveBytes: 6 * size}}, size: size}
	saves := 0
	at := time.Unix(1e9, 0)
	for range 30 * 60 { // a label a second, for half an hour
		if at = at.Add(time.Second); w.affords(at) {
			saves++
			w.debt += size
		}
	}
	if saves < 30*6 || saves > 30*6+4 {
		t.Errorf("%d saves in 30 minutes, want 6 a minute and at most 4 more", saves)
	}
	if w.affords(at) {
		t.Error("it affords another at once")
	}
	w.l.Save()
	if !w.affords(at) {
		t.Error("Save waits")
	}
}
