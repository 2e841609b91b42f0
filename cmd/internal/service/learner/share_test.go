package learner

import (
	"errors"
	"sync"
	"testing"

	"hamlet/algos/model"
	"hamlet/state"
)

// A handed is what a learner hands on.
type handed struct {
	c       *state.Checkpoint
	m       *model.Model
	version int64
}

// What is loaded and what is saved is handed on with its model, which no later event changes.
func TestWhatIsSavedIsHandedOn(t *testing.T) {
	r := newRig(t)
	const n = 60
	records, m := texts(t, n)
	cfg := r.config()
	var mu sync.Mutex
	var all []handed
	cfg.Saved = func(c *state.Checkpoint, m *model.Model, version int64) (unused *model.Model) {
		mu.Lock()
		defer mu.Unlock()
		if n := len(all); n > 0 && n%2 == 0 { // every other one is given back
			unused, all[n-1].m = all[n-1].m, nil
		}
		all = append(all, handed{c, m, version})
		return unused
	}
	p := r.run(cfg)
	for i := 0; i < n; i += n / 3 {
		r.produce(records[i : i+n/3]...)
		p.until(t, "they are saved", func(s Status) bool { return s.SavedEnd == int64(i+n/3) })
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	last, head := all[len(all)-1], r.head()
	p = r.run(cfg)
	p.until(t, "it is active", func(s Status) bool { return s.Active })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(all) < 4 {
		t.Fatalf("%d models were handed on, want at least 4", len(all))
	}
	for i, h := range all {
		if h.m == nil {
			continue
		}
		if got := sum(t, h.m); got != h.c.ModelSHA256 || h.m.Events() != h.c.Events {
			t.Errorf("number %d, version %d: its model has the SHA-256 %x, not %x", i, h.version, got, h.c.ModelSHA256)
		}
	}
	if last.c.ModelSHA256 != head.ModelSHA256 || last.c.Position != head.Position || head.ModelSHA256 != sum(t, m) {
		t.Errorf("handed on last: %x at %+v; the head is %x at %+v",
			last.c.ModelSHA256, last.c.Position, head.ModelSHA256, head.Position)
	}
	loaded := all[len(all)-1]
	if loaded.version != last.version || loaded.c.ModelSHA256 != head.ModelSHA256 || loaded.c.Model != nil {
		t.Errorf("what was loaded is handed on as version %d of %x, with %d bytes; want version %d of %x without",
			loaded.version, loaded.c.ModelSHA256, len(loaded.c.Model), last.version, head.ModelSHA256)
	}
}

// Where a scorer takes what is saved and saves are rare, no event is learnt before it has taken it. Without the one or
// the other a save runs beside learning.
func TestLearningWaitsForARareSave(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int64
		hands bool
	}{"rare and handed": {1 << 30, true}, "rare": {1 << 30, false}, "handed": {0, true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			records, _ := texts(t, 20)
			slow := &blocked{entered: make(chan struct{}), let: make(chan struct{})}
			var h *handed
			a := r.hand("a", func(cfg *Config) {
				slow.Store, cfg.Store, cfg.SaveBytes = cfg.Store, slow, c.bytes
				if c.hands {
					cfg.Saved = func(c *state.Checkpoint, m *model.Model, version int64) *model.Model {
						h = &handed{c, m, version}
						return nil
					}
				}
			})
			a.learn(0, records...)
			slow.block.Store(true)
			together := c.bytes > 0 && c.hands
			if together {
				go func() { <-slow.entered; close(slow.let) }()
			}
			a.w.lastSave = a.w.lastSave.Add(-a.l.cfg.SaveEvery)
			if err := a.w.saveIfDue(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if waited := a.w.running == nil; waited != together {
				t.Fatalf("learning goes on beside the save: %t; want %t", !waited, !together)
			}
			if together {
				if h == nil || a.w.status.Version != h.version || a.w.status.SavedEnd != 20 {
					t.Errorf("the status is %+v, and %+v was handed on", a.w.status, h)
				}
				return
			}
			<-slow.entered
			close(slow.let)
			<-a.w.running.done
			if err := a.w.takeIn(); err != nil || a.w.status.SavedEnd != 20 {
				t.Errorf("the save ended with %v at %d", err, a.w.status.SavedEnd)
			}
		})
	}
}

// A save that the store refuses at once leaves the model its tables, and the next one saves all.
func TestAFailedSaveIsTriedAgain(t *testing.T) {
	r := newRig(t)
	records, m := texts(t, 30)
	store := &mortal{}
	a := r.hand("a", func(cfg *Config) { store.Store, cfg.Store = cfg.Store, store })
	a.learn(0, records[:20]...)
	store.die()
	if err := a.w.startSave(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-a.w.running.done
	if err := a.w.takeIn(); !errors.Is(err, errDead) || !a.w.unsaved {
		t.Fatalf("the save ended with %v, unsaved %t", err, a.w.unsaved)
	}
	store.dead = false
	a.learn(20, records[20:]...)
	a.save()
	if c := r.head(); c.ModelSHA256 != sum(t, m) || c.Position.Next != 30 {
		t.Errorf("the head is %x at %d, want %x at 30", c.ModelSHA256, c.Position.Next, sum(t, m))
	}
}
