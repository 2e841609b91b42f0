package learner

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"testing"

	"hamlet/algos/model"
	"hamlet/state"
)

// While nothing is learnt, a learner has the tables of the model that a scorer of its process answers
// from. It goes on as one that has its own, and that model stays as it was.
func TestTablesAreSharedWithTheScorer(t *testing.T) {
	r := newRig(t)
	const n = 200
	records, m := texts(t, n)
	cfg := r.config()
	var served atomic.Pointer[model.Model]
	cfg.Served = func(sha [sha256.Size]byte) *model.Model {
		if s := served.Load(); s != nil {
			return s
		}
		c, _, err := r.store.Load(t.Context(), state.Head)
		if err != nil || c.ModelSHA256 != sha {
			return nil
		}
		twin, err := model.Restore(c.Model)
		if err != nil {
			t.Error(err)
			return nil
		}
		served.Store(twin)
		return twin
	}
	p := r.run(cfg)
	r.produce(records[:n/2]...)
	p.until(t, "the scorer's model is asked for", func(Status) bool { return served.Load() != nil })
	before := sum(t, served.Load())
	r.produce(records[n/2:]...)
	p.until(t, "the rest is saved", func(s Status) bool { return s.SavedEnd == n })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if r.head().ModelSHA256 != sum(t, m) {
		t.Error("the learner went on differently")
	}
	if sum(t, served.Load()) != before {
		t.Error("the scorer's model was changed")
	}
}

// What is saved is handed on with its memory: no later save writes there.
func TestWhatIsSavedIsHandedOn(t *testing.T) {
	r := newRig(t)
	const n = 60
	records, m := texts(t, n)
	cfg := r.config()
	var mu sync.Mutex
	var all []*state.Checkpoint
	var versions []int64
	cfg.Saved = func(c *state.Checkpoint, version int64) {
		mu.Lock()
		defer mu.Unlock()
		all, versions = append(all, c), append(versions, version)
	}
	p := r.run(cfg)
	for i := 0; i < n; i += n / 3 {
		r.produce(records[i : i+n/3]...)
		p.until(t, "they are saved", func(s Status) bool { return s.SavedEnd == int64(i+n/3) })
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(all) < 3 {
		t.Fatalf("%d saves were handed on, want at least 3", len(all))
	}
	for i, c := range all {
		if got := sha256.Sum256(c.Model); got != c.ModelSHA256 {
			t.Errorf("save %d, version %d: its bytes have the SHA-256 %x, not %x", i, versions[i], got, c.ModelSHA256)
		}
	}
	head := r.head()
	if last := all[len(all)-1]; last.ModelSHA256 != head.ModelSHA256 || last.Position != head.Position ||
		head.ModelSHA256 != sum(t, m) {
		t.Errorf("handed on last: %x at %+v; the head is %x at %+v", last.ModelSHA256, last.Position, head.ModelSHA256, head.Position)
	}
}
