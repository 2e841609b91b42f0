package learner

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"hamlet/state"
	"hamlet/state/redis"
)

// A Redis that was emptied, or restored from an older snapshot, gets the model again
// without a new event.
func TestLostStateIsSavedAgainWithoutEvents(t *testing.T) {
	r := newRig(t, 1)
	const n = 200
	records, m := texts(t, r.topic, n)
	l, err := New(r.config("g"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	await := func(what string, reached func() bool) {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for !reached() {
			select {
			case err := <-done:
				t.Fatalf("%s: the learner ended: %v", what, err)
			case <-tick.C:
			}
		}
	}
	// saved reports whether Redis holds the model at this offset.
	saved := func(next int64) func() bool {
		return func() bool {
			c, _, err := r.store.Load(ctx, 0, state.Head)
			return err == nil && c.Position.Next == next
		}
	}
	snapshots := filepath.Join(r.options.Dir, "redis.snapshot")

	r.produce(records[:n/2]...)
	await("half is learnt", saved(n/2))
	if err := r.redis.Close(); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(snapshots)
	if err != nil {
		t.Fatal(err)
	}
	r.startRedis()
	r.produce(records[n/2:]...)
	await("all is learnt", saved(n))

	if err := r.redis.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(snapshots, older, 0o600); err != nil {
		t.Fatal(err)
	}
	r.startRedis()
	await("after it was set back", saved(n))

	r.forget()
	await("after it was emptied", saved(n))
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r.head().ModelSHA256() != sum(t, m) {
		t.Error("the model differs")
	}
}

// A Redis that is emptied while events come gets the model in memory, not an empty one.
func TestLostStateCostsNoModel(t *testing.T) {
	r := newRig(t, 1)
	const n = 200
	records, m := texts(t, r.topic, n)
	var said bytes.Buffer
	cfg := r.config("g")
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	forgotten := false
	r.produce(records[:n/2]...)
	cfg.Observe = func(a Applied) { // in the learner's own goroutine, before it saves
		if a.Offset == n/2 {
			r.forget()
			forgotten = true
		}
	}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	await := func(end int64) {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for l.Status()[0].SavedEnd < end {
			select {
			case err := <-done:
				t.Fatalf("the learner ended before offset %d was saved: %v", end, err)
			case <-tick.C:
			}
		}
	}
	await(n / 2)
	r.produce(records[n/2:]...)
	await(n)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c := r.head(); !forgotten || c.ModelSHA256() != sum(t, m) || c.Position.Next != n {
		t.Errorf("forgotten %v: the head is at %d, or another model", forgotten, c.Position.Next)
	}
	for message, times := range map[string]int{"starting with an empty model": 1, "has lost the partition's state": 1, "to another learner": 0} {
		if got := strings.Count(said.String(), message); got != times {
			t.Errorf("%q is logged %d times, want %d:\n%s", message, got, times, &said)
		}
	}
}

// taught returns partition 0's model after it has learnt and saved n texts. It checks
// and saves at every turn.
func (r *rig) taught(cfg Config, n int) *partitionModel {
	r.t.Helper()
	cfg.SaveEvery = time.Nanosecond
	l, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := l.open(r.t.Context(), 0)
	if err != nil {
		r.t.Fatal(err)
	}
	records, _ := texts(r.t, r.topic, n)
	for i := range records {
		records[i].Offset, records[i].HighWatermark = int64(i), int64(n)
	}
	if err := p.Handle(r.t.Context(), records); err != nil {
		r.t.Fatal(err)
	}
	if c := r.head(); c.Position.Next != int64(n) {
		r.t.Fatalf("saved up to %d, want %d", c.Position.Next, n)
	}
	return p
}

// lose deletes the keys that match a pattern.
func (r *rig) lose(pattern string) {
	r.t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: r.options.Addr, DisableIdentity: true})
	defer client.Close()
	keys, err := client.Keys(r.t.Context(), pattern).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	if n, err := client.Del(r.t.Context(), keys...).Result(); err != nil || n == 0 {
		r.t.Fatalf("%d keys %s deleted, %v", n, pattern, err)
	}
}

// A partition that Redis lost from its list, but not its model, is listed again without
// a new event.
func TestAPartitionIsListedAgainWithoutEvents(t *testing.T) {
	r := newRig(t, 1)
	p := r.taught(r.config("g"), 20)
	version := p.status.Version
	for range 2 {
		r.lose("hamlet:{default}:0:partitions")
		if err := p.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if listed, err := r.store.Partitions(t.Context()); err != nil || !slices.Equal(listed, []int{0}) {
			t.Errorf("listed are %v, %v; want 0", listed, err)
		}
	}
	if p.status.Version != version || p.unsaved {
		t.Errorf("version %d became %d, unsaved %v", version, p.status.Version, p.unsaved)
	}
}

// A clocked store records the deadline of each call of a *redis.Store.
type clocked struct {
	*redis.Store
	asked  []string
	wanted []time.Time // zero: at any time
}

func (c *clocked) note(ctx context.Context, what string) {
	deadline, _ := ctx.Deadline()
	c.asked, c.wanted = append(c.asked, what), append(c.wanted, deadline)
}

func (c *clocked) Heading(ctx context.Context, partition int, which state.Pointer) (state.Heading, error) {
	c.note(ctx, "heading")
	return c.Store.Heading(ctx, partition, which)
}

func (c *clocked) Partitions(ctx context.Context) ([]int, error) {
	c.note(ctx, "partitions")
	return c.Store.Partitions(ctx)
}

func (c *clocked) Take(ctx context.Context, partition int) (int64, error) {
	c.note(ctx, "take")
	return c.Store.Take(ctx, partition)
}

func (c *clocked) Save(ctx context.Context, partition int, checkpoint *state.Checkpoint) (int64, error) {
	c.note(ctx, "save")
	return c.Store.Save(ctx, partition, checkpoint)
}

// A check that finds a loss, and the save that repairs it, have one deadline.
func TestACheckAndItsSaveHaveOneDeadline(t *testing.T) {
	r := newRig(t, 1)
	cfg := r.config("g")
	store := &clocked{Store: r.store}
	cfg.Store = store
	p := r.taught(cfg, 20)
	for _, c := range []struct {
		lose string // what Redis loses
		asks []string
	}{
		{"*", []string{"heading", "save", "take", "heading", "save"}},
		{"hamlet:{default}:0:partitions", []string{"heading", "partitions", "save"}},
	} {
		store.asked, store.wanted = nil, nil
		r.lose(c.lose)
		start := time.Now()
		if err := p.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		end := time.Now()
		if !slices.Equal(store.asked, c.asks) {
			t.Fatalf("without %s the store was asked for %q, want %q", c.lose, store.asked, c.asks)
		}
		grant := min(p.l.cfg.Consumer.Drain, 10*time.Second)
		for i, deadline := range store.wanted {
			if !deadline.Equal(store.wanted[0]) || deadline.Before(start.Add(grant)) || deadline.After(end.Add(grant)) {
				t.Errorf("without %s, %s %d is to end by %v; want what was asked first, %v, and that %v after the turn began, at %v",
					c.lose, store.asked[i], i, deadline, store.wanted[0], grant, start)
			}
		}
	}
}
