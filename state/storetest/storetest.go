// Package storetest holds the laws that every store of checkpoints obeys, as a test
// suite. A store applies it to itself in one test:
//
//	storetest.Run(t, func(t *testing.T) func() storetest.Store {
//		server := start(t)
//		return func() storetest.Store { return open(t, server) }
//	})
//
// Damaged bytes are not tested here, because they depend on a store's format. A store's
// own tests show that it returns [state.ErrCorrupt] or an older version.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hamlet/state"
)

// A Store keeps the checkpoints of one model.
type Store interface {
	// Save writes a checkpoint and moves the head to it. The epoch must be the last
	// that was acquired or seized, and the offset not before the head's; else the error wraps
	// state.ErrStale.
	Save(ctx context.Context, c *state.Checkpoint) (version int64, err error)
	// Load returns the checkpoint that a pointer names, and its version. Before the
	// first save the error wraps state.ErrNone.
	Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error)
	// Manifest returns the manifest of the version that a pointer names, and its number. Where
	// that is corrupt, it may be of a version before. Before the first save the error wraps state.ErrNone.
	Manifest(ctx context.Context, which state.Pointer) (*state.Manifest, int64, error)
	// Heading describes what a pointer names, at little cost.
	Heading(ctx context.Context, which state.Pointer) (state.Heading, error)
	// Lease reads who is active. Before the first writer it is the zero Lease.
	Lease(ctx context.Context) (state.Lease, error)
	Holder(ctx context.Context) (state.Lease, error)
	// Acquire makes writer the only one, under the next epoch, if the lease is as seen. Else the
	// error wraps state.ErrStale.
	Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error)
	// Seize is Acquire whatever the lease is.
	Seize(ctx context.Context, writer string) (state.Lease, error)
	// Beat says that the holder of mine lives. If another one has the lease, the error wraps
	// state.ErrStale.
	Beat(ctx context.Context, mine state.Lease) (state.Lease, error)
	// Release frees the lease that mine holds.
	Release(ctx context.Context, mine state.Lease) (state.Lease, error)
	// StepBack moves the head to an older version, which mine's writer goes on from. If another
	// one has the epoch the error wraps state.ErrStale; if the version is not kept, or was stepped
	// back from, state.ErrNone.
	StepBack(ctx context.Context, mine state.Lease, to int64) error
	// Pin points Served at a version. If the store does not keep it, the error wraps
	// state.ErrNone.
	Pin(ctx context.Context, version int64) error
	// Unpin moves Served to the head again.
	Unpin(ctx context.Context) error
	// MarkReplaced keeps a version because another model takes its place, until the model was saved
	// on 30 further days.
	MarkReplaced(ctx context.Context, version int64) error
	// Promote says which model answers in the place of the store's. It changes no version.
	Promote(ctx context.Context, p state.Promotion) error
	// Promotion returns what Promote said last. Before that the error wraps state.ErrNone.
	Promotion(ctx context.Context) (state.Promotion, error)
}

