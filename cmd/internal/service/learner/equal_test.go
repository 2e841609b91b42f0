package learner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hamlet/algos/algotest/plant"
	"hamlet/algos/model"
	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
)

// Tests of what keeps a standby equal to the active learner, and ready to take over.

// An event that makes the standby's program panic, and not the active one's, is in the saved model.
// The standby loads that: else it would go on without the event, and without its dead letter.
func TestAStandbyWhoseProgramPanicsLoadsTheModel(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 20)
	a := r.hand("a")
	a.learn(0, records[:5]...)
	a.save()
	b := r.hand("b")
	t.Run("panic", func(t *testing.T) {
		plant.Learning(t, "e7")
		for i := range records[5:10] {
			records[5+i].Offset = int64(5 + i)
		}
		if err := b.w.handle(t.Context(), records[5:10], 10); !errors.Is(err, follow.ErrReload) {
			t.Fatalf("the standby's program panics: %v", err)
		}
		b.open()
		b.learn(5, records[5:10]...)
	})
	if b.w.model.Events() != 9 {
		t.Fatalf("the standby has learnt %d events, want 9", b.w.model.Events())
	}
	a.learn(5, records[5:10]...)
	a.save()
	b.look(1)
	b.reloads("makes this program panic")
	b.open()
	b.look(1)
	b.idle(standby)
	if sum(t, b.w.model) != sum(t, a.w.model) {
		t.Error("the standby has another model")
	}
}

// The active learner saves while a standby loads, each time. The standby begins all the same.
func TestAStandbyBeginsWhileTheActiveOneSaves(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	saves := &busyStore{Store: r.store, save: func(next int64) { a.learn(next, letter(int(next))); a.save() }, next: 1}
	b := r.hand("b", func(cfg *Config) { cfg.Store = saves })
	if saves.next > 5 {
		t.Errorf("it loaded %d times", saves.next-1)
	}
	b.look(1)
	b.idle(standby)
	if b.w.awaits <= b.w.position.Next {
		t.Errorf("it is at %d and awaits %d: the test misses its point", b.w.position.Next, b.w.awaits)
	}
}

// A busyStore is a store in which somebody saves before each look at the head.
type busyStore struct {
	Store
	save func(next int64)
	next int64
}

func (s *busyStore) Lease(ctx context.Context) (state.Lease, error) {
	if s.next < 50 {
		s.save(s.next)
		s.next++
	}
	return s.Store.Lease(ctx)
}

// To open a model again and again is not to see that nobody beats.
func TestOpeningsAreNoReadings(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	b := r.hand("b")
	for range 2 * lapsedAfter {
		b.open()
	}
	if b.l.watch.sight().lapsed {
		t.Error("the lease has lapsed, in no time")
	}
	b.look(lapsedAfter)
	if !b.l.watch.sight().lapsed {
		t.Error("the lease has not lapsed, though nobody beats")
	}
}

// A standby that is behind loads the saved model after its time, also if that moves on.
func TestAStandbyThatFallsBehind(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	b := r.hand("b")
	began := time.Now()
	for i := range int64(20) {
		a.learn(1+i, letter(int(1+i)))
		a.save()
		b.look(1)
		if err := b.w.judge(t.Context(), b.l.watch.sight().head); err != nil {
			t.Fatal(err)
		}
		if err := b.w.late(began.Add(time.Duration(i) * time.Second)); err != nil {
			if i < int64(overdueAfter/time.Second)-1 {
				t.Errorf("after %d s: %v", i, err)
			}
			return
		}
	}
	t.Error("twice its time, and it loads nothing")
}

// The pause after a lost lease outlasts the model that is loaded again.
func TestThePauseOutlastsAReload(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	if _, err := r.store.Seize(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	a.look(1)
	a.idle(standby)
	a.open()
	if left := time.Until(a.w.again); left <= 0 || left > retakeAfter {
		t.Errorf("the next attempt is in %v", left)
	}
}

// A manifest that is damaged has the model loaded again. Then a standby takes over from there.
func TestADamagedManifestStopsNobody(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 4)
	a := r.hand("a")
	a.learn(0, records[:3]...)
	a.save()
	b := r.hand("b")
	a.learn(3, records[3])
	a.save()
	b.learn(3, records[3])
	version := a.w.status.Version
	if err := r.client().HSet(t.Context(), key(fmt.Sprint("version:", version)), "manifest", "?").Err(); err != nil {
		t.Fatal(err)
	}
	a.l.release()
	b.look(1)
	for range 5 {
		err := b.turn()
		if errors.Is(err, follow.ErrReload) {
			b.open()
		} else if err != nil {
			t.Fatal(err)
		}
		if b.look(1); b.w.phase == active {
			return
		}
	}
	t.Errorf("nobody is active: %+v", b.l.watch.sight())
}

