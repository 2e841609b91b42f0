package learner

import (
	"testing"
	"time"

	"hamlet/state"
)

// A step back goes to the newest version that the log still has, also where the log ends with it or
// begins with its last record.
func TestAStepBackToTheVeryEnd(t *testing.T) {
	for name, test := range map[string]struct {
		cut, first int64
		want       int64 // the position; 0: there is no such version
	}{
		"it ends with a version's last record":   {600, 0, 600},
		"it ends one record before":              {599, 0, 300},
		"it begins with a version's last record": {700, 599, 600},
		"it begins one record behind":            {700, 600, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := threeVersions(t)
			r.events.Cut(test.cut)
			r.events.Retain(test.first)
			b := r.hand("b")
			err := b.stepBack(r)
			if test.want == 0 && err == nil || test.want > 0 && (err != nil || b.w.position.Next != test.want) {
				t.Errorf("goes on from %d, and not %d; %v", b.w.position.Next, test.want, err)
			}
		})
	}
}

// A lease lapses by readings, whatever the clock says: one that was set, or stood still with its machine,
// takes no lease from a learner that lives.
func TestALeaseLapsesByReadings(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	b := r.hand("b")
	now := time.Now()
	b.l.watch.now = func() time.Time { now = now.Add(time.Hour); return now }
	for range 3 {
		b.look(lapsedAfter - 1)
		if b.l.watch.sight().lapsed {
			t.Fatal("the lease has lapsed, because hours have passed")
		}
		a.look(1) // a beat
	}
	now = now.Add(-10_000 * time.Hour)
	b.l.watch.now = func() time.Time { return now } // the clock stands still, and was set back
	b.look(lapsedAfter)
	if !b.l.watch.sight().lapsed {
		t.Error("the lease has not lapsed, because no time has passed")
	}
}

// Whose save it is is told by the writer too: a fail-over of the store can give an epoch twice.
func TestANumberIsNoLineage(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	b := r.hand("b")
	b.look(1)
	b.idle(standby)
	head := *b.l.watch.sight().head
	head.Writer, head.Next, head.Version = "another", head.Next+1, head.Version+1
	if err := b.w.judge(t.Context(), &head); err == nil {
		t.Errorf("a save of another writer in epoch %d is taken for one of %v", head.Epoch, b.w.followed)
	}
	head = *b.l.watch.sight().head
	head.Epoch++
	if err := b.w.judge(t.Context(), &head); err == nil {
		t.Errorf("a save of the same writer in epoch %d is taken for one of %v", head.Epoch, b.w.followed)
	}
	var none *state.Heading
	if err := b.w.judge(t.Context(), none); err != nil {
		t.Error(err)
	}
}
