package scorer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// versionKeys returns the keys of a partition's versions.
func versionKeys(r *miniredis.Miniredis, partition int) (keys []string) {
	for _, key := range r.Keys() {
		if strings.HasPrefix(key, fmt.Sprintf("hamlet:{default}:%d:version:", partition)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// A partition in a newer layout that this scorer cannot read delays no other partition.
func TestOnePartitionHoldsUpNoOther(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	teachers := []*teacher{newTeacher(t, store, 0), newTeacher(t, store, 1)}
	for _, teacher := range teachers {
		teacher.learn(10)
		teacher.save()
	}
	l, log := newTestLoader(t, r)
	l.poll(patience(t))

	whole := map[string]string{}
	teachers[0].learn(10)
	teachers[0].save()
	for _, key := range versionKeys(r, 0) {
		whole[key] = r.HGet(key, "manifest")
		manifest := []byte(whole[key])
		binary.BigEndian.PutUint32(manifest[8:], 1000) // the version of the layout
		r.HSet(key, "manifest", string(manifest))
	}
	for i := range 5 {
		teachers[1].learn(10)
		teachers[1].save()
		l.poll(patience(t))
		if got, want := l.current.Load().info.Events, uint64(10+10*(i+2)); got != want || !l.stale.Load() {
			t.Errorf("after %d saves of partition 1: %d events are served, stale %v; want %d, true", i+1, got, l.stale.Load(), want)
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
	if got := l.current.Load().info.Events; got != 20+60 || l.stale.Load() {
		t.Errorf("after the mend: %d events are served, stale %v; want 80, false", got, l.stale.Load())
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
