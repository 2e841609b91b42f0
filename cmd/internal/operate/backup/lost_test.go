package backup

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"hamlet/state"
)

// stepBack moves a model back to an older version, as a learner does whose log has lost records.
func (r *rig) stepBack(name string, to int64) {
	r.t.Helper()
	store := r.store(name)
	mine, err := store.Seize(r.t.Context(), "learner")
	if err == nil {
		err = store.StepBack(r.t.Context(), mine, to)
	}
	if err == nil {
		_, err = store.Release(r.t.Context(), mine)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// After a step back a backup has the versions that the log still has, and can be restored. It says
// which others it leaves out, and that one of them was pinned.
func TestLostVersionsAreLeftOut(t *testing.T) {
	r := newRig(t)
	for _, n := range []int{10, 20, 30, 40} {
		r.save("default", n)
	}
	if err := r.store("default").Pin(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	r.backup("--all-versions") // the next ones must not take the lost versions from this backup
	r.stepBack("default", 2)
	r.save("default", 25) // version 5
	want := r.sha256("default", state.Head)
	for _, c := range []struct {
		flag     []string
		lost     []int64
		versions int
	}{{nil, []int64{4}, 1}, {[]string{"--all-versions"}, []int64{3, 4}, 3}} {
		result := r.backup(c.flag...)
		one := result.Models[0]
		if result.Versions != c.versions || one.Version.Version != 5 || !slices.Equal(one.Lost, c.lost) || one.LostPin != 4 {
			t.Errorf("%v: %d versions up to %d, lost %v, of which pinned %d",
				c.flag, result.Versions, one.Version.Version, one.Lost, one.LostPin)
		}
		if out, err := r.run("verify", r.dir); err != nil {
			t.Errorf("%v: %v\n%s", c.flag, err, out)
		}
		source := r.server
		r.wipe()
		if out, err := r.restore(); err != nil {
			t.Errorf("%v: %v\n%s", c.flag, err, out)
		} else if r.sha256("default", state.Head) != want || r.sha256("default", state.Served) != want {
			t.Errorf("%v: another model is restored", c.flag)
		}
		if kept, err := r.store("default").Versions(t.Context()); err != nil || len(kept) != c.versions {
			t.Errorf("%v: %d versions are restored, %v", c.flag, len(kept), err)
		}
		r.server = source
	}
	out, err := r.run("backup", r.dir, "--redis", r.server.Addr(), "--all-versions", "--keep", "1")
	if err != nil {
		t.Error(err)
	}
	for _, text := range []string{"version 3 is left out: the log has lost", "version 4 is left out", "version 4 is pinned: after"} {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in\n%s", text, out)
		}
	}
}

// An index that no restore would read gets no name, so that it does not stop the next prune.
func TestAnIndexIsReadBeforeItIsNamed(t *testing.T) {
	r := newRig(t)
	r.save("default", 10)
	r.save("default", 20)
	r.backup("--all-versions")
	f := folder{r.dir}
	x, err := f.choose("")
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(x.Models[0].Partitions[0].Versions)
	if err := f.finish(x); !errors.Is(err, state.ErrCorrupt) {
		t.Errorf("an index whose versions descend: %v", err)
	}
	var all Verified
	out, err := r.run("verify", r.dir, "--json")
	if err := errors.Join(err, json.Unmarshal([]byte(out), &all)); err != nil || len(all.Backups) != 1 || all.Unnamed != 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
