package scorer

import (
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
