// Package storetest holds the laws that every store of checkpoints obeys, as a test
// suite. A store applies it to itself in one test:
//
//	storetest.Run(t, func(t *testing.T) func() state.Store {
//		server := start(t)
//		return func() state.Store { return open(t, server) }
//	})
//
// Damaged bytes are not tested here, because they depend on a store's format. A store's
// own tests show that it returns [state.ErrCorrupt] or an older version.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hamlet/state"
)

// Run runs every law as a subtest. For each, server returns a function that opens
// another client of the same empty store.
func Run(t *testing.T, server func(t *testing.T) (open func() state.Store)) {
	for _, law := range []struct {
		name string
		test func(t *testing.T, open func() state.Store)
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
		{"a pinned version stays", pinnedStays},
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
		Model:    model, Saved: noon, ModelSHA256: sha256.Sum256(model), Length: int64(len(model)),
	}
}

func take(t *testing.T, s state.Store) int64 {
	t.Helper()
	lease, err := s.Seize(t.Context(), "w")
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	return lease.Epoch
}

func save(t *testing.T, s state.Store, c *state.Checkpoint) int64 {
	t.Helper()
	version, err := s.Save(t.Context(), c)
	if err != nil {
		t.Fatalf("save: %v", err)
	}
	return version
}

// wantLoaded checks that a pointer names a version that holds c.
func wantLoaded(t *testing.T, s state.Store, which state.Pointer, version int64, c *state.Checkpoint) {
	t.Helper()
	got, number, err := s.Load(t.Context(), which)
	if err != nil {
		t.Fatalf("load %v: %v", which, err)
	}
	if d := cmp.Diff(c, got, byteSlices); d != "" || number != version {
		t.Errorf("%v is version %d, want %d (-want +got):\n%s", which, number, version, d)
	}
	m, number, err := s.Manifest(t.Context(), which)
	if err != nil || number != version || m.Model != c.ModelSHA256 || m.Position != c.Position {
		t.Errorf("manifest of %v: version %d, %+v, %v; want version %d of the checkpoint", which, number, m, err, version)
	}
	h, err := s.Heading(t.Context(), which)
	if err != nil || h.Version != version || h.Next != c.Position.Next || h.Identity == "" {
		t.Errorf("heading of %v: %+v, %v; want version %d, next offset %d and an identity",
			which, h, err, version, c.Position.Next)
	}
}

var byteSlices = cmp.Comparer(bytes.Equal) // a model is a megabyte: not element by element

var pointers = []state.Pointer{state.Head, state.Served}

// Of an empty store each pointer is state.ErrNone. A model that was taken and never saved is empty too.
func empty(t *testing.T, open func() state.Store) {
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
// argument. A zero Saved becomes the present. A model may be empty. A Source is saved as the bytes that it
// writes, in whatever pieces, and its error is that of the save.
func roundTrip(t *testing.T, open func() state.Store) {
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

	for i, piece := range []int{1000, state.ChunkSize, state.ChunkSize + 1} {
		want := checkpoint(epoch, int64(7+i))
		made := *want
		made.Model, made.Source = nil, writer{want.Model, piece, nil}
		made.ModelSHA256, made.Length = [32]byte{}, 0
		version := save(t, s, &made)
		if made.ModelSHA256 != want.ModelSHA256 || made.Length != want.Length {
			t.Errorf("Save names the model of a Source %x, of %d bytes; want %x, %d",
				made.ModelSHA256, made.Length, want.ModelSHA256, want.Length)
		}
		if again := save(t, s, &made); again != version {
			t.Errorf("saved again, version %d is %d", version, again)
		}
		wantLoaded(t, open(), state.Head, version, want)
		broken := errors.New("broken")
		made.Source, made.Position.Next = writer{want.Model, piece, broken}, 20
		if _, err := s.Save(t.Context(), &made); !errors.Is(err, broken) {
			t.Errorf("a Source that fails: %v", err)
		}
		wantLoaded(t, open(), state.Head, version, want)
	}
}

// A writer writes b in pieces, and then returns err.
type writer struct {
	b     []byte
	piece int
	err   error
}

func (w writer) WriteTo(to io.Writer) (n int64, err error) {
	for piece := range slices.Chunk(w.b, w.piece) {
		k, err := to.Write(piece)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	return n, w.err
}

// small returns a checkpoint with a model of the given text.
func small(epoch, next int64, saved time.Time, model string) *state.Checkpoint {
	c := checkpoint(epoch, next)
	c.Model, c.Saved = []byte(model), saved
	return c
}

// wantKept checks whether versions can be pinned, and unpins.
func wantKept(t *testing.T, s state.Store, want bool, versions ...int64) {
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
func distinct(t *testing.T, open func() state.Store) {
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
func replaced(t *testing.T, open func() state.Store) {
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
func manyLost(t *testing.T, open func() state.Store) {
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

// Served is the head, or the version that was pinned until it is unpinned.
func served(t *testing.T, open func() state.Store) {
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

// However many versions follow in a day, the one that was pinned stays, and answers. Once it is unpinned
// it goes as any other does.
func pinnedStays(t *testing.T, open func() state.Store) {
	s := open()
	epoch := take(t, s)
	model := func(next int64) *state.Checkpoint { return small(epoch, next, noon, fmt.Sprint("model ", next)) }
	save(t, s, model(1)) // the first of the day stays by itself
	second := model(2)
	pinned := save(t, s, second)
	save(t, s, model(3))
	if err := s.Pin(t.Context(), pinned); err != nil {
		t.Fatal(err)
	}
	for next := int64(4); next < 10; next++ {
		save(t, s, model(next))
	}
	wantPinned(t, s, pinned)
	wantLoaded(t, s, state.Served, pinned, second)
	if err := s.Unpin(t.Context()); err != nil {
		t.Fatal(err)
	}
	save(t, s, model(10))
	wantKept(t, s, false, pinned)
}

// A promotion changes nothing but itself, and saves and pins do not change it.
func promotions(t *testing.T, open func() state.Store) {
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
	for _, p := range []state.Promotion{
		{Model: "cand", Since: noon, By: "somebody"}, {Model: "default", Since: noon.Add(time.Hour)},
	} {
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
func wantPinned(t *testing.T, s state.Store, version int64) {
	t.Helper()
	for _, which := range pointers {
		if h, err := s.Heading(t.Context(), which); err != nil || h.Pinned != version {
			t.Errorf("heading of %v: pinned is version %d, %v; want %d", which, h.Pinned, err, version)
		}
	}
}

// Under a cancelled context nothing is done. The error is the context's and not
// transient. A passed deadline is transient: it may be that of one attempt.
func ended(t *testing.T, open func() state.Store) {
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
func concurrent(t *testing.T, open func() state.Store) {
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
