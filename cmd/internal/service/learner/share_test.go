package learner

import (
	"crypto/sha256"
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