// A standby that went on from the version before a damaged one loads the model again once that one was
// saved again. No label need come: it keeps nothing that is out, and would not step back.
func TestADamagedVersionThatIsSavedAgain(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 4)
	a := r.hand("a")
	a.learn(0, records[:3]...)
	a.save()
	a.learn(3, records[3], letter(4))
	a.save()
	m, version, err := r.store.Manifest(t.Context(), state.Head)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]string{}
	for _, chunk := range m.Chunks {
		name := fmt.Sprintf("chunk:%x", chunk)
		if whole[name], err = r.client().Get(t.Context(), key(name)).Result(); err != nil {
			t.Fatal(err)
		}
		r.set(name, "damaged")
	}
	b := r.hand("b")
	b.learn(3, records[3], letter(4))
	looks := func() {
		b.w.looks = time.Now()
		b.look(1)
	}
	looks()
	b.idle(standby)
	if b.w.backlog.len() != 1 || !b.w.looks.After(time.Now()) {
		t.Fatalf("it keeps %d, and looks again at %v", b.w.backlog.len(), b.w.looks)
	}
	for name, bytes := range whole { // as a store in files does at the next save
		r.set(name, bytes)
	}
	looks()
	b.reloads("no longer damaged")
	b.open()
	b.look(1)
	b.idle(standby)
	if b.w.backlog.len() != 0 || b.w.status.Version != version || b.w.backTo != 0 {
		t.Errorf("it keeps %d, follows version %d, and steps back to %d", b.w.backlog.len(), b.w.status.Version, b.w.backTo)
	}
}

// What another learner has saved does not count as unsaved.
func TestAStandbysLagIsThatOfTheModel(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	b := r.hand("b")
	a.learn(0, letter(0))
	a.save()
	b.look(1)
	b.reloads("another learner")
	b.open()
	a.learn(1, letter(1))
	b.learn(1, letter(1))
	b.w.unsavedSince = time.Now().Add(-time.Hour)
	a.save()
	b.look(1)
	b.idle(standby)
	if b.w.unsaved || !b.w.unsavedSince.IsZero() {
		t.Errorf("unsaved is %v since %v", b.w.unsaved, b.w.unsavedSince)
	}
}

// An active learner whose lease stands, and which cannot save for what is saved, loads that.
func TestAnActiveLearnerBehindTheSavedModel(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	if _, err := a.w.l.cfg.Store.Save(t.Context(), &state.Checkpoint{Schema: Schema, Numerics: a.w.model.Numerics(), Epoch: a.w.lease.Epoch,
		Writer: a.w.lease.Writer, Position: state.Position{Next: 9}, Model: []byte("?")}); err != nil {
		t.Fatal(err)
	}
	if err := a.w.lost(t.Context(), state.ErrStale); !errors.Is(err, follow.ErrReload) {
		t.Errorf("got %v, want a reload", err)
	}
}

// A standby with another configuration is equal to the active learner, which has not adopted it. It
// adopts once it is active.
func TestAStandbyAdoptsWhenItIsActive(t *testing.T) {
	r := newRig(t)
	records, m := texts(t, 200)
	a := r.hand("a")
	a.learn(0, records[:100]...)
	a.save()
	b := r.hand("b", func(cfg *Config) { cfg.AdoptConfig, cfg.Model.LabelTrust = true, model.TrustNone })
	a.learn(100, records[100:]...)
	b.learn(100, records[100:]...)
	if sum(t, b.w.model) != sum(t, m) {
		t.Error("as a standby it has another model than the active learner")
	}
	a.save()
	b.look(1)
	b.idle(standby)
	a.l.release()
	b.look(1)
	b.idle(active)
	b.save()
	if c := r.head(); !strings.Contains(string(c.Config), `"none"`) || c.Events != 200 || c.Writer != b.l.writer {
		t.Errorf("%s saved %d events with %s", c.Writer, c.Events, c.Config)
	}
	// A learner with the old configuration refuses the model, and b goes on.
	if err := r.try(r.config(), 200); err == nil || !strings.Contains(err.Error(), "label_trust") {
		t.Errorf("the old configuration is now the other one: got %v", err)
	}
	b.look(1)
	b.idle(active)
}
