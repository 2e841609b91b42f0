package scorer

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// A newer layout that this scorer cannot read is said once, and the model before is served.
func TestANewerLayoutIsNotServed(t *testing.T) {
	r := miniredis.RunT(t)
	teacher := newTeacher(t, openStore(t, r), 0)
	teacher.learn(10)
	teacher.save()
	l, log := newTestLoader(t, r)
	l.poll(patience(t))

	whole := map[string]string{}
	teacher.learn(10)
	teacher.save()
	for _, key := range r.Keys() {
		if strings.HasPrefix(key, "hamlet:{default}:0:version:") {
			whole[key] = r.HGet(key, "manifest")
			manifest := []byte(whole[key])
			binary.BigEndian.PutUint32(manifest[8:], 1000) // the version of the layout
			r.HSet(key, "manifest", string(manifest))
		}
	}
	for range 5 {
		l.poll(patience(t))
		if got := l.current.Load().info.Events; got != 10 || !l.stale.Load() {
			t.Errorf("%d events are served, stale %v; want 10, true", got, l.stale.Load())
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, log)
	}

	// A checkpoint that is repaired in place is served without another save.
	for key, manifest := range whole {
		r.HSet(key, "manifest", manifest)
	}
	l.poll(patience(t))
	if got := l.current.Load().info.Events; got != 20 || l.stale.Load() {
		t.Errorf("after the mend: %d events are served, stale %v; want 20, false", got, l.stale.Load())
	}
}

// An older version in place of a damaged one is called stale.
func TestAnOlderVersionIsStale(t *testing.T) {
	r := miniredis.RunT(t)
	teacher := newTeacher(t, openStore(t, r), 0)
	teacher.learn(10)
	first := teacher.save()
	older := map[string]bool{}
	for _, key := range r.Keys() {
		older[key] = true
	}
	teacher.learn(10)
	teacher.save()
	for _, key := range r.Keys() {
		if strings.Contains(key, ":chunk:") && !older[key] {
			if err := r.Set(key, "garbage"); err != nil {
				t.Fatal(err)
			}
		}
	}
	l, log := newTestLoader(t, r)
	for range 3 {
		l.poll(patience(t))
		if v := predicted(t, l); v.Model.SHA256 != first || !l.stale.Load() {
			t.Fatalf("the model %s is served, stale %v; want the first, %s, true", v.Model.SHA256, l.stale.Load(), first)
		}
	}
	if n := strings.Count(log.String(), "version 2 is not whole; version 1 is served"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, log)
	}
	teacher.learn(10)
	third := teacher.save()
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != third || l.stale.Load() {
		t.Errorf("after a whole save the model %s is served, stale %v; want %s, false", v.Model.SHA256, l.stale.Load(), third)
	}
}
