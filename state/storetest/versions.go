package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hamlet/state"
)

// A checkpoint before the head's offset is state.ErrStale, under a newer epoch too,
// and nothing changes. One at the same offset may be saved.
func noWayBack(t *testing.T, open func() state.Store) {
	s := open()
	epoch := take(t, s)
	c := checkpoint(epoch, 10) // as a decimal string it is before 9
	version := save(t, s, c)
	for range 2 {
		_, err := s.Save(t.Context(), checkpoint(epoch, 9))
		if !errors.Is(err, state.ErrStale) || errors.Is(err, state.ErrLost) {
			t.Errorf("error %v, want state.ErrStale alone", err)
		}
		wantLoaded(t, s, state.Head, version, c)
		epoch = take(t, s)
	}
	again := checkpoint(epoch, 10)
	again.Model = []byte("another")
	wantLoaded(t, s, state.Head, save(t, s, again), again)
}

// Saving the head again returns its version. A writer that got no reply does that.
func repeated(t *testing.T, open func() state.Store) {
	s := open()
	c := checkpoint(take(t, s), 5)
	version := save(t, s, c)
	later := *c
	later.Saved = noon.Add(time.Minute)
	if got := save(t, s, &later); got != version {
		t.Errorf("saved again as version %d, want %d", got, version)
	}
	wantLoaded(t, s, state.Head, version, c)

	// Also where the save deletes a version, which was kept as long as it was pinned. It is the second one: the
	// first one of a day is kept in any case.
	later.Model = []byte("a second model")
	if err := s.Pin(t.Context(), save(t, s, &later)); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		later.Model = fmt.Appendf(nil, "model %d", i)
		version = save(t, s, &later)
	}
	if err := s.Unpin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := save(t, s, &later); got != version {
		t.Errorf("saved again, while an old version is deleted, as version %d, want %d", got, version)
	}
	wantLoaded(t, s, state.Head, version, &later)
}

// A save of the head's bytes is no other version, under another epoch or at another position: it
// takes the head's place, under its number. Only the position may not go back.
func otherBytes(t *testing.T, open func() state.Store) {
	s := open()
	first := save(t, s, checkpoint(take(t, s), 5))
	before, err := s.Heading(t.Context(), state.Served)
	if err != nil {
		t.Fatal(err)
	}
	identities := map[string]bool{before.Identity: true}
	for _, next := range []int64{5, 5, 7} {
		c := checkpoint(take(t, s), 5)
		c.Position.Next, c.Saved = next, c.Saved.Add(time.Duration(c.Epoch)*time.Hour)
		if got := save(t, s, c); got != first {
			t.Errorf("epoch %d at %d made version %d, want %d", c.Epoch, next, got, first)
		}
		wantLoaded(t, open(), state.Head, first, c)
		wantLoaded(t, open(), state.Served, first, c)
		h, err := s.Heading(t.Context(), state.Served)
		if err != nil || identities[h.Identity] || h.Model != before.Model || h.Model == "" || h.Epoch != c.Epoch {
			t.Errorf("after %+v the heading is %+v, %v; want another identity and the same model", before, h, err)
		}
		identities[h.Identity] = true
	}
	back := checkpoint(take(t, s), 5)
	if _, err := s.Save(t.Context(), back); !errors.Is(err, state.ErrStale) {
		t.Errorf("the same bytes at an offset before: %v, want state.ErrStale", err)
	}
	other := checkpoint(back.Epoch, 8)
	if got := save(t, s, other); got == first {
		t.Errorf("other bytes made version %d again", got)
	}
	if h, err := s.Heading(t.Context(), state.Head); err != nil || h.Model == before.Model {
		t.Errorf("other bytes have the heading %+v, %v", h, err)
	}
}

