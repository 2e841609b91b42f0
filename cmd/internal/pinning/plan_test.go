package pinning_test

import (
	"errors"
	"testing"

	"hamlet/cmd/internal/pinning"
	"hamlet/state"
)

// A plan shows what changes, changes nothing before Do, and is refused where a version has gone.
func TestPlan(t *testing.T) {
	r := newRig(t)
	none := &pinning.NoneError{}
	if _, err := pinning.Read(t.Context(), r.store, "default"); !errors.As(err, &none) {
		t.Errorf("without a model: %v", err)
	}
	for i := range 3 {
		r.save(10 * i)
	}
	read := func() pinning.Kept {
		t.Helper()
		k, err := pinning.Read(t.Context(), r.store, "default")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	same := func(what string, p pinning.Plan, from, to, pin int64) {
		t.Helper()
		if p.From == nil || p.From.Version != from || p.To == nil || p.To.Version != to || p.Pin != pin {
			t.Errorf("%s: %+v, want from %d to %d and the pin %d", what, p, from, to, pin)
		}
	}
	k := read()
	if k.Versions[0].Bytes == 0 {
		t.Error("a version has no size")
	}
	plan, err := k.Pin(1)
	if err != nil {
		t.Fatal(err)
	}
	same("pin", plan, 3, 1, 1)
	if again := read(); again.Pinned != 0 {
		t.Error("a plan has pinned")
	}
	if err := plan.Do(t.Context(), r.store); err != nil {
		t.Fatal(err)
	}
	unpin := read().Unpin()
	same("unpin", unpin, 1, 3, 0)
	if err := unpin.Do(t.Context(), r.store); err != nil {
		t.Fatal(err)
	}
	k = read()
	if k.Pinned != 0 || k.Served != 3 {
		t.Errorf("after unpin: %+v", k)
	}
	back, err := k.Rollback()
	if err != nil {
		t.Fatal(err)
	}
	same("rollback", back, 3, 2, 2)
	for range 6 {
		r.save(60)
	}
	if err := back.Do(t.Context(), r.store); !errors.Is(err, state.ErrNone) {
		t.Errorf("pin what has gone: %v", err)
	}
}

// A model for each partition is refused, and the error leads out.
func TestPartitionsAreRefused(t *testing.T) {
	r := newRig(t)
	r.save(0)
	r.server.SAdd("hamlet:{default}:0:partitions", "1")
	r.fails("versions", 1, "hamlet log merge --from default")
	r.fails("pin 1", 1, "hamlet log merge --from default")
	r.fails("promote other --wait 1s", 1, "hamlet log merge --from default")
	r.fails("replace --by other --wait 1s", 1, "hamlet log merge --from default")
	r.fails("show", 1, "hamlet log merge --from default")
	r.fails("list", 1, "hamlet log merge --from default")
}
