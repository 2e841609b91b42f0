package scorer

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// A checkpoint in a newer layout that this scorer cannot read is called stale, and said once. If
// it is repaired in place, it is served without another save.
func TestANewerLayoutIsStale(t *testing.T) {
	r := miniredis.RunT(t)
	teacher := newTeacher(t, openStore(t, r))
	teacher.learn(10)
	first := teacher.save()
	l, log := newTestLoader(t, r)
	l.poll(patience(t))

	teacher.learn(10)
	second := teacher.save()
	whole := map[string]string{}
	for _, key := range r.Keys() {
		if !strings.Contains(key, ":version:") {
			continue
		}
		whole[key] = r.HGet(key, "manifest")
		manifest := []byte(whole[key])
		binary.BigEndian.PutUint32(manifest[8:], 1000) // the version of the layout
		r.HSet(key, "manifest", string(manifest))
	}
	for range 5 {
		l.poll(patience(t))
		if v := predicted(t, l); v.Model.SHA256 != first || !l.stale.Load() {
			t.Errorf("the model %s is served, stale %v; want %s, true", v.Model.SHA256, l.stale.Load(), first)
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, log)
	}
	for key, manifest := range whole {
		r.HSet(key, "manifest", manifest)
	}
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != second || l.stale.Load() {
		t.Errorf("after the mend: %s is served, stale %v; want %s, false", v.Model.SHA256, l.stale.Load(), second)
	}
}

// An older version in place of a damaged one is called stale.
func TestAnOlderVersionIsStale(t *testing.T) {
	r := miniredis.RunT(t)
	teacher := newTeacher(t, openStore(t, r))
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
