package state

import "testing"

// A lease is the same, and holds, for nobody who differs in one thing.
func TestLeasesAreCompared(t *testing.T) {
	mine := Lease{Epoch: 3, Beats: 7, Writer: "a"}
	if !mine.Same(mine) || !mine.Holds(Lease{Epoch: 3, Beats: 1, Writer: "a"}) || mine.Free() {
		t.Error("a lease that nobody has changed is not the same")
	}
	for _, c := range []struct {
		name        string
		read        Lease
		holds, free bool
	}{
		{"another epoch", Lease{Epoch: 4, Beats: 7, Writer: "a"}, false, false},
		{"a beat", Lease{Epoch: 3, Beats: 8, Writer: "a"}, true, false},
		{"another writer", Lease{Epoch: 3, Beats: 7, Writer: "b"}, false, false},
		{"free", Lease{Epoch: 3, Beats: 0, Writer: "a"}, false, true},
		{"a save of an old program", Lease{Epoch: 3, Beats: 7, Writer: "a", Saved: true}, true, false},
	} {
		if c.read.Same(mine) || c.read.Holds(mine) != c.holds || c.read.Free() != c.free {
			t.Errorf("%s: same %v, holds %v, free %v", c.name, c.read.Same(mine), c.read.Holds(mine), c.read.Free())
		}
	}
}