// Run runs every law as a subtest. For each, server returns a function that opens
// another client of the same empty store.
func Run(t *testing.T, server func(t *testing.T) (open func() Store)) {
	for _, law := range []struct {
		name string
		test func(t *testing.T, open func() Store)
	}{
		{"an empty store", empty},
		{"what is saved is loaded", roundTrip},
		{"epochs grow", epochs},
		{"one writer", oneWriter},
		{"of all that acquire a lease one has it", leases},
		{"a lease lives by its beats", beats},
		{"a checkpoint says who saved it", writers},
		{"the head never goes back", noWayBack},
		{"a save may be repeated", repeated},
		{"a version is other bytes", otherBytes},
		{"neither restarts nor the clock drop a version", kept},
		{"the last versions have distinct bytes", distinct},
		{"a version that was replaced stays for thirty days", replaced},
		{"of the lost the last thirty stay", manyLost},
		{"a writer steps back", stepBack},
		{"headings tell versions apart", headings},
		{"served follows the head or a pin", served},
		{"a promotion is what was said last", promotions},
		{"an ended context", ended},
		{"readers see whole checkpoints", concurrent},
	} {
		t.Run(law.name, func(t *testing.T) { law.test(t, server(t)) })
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123, time.UTC)

// checkpoint returns a checkpoint after next records, with a model of one full
// chunk and a short one.
func checkpoint(epoch, next int64) *state.Checkpoint {
	model := append(bytes.Repeat([]byte{byte(next)}, state.ChunkSize), fmt.Sprintf("the end of %d", next)...)
	return &state.Checkpoint{
		Schema: 1, Numerics: "1/test", Config: []byte(`{"law":true}`), Epoch: epoch, Events: uint64(next) * 3,
		Position: state.Position{Next: next, Chain: [32]byte{byte(next)}, Before: [32]byte{byte(next - 1)}},
		Model:    model, Saved: noon,
	}
}

func take(t *testing.T, s Store) int64 {
	t.Helper()
	lease, err := s.Seize(t.Context(), "w")
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	return lease.Epoch
}

func save(t *testing.T, s Store, c *state.Checkpoint) int64 {
	t.Helper()
	version, err := s.Save(t.Context(), c)
	if err != nil {
		t.Fatalf("save: %v", err)
	}
	return version
}

// wantLoaded checks that a pointer names a version that holds c.
func wantLoaded(t *testing.T, s Store, which state.Pointer, version int64, c *state.Checkpoint) {
	t.Helper()
	got, number, err := s.Load(t.Context(), which)
	if err != nil {
		t.Fatalf("load %v: %v", which, err)
	}
	if d := cmp.Diff(c, got, byteSlices); d != "" || number != version {
		t.Errorf("%v is version %d, want %d (-want +got):\n%s", which, number, version, d)
	}
	m, number, err := s.Manifest(t.Context(), which)
	if err != nil || number != version || m.Model != c.ModelSHA256() || m.Position != c.Position {
		t.Errorf("manifest of %v: version %d, %+v, %v; want version %d of the checkpoint", which, number, m, err, version)
	}
	h, err := s.Heading(t.Context(), which)
	if err != nil || h.Version != version || h.Next != c.Position.Next || h.Identity == "" {
		t.Errorf("heading of %v: %+v, %v; want version %d, next offset %d and an identity", which, h, err, version, c.Position.Next)
	}
}

var byteSlices = cmp.Comparer(bytes.Equal) // a model is a megabyte: not element by element

var pointers = []state.Pointer{state.Head, state.Served}

// Of an empty store each pointer is state.ErrNone. A model that was taken and never saved is empty too.
func empty(t *testing.T, open func() Store) {
	s := open()
	for range 2 {
		for _, which := range pointers {
			if _, _, err := s.Load(t.Context(), which); !errors.Is(err, state.ErrNone) {
				t.Errorf("load %v: error %v, want state.ErrNone", which, err)
			}
			if _, _, err := s.Manifest(t.Context(), which); !errors.Is(err, state.ErrNone) {
				t.Errorf("manifest of %v: error %v, want state.ErrNone", which, err)
			}
			if _, err := s.Heading(t.Context(), which); !errors.Is(err, state.ErrNone) {
				t.Errorf("heading of %v: error %v, want state.ErrNone", which, err)
			}
		}
		if err := s.Pin(t.Context(), 1); !errors.Is(err, state.ErrNone) {
			t.Errorf("pin: error %v, want state.ErrNone", err)
		}
		if err := s.Unpin(t.Context()); err != nil {
			t.Errorf("unpin: %v", err)
		}
		take(t, s)
	}
}

// Every client loads a checkpoint with all fields as saved. Save does not change its
// argument. A zero Saved becomes the present. A model may be empty.
func roundTrip(t *testing.T, open func() Store) {
	s := open()
	epoch := take(t, s)
	given := checkpoint(epoch, 5)
	version := save(t, s, given)
	if d := cmp.Diff(checkpoint(epoch, 5), given, byteSlices); d != "" {
		t.Errorf("Save changed its argument (-before +after):\n%s", d)
	}
	for _, which := range pointers {
		wantLoaded(t, s, which, version, given)
		wantLoaded(t, open(), which, version, given)
	}

	bare := &state.Checkpoint{Numerics: "1/test", Epoch: epoch, Position: state.Position{Next: 6}}
	start := time.Now()
	save(t, s, bare)
	got, _, err := open().Load(t.Context(), state.Head)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Model) != 0 || got.Saved.Before(start.Add(-time.Second)) || got.Saved.After(time.Now()) {
		t.Errorf("a model of %d bytes saved at %v, want an empty one saved now", len(got.Model), got.Saved)
	}
}

