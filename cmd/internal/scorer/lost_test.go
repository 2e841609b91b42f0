package scorer

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// A Redis that lost its data while nobody looked may give a number again: what
// it names now is served.
func TestAVersionNumberUsedAgain(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	teacher := newTeacher(t, store, 0)
	teacher.learn(10)
	teacher.save()
	l, _ := newTestLoader(t, r)
	l.look(patience(t))

	r.FlushAll()
	again := newTeacher(t, store, 0)
	again.learn(20)
	want := again.save() // version 1, like the first
	l.look(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != want || l.stale.Load() {
		t.Errorf("the model %s is served, stale %v; want %s, false", v.Model.SHA256, l.stale.Load(), want)
	}
}

// A model that is learnt anew, because the state was lost, is served when it has
// come as far in the log as the one that is served.
func TestLostStateIsServedUntilItIsLearntAnew(t *testing.T) {
	for _, seen := range []bool{true, false} {
		r := miniredis.RunT(t)
		store := openStore(t, r)
		teacher := newTeacher(t, store, 0)
		for range 5 {
			teacher.learn(6)
			teacher.save()
		}
		good := teacher.last
		l, log := newTestLoader(t, r)
		l.look(patience(t))

		r.FlushAll()
		if seen {
			l.look(patience(t))
		}
		anew := newTeacher(t, store, 0)
		for anew.position.Next < 28 { // in more saves than before
			anew.learn(4)
			anew.save()
			l.look(patience(t))
			if v := predicted(t, l); v.Model.SHA256 != good || !l.stale.Load() {
				t.Fatalf("wiped while it looked %v: with %d of 30 events learnt anew, the model %s is served, stale %v; want %s, true",
					seen, anew.position.Next, v.Model.SHA256, l.stale.Load(), good)
			}
		}
		if n := strings.Count(log.String(), "is not as far in the log"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, log)
		}
		fresh, _ := newTestLoader(t, r)
		fresh.look(patience(t))
		if v := predicted(t, fresh); v.Model.SHA256 != anew.last || fresh.stale.Load() {
			t.Errorf("a scorer started now serves %s, stale %v; want %s, false", v.Model.SHA256, fresh.stale.Load(), anew.last)
		}
		anew.learn(2)
		want := anew.save()
		l.look(patience(t))
		if v := predicted(t, l); v.Model.SHA256 != want || l.stale.Load() {
			t.Errorf("when all is learnt anew the model %s is served, stale %v; want %s, false", v.Model.SHA256, l.stale.Load(), want)
		}
		// From here on it is as before: a pin goes back.
		versions, err := store.Versions(patience(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Pin(patience(t), 0, versions[1].Version); err != nil {
			t.Fatal(err)
		}
		l.look(patience(t))
		if v := predicted(t, l); v.Model.Positions[0] != versions[1].Next || l.stale.Load() {
			t.Errorf("pinned to offset %d, %d is served, stale %v", versions[1].Next, v.Model.Positions[0], l.stale.Load())
		}
	}
}