// By default a store keeps the last three versions and the first of each of thirty days. Quiet
// restarts, and a save by a clock that is years ahead, leave them alone.
func kept(t *testing.T, open func() state.Store) {
	s := open()
	epoch := take(t, s)
	small := func(next int64, saved time.Time) *state.Checkpoint {
		c := checkpoint(epoch, next)
		c.Model, c.Saved = fmt.Appendf(nil, "the model after %d", next), saved
		return c
	}
	var versions []int64
	for day := range 28 {
		versions = append(versions, save(t, s, small(int64(day+1), noon.AddDate(0, 0, day))))
	}
	save(t, s, small(29, noon.AddDate(5, 0, 0)))
	for range 3 {
		epoch = take(t, s)
		save(t, s, small(29, noon.AddDate(0, 0, 28)))
	}
	left := 0
	for i, version := range versions {
		if err := s.Pin(t.Context(), version); err != nil {
			t.Errorf("the version of day %d: %v", i, err)
		} else {
			left++
		}
	}
	t.Logf("of 28 versions %d are left after a save five years ahead and three restarts", left)
}

// The head goes back to an older version for the writer whose log has lost the rest, and served
// with it, unless an operator pinned a version. The next save goes on from there, under a new
// number. Nobody else steps back, nor to what is not kept or was lost before.
func stepBack(t *testing.T, open func() state.Store) {
	s := open()
	mine, err := s.Seize(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	at := func(next int64) *state.Checkpoint {
		c := checkpoint(mine.Epoch, next)
		c.Writer = mine.Writer
		return c
	}
	five, six, seven := at(5), at(6), at(7)
	one, two, three := save(t, s, five), save(t, s, six), save(t, s, seven)

	stranger := mine
	stranger.Writer = "b"
	for what, c := range map[string]struct {
		lease state.Lease
		to    int64
		want  error
	}{
		"another writer":        {stranger, one, state.ErrStale},
		"an epoch before":       {state.Lease{Epoch: mine.Epoch - 1, Writer: "a"}, one, state.ErrStale},
		"an epoch that is lost": {state.Lease{Epoch: mine.Epoch + 1, Writer: "a"}, one, state.ErrLost},
		"a version never saved": {mine, three + 9, state.ErrNone},
	} {
		err := s.StepBack(t.Context(), c.lease, c.to)
		if !errors.Is(err, c.want) || c.want == state.ErrStale && errors.Is(err, state.ErrLost) ||
			errors.Is(err, state.ErrTransient) {
			t.Errorf("%s: error %v, want %v", what, err, c.want)
		}
		wantLoaded(t, s, state.Head, three, seven)
	}

	for range 2 { // the first reply may be lost
		if err := s.StepBack(t.Context(), mine, two); err != nil {
			t.Fatal(err)
		}
		wantLoaded(t, open(), state.Head, two, six)
		wantLoaded(t, open(), state.Served, two, six)
	}
	if err := s.StepBack(t.Context(), mine, three); !errors.Is(err, state.ErrNone) {
		t.Errorf("forward to a lost version: %v, want state.ErrNone", err)
	}
	again := at(6) // the log has other records now
	again.Position.Chain, again.Model = [32]byte{99}, []byte("another")
	four := save(t, s, again)
	if four <= three {
		t.Errorf("version %d after %d", four, three)
	}
	wantLoaded(t, open(), state.Served, four, again)

	if err := s.Pin(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if err := s.StepBack(t.Context(), mine, one); err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, open(), state.Head, one, five)
	wantLoaded(t, open(), state.Served, two, six)
	if err := s.Unpin(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, open(), state.Served, one, five)
	if err := s.Pin(t.Context(), four); err != nil {
		t.Errorf("a lost version cannot be pinned: %v", err)
	}
}

// Versions grow. Two checkpoints that differ only in Saved have the same identity.
func headings(t *testing.T, open func() state.Store) {
	s := open()
	epoch := take(t, s)
	seen := map[string]bool{}
	last := int64(0)
	other := checkpoint(epoch, 6)
	other.Model = []byte("another")
	for _, c := range []*state.Checkpoint{checkpoint(epoch, 5), checkpoint(epoch, 6), other} {
		version := save(t, s, c)
		h, err := open().Heading(t.Context(), state.Head)
		if err != nil {
			t.Fatal(err)
		}
		if version <= last || h.Version != version || seen[h.Identity] {
			t.Errorf("version %d after %d has the heading %+v, want a larger number and another identity", version, last, h)
		}
		last, seen[h.Identity] = version, true
	}
}
