package pinning_test

import (
	"errors"
	"testing"

	"hamlet/cmd/internal/pinning"
	"hamlet/state"
)

// steps are the versions before and after, by partition.
func steps(p pinning.Plan) map[int][2]int64 {
	all := map[int][2]int64{}
	for _, s := range p.Steps() {
		from := int64(0)
		if s.From != nil {
			from = s.From.Version
		}
		all[s.Partition] = [2]int64{from, s.To.Version}
	}
	return all
}

// A plan shows what changes, changes nothing before Do, and is refused where a version has gone.
func TestPlan(t *testing.T) {
	r := newRig(t)
	none := &pinning.NoneError{}
	if _, err := pinning.Read(t.Context(), r.store, "default"); !errors.As(err, &none) {
		t.Errorf("without a model: %v", err)
	}
	for i := range 3 {
		r.save(0, 10*i)
	}
	read := func() pinning.Kept {
		t.Helper()
		k, err := pinning.Read(t.Context(), r.store, "default")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	same := func(what string, got map[int][2]int64, want [2]int64) {
		t.Helper()
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	own := 0
	k := read()
	if k.Partitions[0].Versions[0].Bytes == 0 {
		t.Error("a version has no size")
	}
	plan, err := k.Pin(1, &own, false)
	if err != nil {
		t.Fatal(err)
	}
	same("pin", steps(plan), [2]int64{3, 1})
	if again := read(); again.Partitions[0].Pinned != 0 {
		t.Error("a plan has pinned")
	}
	if err := plan.Do(t.Context(), r.store); err != nil {
		t.Fatal(err)
	}
	k = read()
	unpin := k.Unpin()
	same("unpin", steps(unpin), [2]int64{1, 3})
	if other, err := k.Pin(1, &own, false); err != nil || !other.Equal(&plan) || other.Equal(&unpin) {
		t.Errorf("equal plans are not, %v", err)
	}
	if err := unpin.Do(t.Context(), r.store); err != nil {
		t.Fatal(err)
	}
	k = read()
	if k.Partitions[0].Pinned != 0 || k.Partitions[0].Served != 3 {
		t.Errorf("after unpin: %+v", k.Partitions[0])
	}
	back, err := k.Rollback()
	if err != nil {
		t.Fatal(err)
	}
	same("rollback", steps(back), [2]int64{3, 2})
	for range 6 {
		r.save(0, 60)
	}
	if err := back.Do(t.Context(), r.store); !errors.Is(err, state.ErrNone) {
		t.Errorf("pin what has gone: %v", err)
	}
}
