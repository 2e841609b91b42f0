package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"hamlet/state"
)

// Each Seize returns a larger epoch, from 1, for any client.
func epochs(t *testing.T, open func() state.Store) {
	a, b := open(), open()
	last := int64(0)
	for _, s := range []state.Store{a, b, b, a} {
		epoch := take(t, s)
		if epoch <= last {
			t.Errorf("epoch %d after %d", epoch, last)
		}
		last = epoch
	}
}

// Only the last to take the model may save. For the others the error is
// state.ErrStale, not state.ErrLost or state.ErrTransient, and nothing changes.
func oneWriter(t *testing.T, open func() state.Store) {
	old, young := open(), open()
	before := take(t, old)
	first := checkpoint(before, 5)
	version := save(t, old, first)
	epoch := take(t, young)
	_, err := old.Save(t.Context(), checkpoint(before, 7))
	if !errors.Is(err, state.ErrStale) || errors.Is(err, state.ErrLost) || errors.Is(err, state.ErrTransient) {
		t.Errorf("the writer before: error %v, want state.ErrStale alone", err)
	}
	wantLoaded(t, young, state.Head, version, first)
	second := checkpoint(epoch, 6)
	wantLoaded(t, young, state.Head, save(t, young, second), second)
}

// Of several that acquire the lease that they saw, one has it. Who seizes it has it from whoever
// had it. Epochs grow, and the holder before is stale.
func leases(t *testing.T, open func() state.Store) {
	s := open()
	seen, err := s.Lease(t.Context())
	if err != nil || seen != (state.Lease{}) || !seen.Free() {
		t.Fatalf("the lease of nobody is %+v, %v; want it free", seen, err)
	}
	var won, lost sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		writer := fmt.Sprint("w", i)
		client := open()
		all.Go(func() {
			l, err := client.Acquire(t.Context(), seen, writer)
			switch {
			case err == nil && l.Writer == writer && l.Epoch == 1 && l.Beats == 1:
				won.Store(writer, l)
			case errors.Is(err, state.ErrStale) && !errors.Is(err, state.ErrLost):
				lost.Store(writer, err)
			default:
				t.Errorf("%s: %+v, %v", writer, l, err)
			}
		})
	}
	all.Wait()
	var holders []state.Lease
	won.Range(func(_, l any) bool { holders = append(holders, l.(state.Lease)); return true })
	if len(holders) != 1 {
		t.Fatalf("%d have the lease: %+v", len(holders), holders)
	}
	mine := holders[0]
	if l, err := open().Lease(t.Context()); err != nil || l != mine || !l.Holds(mine) {
		t.Errorf("the lease is %+v, %v; want %+v", l, err, mine)
	}
	other, err := open().Seize(t.Context(), "operator")
	if err != nil || other.Epoch <= mine.Epoch || other.Writer != "operator" {
		t.Fatalf("seized %+v, %v", other, err)
	}
	for name, do := range map[string]func() error{
		"beat":    func() error { _, err := s.Beat(t.Context(), mine); return err },
		"release": func() error { _, err := s.Release(t.Context(), mine); return err },
		"acquire": func() error { _, err := s.Acquire(t.Context(), mine, "again"); return err },
		"save":    func() error { _, err := s.Save(t.Context(), checkpoint(mine.Epoch, 5)); return err },
	} {
		if err := do(); !errors.Is(err, state.ErrStale) || errors.Is(err, state.ErrLost) ||
			errors.Is(err, state.ErrTransient) {
			t.Errorf("%s: error %v, want state.ErrStale alone", name, err)
		}
	}
	for _, writer := range []string{"", "two words"} {
		if _, err := s.Seize(t.Context(), writer); err == nil {
			t.Errorf("%q is a writer's word", writer)
		}
	}
}

// A beat changes the lease, a look does not. A lease that is released is free, also if a beat comes
// after that, and whoever sees it may acquire it.
func beats(t *testing.T, open func() state.Store) {
	s, watcher := open(), open()
	look := func() state.Lease {
		t.Helper()
		l, err := watcher.Lease(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if h, err := watcher.Holder(t.Context()); err != nil || h != l {
			t.Errorf("who only reads sees the lease as %+v, %v; it is %+v", h, err, l)
		}
		return l
	}
	mine, err := s.Acquire(t.Context(), look(), "a")
	if err != nil {
		t.Fatal(err)
	}
	before := look()
	if !look().Same(before) {
		t.Error("a look has changed the lease")
	}
	for range 3 {
		if mine, err = s.Beat(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
	}
	if l := look(); l.Same(before) || !l.Holds(mine) || l.Beats != before.Beats+3 {
		t.Errorf("after three beats %+v, before %+v", l, before)
	}
	if l, err := watcher.Acquire(t.Context(), before, "b"); !errors.Is(err, state.ErrStale) {
		t.Fatalf("acquired as it was before three beats: %+v, %v; want state.ErrStale", l, err)
	}
	if _, err := s.Release(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	free := look()
	if !free.Free() || free.Holds(mine) || free.Epoch != mine.Epoch {
		t.Errorf("released, it is %+v", free)
	}
	if l, err := s.Beat(t.Context(), mine); !errors.Is(err, state.ErrStale) || errors.Is(err, state.ErrLost) {
		t.Errorf("a beat that comes late: %+v, %v; want state.ErrStale alone", l, err)
	}
	if l, err := watcher.Acquire(t.Context(), free, "b"); err != nil || l.Epoch <= mine.Epoch {
		t.Errorf("acquired %+v, %v", l, err)
	}
}

// What is loaded says who saved it, and so does its heading. A writer that does not have the
// lease of its epoch saves nothing.
func writers(t *testing.T, open func() state.Store) {
	s := open()
	mine, err := s.Seize(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	c := checkpoint(mine.Epoch, 5)
	c.Writer = "a"
	wantLoaded(t, open(), state.Head, save(t, s, c), c)
	h, err := open().Heading(t.Context(), state.Head)
	if err != nil || h.Epoch != mine.Epoch || h.Writer != "a" {
		t.Errorf("heading %+v, %v; want epoch %d of a", h, err, mine.Epoch)
	}
	other := checkpoint(mine.Epoch, 6)
	other.Writer = "b"
	if _, err := s.Save(t.Context(), other); !errors.Is(err, state.ErrStale) || errors.Is(err, state.ErrLost) {
		t.Errorf("another writer with the same epoch: error %v, want state.ErrStale alone", err)
	}
	foreign := state.Lease{Epoch: mine.Epoch, Beats: mine.Beats, Writer: "b"}
	for name, do := range map[string]func() error{
		"beats":    func() error { _, err := s.Beat(t.Context(), foreign); return err },
		"releases": func() error { _, err := s.Release(t.Context(), foreign); return err },
	} {
		if err := do(); !errors.Is(err, state.ErrStale) {
			t.Errorf("another writer with the same epoch %s: error %v, want state.ErrStale", name, err)
		}
	}
	if l, err := s.Lease(t.Context()); err != nil || !l.Holds(mine) {
		t.Errorf("the lease is %+v, %v; want that of a", l, err)
	}
}
