package model_test

import (
	"errors"
	"testing"

	operate "hamlet/cmd/internal/operate/model"
	"hamlet/state"
)

// A plan shows what changes, changes nothing before Do, and is refused where a version has gone.
func TestPlan(t *testing.T) {
	r := newPins(t)
	none := &operate.NoneError{}
	if _, err := operate.Read(t.Context(), r.store, "default"); !errors.As(err, &none) {
		t.Errorf("without a model: %v", err)
	}
	for i := range 3 {
		r.save(10 * i)
	}
	read := func() operate.Kept {
		t.Helper()
		k, err := operate.Read(t.Context(), r.store, "default")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	same := func(what string, p operate.Plan, from, to, pin int64) {
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

// After a step back, versions marks those that the log has lost, and a rollback passes over them. They
// can be pinned by their number, and the way back from one is to a version that the log has.
func TestLostVersions(t *testing.T) {
	r := newPins(t)
	for i := range 4 {
		r.save(10 * i)
	}
	if err := r.store.StepBack(t.Context(), state.Lease{Epoch: r.epoch, Writer: "w"}, 2); err != nil {
		t.Fatal(err)
	}
	r.next = 2
	r.save(40) // version 5
	r.must("versions", "  lost\n", "  head, served\n")
	k, err := operate.Read(t.Context(), r.store, "default")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range k.Versions {
		if want := v.Version == 3 || v.Version == 4; v.Lost != want {
			t.Errorf("version %d: lost is %v", v.Version, v.Lost)
		}
	}
	r.must("versions --json", `"pinned":false,"lost":true}`)
	r.must("rollback", "answers come from version 2")
	r.must("rollback", "answers come from version 1")
	r.fails("rollback", 1, "no version before the served one, 1, is kept: kept are 5, 2, 1, 3 (lost), 4 (lost)")
	r.served(1, 1)
	r.must("pin 4", "answers come from version 4")
	r.must("versions", "  served, pinned, lost\n")
	r.must("show", "5, 2, 1\n", "3, 4, which learnt what the log has lost\n")
	r.must("rollback", "answers come from version 2")
	r.must("unpin", "answers come from version 5")
}

// A model for each partition is refused, and the error leads out.
func TestPartitionsAreRefused(t *testing.T) {
	r := newPins(t)
	r.save(0)
	r.server.SAdd("hamlet:{default}:0:partitions", "1")
	r.fails("versions", 1, "hamlet log merge --from default")
	r.fails("pin 1", 1, "hamlet log merge --from default")
	r.fails("promote other --wait 1s", 1, "hamlet log merge --from default")
	r.fails("show", 1, "hamlet log merge --from default")
	r.fails("list default", 1, "hamlet log merge --from default")
}
