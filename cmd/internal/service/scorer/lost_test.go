package scorer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"hamlet/state/redis"
)

// A Redis that lost its data between polls may reuse a number. The new version is
// served.
func TestAVersionNumberUsedAgain(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	teacher := newTeacher(t, store)
	teacher.learn(10)
	teacher.save()
	l, _ := newTestLoader(t, r)
	l.poll(patience(t))

	r.FlushAll()
	again := newTeacher(t, store)
	again.learn(20)
	want := again.save() // version 1, like the first
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != want || l.stale.Load() {
		t.Errorf("the model %s is served, stale %v; want %s, false", v.Model.SHA256, l.stale.Load(), want)
	}
}

// After a loss, a relearnt model is served once it is as far in the log as the served
// one.
func TestLostStateIsServedUntilItIsLearntAgain(t *testing.T) {
	for _, seen := range []bool{true, false} {
		r := miniredis.RunT(t)
		store := openStore(t, r)
		teacher := newTeacher(t, store)
		for range 5 {
			teacher.learn(6)
			teacher.save()
		}
		good := teacher.last
		l, log := newTestLoader(t, r)
		l.poll(patience(t))

		r.FlushAll()
		if seen {
			l.poll(patience(t))
		}
		anew := newTeacher(t, store)
		for anew.position.Next < 28 { // in more saves than before
			anew.learn(4)
			anew.save()
			l.poll(patience(t))
			if v := predicted(t, l); v.Model.SHA256 != good || !l.stale.Load() {
				t.Fatalf("wiped while it looked %v: with %d of 30 events learnt anew, the model %s is served, stale %v; want %s, true",
					seen, anew.position.Next, v.Model.SHA256, l.stale.Load(), good)
			}
		}
		if n := strings.Count(log.String(), "is not as far in the log"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, log)
		}
		fresh, _ := newTestLoader(t, r)
		fresh.poll(patience(t))
		if v := predicted(t, fresh); v.Model.SHA256 != anew.last || fresh.stale.Load() {
			t.Errorf("a scorer started now serves %s, stale %v; want %s, false", v.Model.SHA256, fresh.stale.Load(), anew.last)
		}
		anew.learn(2)
		want := anew.save()
		l.poll(patience(t))
		if v := predicted(t, l); v.Model.SHA256 != want || l.stale.Load() {
			t.Errorf("when all is learnt anew the model %s is served, stale %v; want %s, false", v.Model.SHA256, l.stale.Load(), want)
		}
		// From here on it is as before: a pin goes back.
		versions, err := store.Versions(patience(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Pin(patience(t), versions[1].Version); err != nil {
			t.Fatal(err)
		}
		l.poll(patience(t))
		if v := predicted(t, l); v.Model.Positions[0] != versions[1].Position.Next || l.stale.Load() {
			t.Errorf("pinned to offset %d, %d is served, stale %v", versions[1].Position.Next, v.Model.Positions[0], l.stale.Load())
		}
	}
}

// If the learner restores a lost model between polls, this is a new history. Pins in it
// count at once.
func TestPinAfterALossThatNobodySaw(t *testing.T) {
	for _, damaged := range []bool{false, true} { // what was named before the loss
		r := miniredis.RunT(t)
		store := openStore(t, r)
		teacher := newTeacher(t, store)
		for range 10 {
			teacher.learn(6)
			teacher.save()
		}
		if damaged {
			for version := 1; version <= 10; version++ {
				r.HSet(fmt.Sprint("hamlet:{default}:0:version:", version), "manifest", "?")
			}
		}
		l, _ := newTestLoader(t, r)
		l.poll(patience(t))

		r.FlushAll()
		var err error
		lease, err := store.Seize(patience(t), "w")
		if err != nil {
			t.Fatal(err)
		}
		teacher.epoch = lease.Epoch
		for range 3 {
			teacher.learn(6)
			want := teacher.save()
			l.poll(patience(t))
			if v := predicted(t, l); v.Model.SHA256 != want || l.stale.Load() {
				t.Fatalf("damaged before %v: the model %s is served, stale %v; want %s, false", damaged, v.Model.SHA256, l.stale.Load(), want)
			}
		}
		if err := store.Pin(patience(t), 2); err != nil {
			t.Fatal(err)
		}
		l.poll(patience(t))
		if v := predicted(t, l); v.Model.Positions[0] != 72 || l.stale.Load() {
			t.Errorf("damaged before %v: pinned to offset 72, %d is served, stale %v", damaged, v.Model.Positions[0], l.stale.Load())
		}
	}
}

// Pins that go back and forth are no new history. After them a loss is recognised by
// the largest number ever followed.
func TestALossBehindPins(t *testing.T) {
	r := miniredis.RunT(t)
	store, err := redis.New(redis.Config{Addr: r.Addr(), Keep: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	teacher := newTeacher(t, store)
	for range 10 {
		teacher.learn(6)
		teacher.save()
	}
	l, _ := newTestLoader(t, r)
	l.poll(patience(t))
	for _, version := range []int64{2, 5} {
		if err := store.Pin(patience(t), version); err != nil {
			t.Fatal(err)
		}
		l.poll(patience(t))
		if v := predicted(t, l); v.Model.Positions[0] != 6*version || l.stale.Load() {
			t.Fatalf("pinned to offset %d, %d is served, stale %v", 6*version, v.Model.Positions[0], l.stale.Load())
		}
	}

	r.FlushAll()
	anew := newTeacher(t, store)
	for range 7 { // more versions than the pin's number, fewer than were followed
		anew.learn(4)
		anew.save()
	}
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.Positions[0] != 30 || !l.stale.Load() {
		t.Errorf("with 28 events learnt anew offset %d is served, stale %v; want 30, true", v.Model.Positions[0], l.stale.Load())
	}
}