// Each Seize returns a larger epoch, from 1, for any client.
func epochs(t *testing.T, open func() Store) {
	a, b := open(), open()
	last := int64(0)
	for _, s := range []Store{a, b, b, a} {
		epoch := take(t, s)
		if epoch <= last {
			t.Errorf("epoch %d after %d", epoch, last)
		}
		last = epoch
	}
}

// Only the last to take the model may save. For the others the error is
// state.ErrStale, not state.ErrLost or state.ErrTransient, and nothing changes.
func oneWriter(t *testing.T, open func() Store) {
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
func leases(t *testing.T, open func() Store) {
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
		if err := do(); !errors.Is(err, state.ErrStale) || errors.Is(err, state.ErrLost) || errors.Is(err, state.ErrTransient) {
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
func beats(t *testing.T, open func() Store) {
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
func writers(t *testing.T, open func() Store) {
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
}

// A checkpoint before the head's offset is state.ErrStale, under a newer epoch too,
// and nothing changes. One at the same offset may be saved.
func noWayBack(t *testing.T, open func() Store) {
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
func repeated(t *testing.T, open func() Store) {
	s := open()
	c := checkpoint(take(t, s), 5)
	version := save(t, s, c)
	later := *c
	later.Saved = noon.Add(time.Minute)
	if got := save(t, s, &later); got != version {
		t.Errorf("saved again as version %d, want %d", got, version)
	}
	wantLoaded(t, s, state.Head, version, c)
}

// A save of the head's bytes is no other version, under another epoch or at another position: it
// takes the head's place, under its number. Only the position may not go back.
func otherBytes(t *testing.T, open func() Store) {
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
func kept(t *testing.T, open func() Store) {
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

// small returns a checkpoint with a model of the given text.
func small(epoch, next int64, saved time.Time, model string) *state.Checkpoint {
	c := checkpoint(epoch, next)
	c.Model, c.Saved = []byte(model), saved
	return c
}

// wantKept checks whether versions can be pinned, and unpins.
func wantKept(t *testing.T, s Store, want bool, versions ...int64) {
	t.Helper()
	for _, version := range versions {
		err := s.Pin(t.Context(), version)
		if none := errors.Is(err, state.ErrNone); none == want || err != nil && !none {
			t.Errorf("version %d: pin: %v, want it kept: %v", version, err, want)
		}
	}
	if err := s.Unpin(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A model that goes back and forth between two states pushes no third one out of the last three
// versions. Of those with equal bytes the newest is kept.
func distinct(t *testing.T, open func() Store) {
	s := open()
	epoch := take(t, s)
	var versions []int64
	for next, model := range []string{"first of the day", "x", "a", "b", "a", "b"} {
		versions = append(versions, save(t, s, small(epoch, int64(next), noon, model)))
	}
	wantKept(t, s, true, versions[0], versions[1], versions[4], versions[5])
	wantKept(t, s, false, versions[2], versions[3])
}

// A version that was replaced stays so where a save takes its place. It goes after the model was saved
// on 30 further days, by the same checkpoint too.
func replaced(t *testing.T, open func() Store) {
	s := open()
	epoch := take(t, s)
	save(t, s, small(epoch, 1, noon, "first of the day"))
	version := save(t, s, small(epoch, 2, noon, "replaced"))
	if err := s.MarkReplaced(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	if err := s.MarkReplaced(t.Context(), version+9); !errors.Is(err, state.ErrNone) {
		t.Errorf("a version never saved: %v, want state.ErrNone", err)
	}
	if again := save(t, s, small(epoch, 3, noon, "replaced")); again != version {
		t.Fatalf("the same bytes made version %d of %d", again, version)
	}
	for i, model := range []string{"a", "b", "c", "d"} {
		save(t, s, small(epoch, int64(4+i), noon, model))
	}
	for day := 1; day <= 29; day++ {
		save(t, s, small(epoch, 7, noon.AddDate(0, 0, day), "d"))
	}
	wantKept(t, s, true, version)
	save(t, s, small(epoch, 7, noon.AddDate(0, 0, 30), "d"))
	wantKept(t, s, false, version)
}

// Of the versions that are lost the last 30 stay, and one that was replaced besides.
func manyLost(t *testing.T, open func() Store) {
	s := open()
	mine, err := s.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	first := save(t, s, small(mine.Epoch, 1, noon, "first"))
	var lost []int64
	for i := range 33 {
		lost = append(lost, save(t, s, small(mine.Epoch, 2, noon, fmt.Sprint(i))))
		if i == 0 {
			if err := s.MarkReplaced(t.Context(), lost[0]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.StepBack(t.Context(), mine, first); err != nil {
			t.Fatal(err)
		}
	}
	save(t, s, small(mine.Epoch, 2, noon, "last"))
	wantKept(t, s, true, append([]int64{lost[0]}, lost[3:]...)...)
	wantKept(t, s, false, lost[1:3]...)
}

// The head goes back to an older version for the writer whose log has lost the rest, and served
// with it, unless an operator pinned a version. The next save goes on from there, under a new
// number. Nobody else steps back, nor to what is not kept or was lost before.
func stepBack(t *testing.T, open func() Store) {
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
		"another writer": {stranger, one, state.ErrStale}, "an epoch before": {state.Lease{Epoch: mine.Epoch - 1, Writer: "a"}, one, state.ErrStale},
		"an epoch that is lost": {state.Lease{Epoch: mine.Epoch + 1, Writer: "a"}, one, state.ErrLost},
		"a version never saved": {mine, three + 9, state.ErrNone},
	} {
		err := s.StepBack(t.Context(), c.lease, c.to)
		if !errors.Is(err, c.want) || c.want == state.ErrStale && errors.Is(err, state.ErrLost) || errors.Is(err, state.ErrTransient) {
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
func headings(t *testing.T, open func() Store) {
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

// Served is the head, or the version that was pinned until it is unpinned.
func served(t *testing.T, open func() Store) {
	s, operator := open(), open()
	epoch := take(t, s)
	first, second, third := checkpoint(epoch, 5), checkpoint(epoch, 6), checkpoint(epoch, 7)
	one, two := save(t, s, first), save(t, s, second)
	wantLoaded(t, s, state.Served, two, second)
	if err := operator.Pin(t.Context(), one); err != nil {
		t.Fatalf("pin: %v", err)
	}
	if err := operator.Pin(t.Context(), two+10); !errors.Is(err, state.ErrNone) {
		t.Errorf("pin a version that is not kept: error %v, want state.ErrNone", err)
	}
	wantPinned(t, s, one)
	three := save(t, s, third)
	wantPinned(t, s, one)
	wantLoaded(t, s, state.Served, one, first)
	wantLoaded(t, s, state.Head, three, third)
	if err := operator.Unpin(t.Context()); err != nil {
		t.Fatalf("unpin: %v", err)
	}
	wantPinned(t, s, 0)
	wantLoaded(t, s, state.Served, three, third)
}

// A promotion changes nothing but itself, and saves and pins do not change it.
func promotions(t *testing.T, open func() Store) {
	s, operator := open(), open()
	if p, err := s.Promotion(t.Context()); !errors.Is(err, state.ErrNone) {
		t.Errorf("before the first promotion: %+v, %v; want state.ErrNone", p, err)
	}
	if err := operator.Promote(t.Context(), state.Promotion{Model: "No Name"}); err == nil {
		t.Error("a model without a proper name was promoted")
	}
	epoch := take(t, s)
	first := checkpoint(epoch, 5)
	one := save(t, s, first)
	for _, p := range []state.Promotion{{Model: "cand", Since: noon, By: "somebody"}, {Model: "default", Since: noon.Add(time.Hour)}} {
		if err := operator.Promote(t.Context(), p); err != nil {
			t.Fatalf("promote: %v", err)
		}
		wantLoaded(t, s, state.Served, one, first)
		if one = save(t, s, first); one == 0 {
			t.Error("version 0")
		}
		if got, err := s.Promotion(t.Context()); err != nil || got != p {
			t.Errorf("promotion %+v, %v; want %+v", got, err, p)
		}
	}
}

// wantPinned checks the pin in both headings.
func wantPinned(t *testing.T, s Store, version int64) {
	t.Helper()
	for _, which := range pointers {
		if h, err := s.Heading(t.Context(), which); err != nil || h.Pinned != version {
			t.Errorf("heading of %v: pinned is version %d, %v; want %d", which, h.Pinned, err, version)
		}
	}
}

// Under a cancelled context nothing is done. The error is the context's and not
// transient. A passed deadline is transient: it may be that of one attempt.
func ended(t *testing.T, open func() Store) {
	s := open()
	epoch := take(t, s)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	for _, c := range []struct {
		ctx       context.Context
		want      error
		transient bool
	}{{cancelled, context.Canceled, false}, {late, context.DeadlineExceeded, true}} {
		for name, do := range map[string]func() error{
			"seize":   func() error { _, err := s.Seize(c.ctx, "w"); return err },
			"save":    func() error { _, err := s.Save(c.ctx, checkpoint(epoch, 5)); return err },
			"load":    func() error { _, _, err := s.Load(c.ctx, state.Head); return err },
			"heading": func() error { _, err := s.Heading(c.ctx, state.Head); return err },
			"pin":     func() error { return s.Pin(c.ctx, 1) },
			"unpin":   func() error { return s.Unpin(c.ctx) },
			"step":    func() error { return s.StepBack(c.ctx, state.Lease{Epoch: epoch}, 1) },
		} {
			if err := do(); !errors.Is(err, c.want) || errors.Is(err, state.ErrTransient) != c.transient {
				t.Errorf("%s: error %v, want %v, transient: %v", name, err, c.want, c.transient)
			}
		}
	}
	c := checkpoint(epoch, 5)
	wantLoaded(t, s, state.Head, save(t, s, c), c)
}

// While a writer saves, readers see one checkpoint or another, never a mixture, and
// never an older one than before.
func concurrent(t *testing.T, open func() Store) {
	const saves = 20
	writer := open()
	epoch := take(t, writer)
	save(t, writer, checkpoint(epoch, 1))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		s := open()
		readers.Go(func() {
			last := int64(0)
			for {
				select {
				case <-done:
					return
				default:
				}
				c, _, err := s.Load(t.Context(), state.Served)
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				if want := checkpoint(epoch, c.Position.Next); c.Position.Next < last || !bytes.Equal(c.Model, want.Model) {
					t.Errorf("next offset %d after %d, with a model of %d bytes", c.Position.Next, last, len(c.Model))
				}
				last = c.Position.Next
			}
		})
	}
	for next := range int64(saves) {
		save(t, writer, checkpoint(epoch, next+2))
	}
	close(done)
	readers.Wait()
}
