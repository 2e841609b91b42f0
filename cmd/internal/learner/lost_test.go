package learner

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hamlet/state/redis"
)

// A Redis that was emptied, or set back to an older snapshot, has the model again
// though no event comes.
func TestLostStateIsSavedAgainWithoutEvents(t *testing.T) {
	r := newRig(t, 1)
	const n = 200
	records, m := texts(t, r.topic, n)
	l, err := New(r.config("g"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
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
			c, _, err := r.store.Load(ctx, 0, redis.Head)
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
