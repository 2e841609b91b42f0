package scorer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/algos/model"
	"hamlet/state"
)

// A scripted store answers what a test sets.
type scripted struct {
	Store        // nil: a loader asks for no promotion
	model        []byte
	head, served state.Heading
	lost         error // of Heading
	down         error // of Load
	older        bool  // Load returns the version before the one that is named
}

func (s *scripted) Layout(context.Context) error { return nil }

func (s *scripted) Heading(_ context.Context, which state.Pointer) (state.Heading, error) {
	if s.lost != nil {
		return state.Heading{}, s.lost
	}
	if which == state.Head {
		return s.head, nil
	}
	return s.served, nil
}

func (s *scripted) Load(context.Context, state.Pointer) (*state.Checkpoint, int64, error) {
	if s.down != nil {
		return nil, 0, s.down
	}
	h := s.served
	if s.older {
		h.Version, h.Next = h.Version-1, h.Next-1
	}
	c := &state.Checkpoint{Model: s.model, Position: state.Position{Next: h.Next}, Saved: time.Unix(h.Next, 0)}
	return c, h.Version, nil
}

// save makes a version at an offset the head and what is served.
func (s *scripted) save(version, next int64) {
	h := state.Heading{Version: version, Next: next, Identity: fmt.Sprintf("%d at %d", version, next)}
	*s = scripted{model: s.model, head: h, served: h}
}

// Every cell of the table in loader's comment, and what becomes of errors. A loader is
// brought into a state by the steps before; one poll follows.
func TestStandings(t *testing.T) {
	m, err := model.New(model.Config{TableBits: 10, DuplicateWindow: 10})
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	type step = func(s *scripted)
	saved := func(s *scripted) { s.save(9, 90) } // what is served in all cases
	lost := func(s *scripted) { s.lost = state.ErrNone }
	again := func(s *scripted) { s.save(2, 20) } // a new history, behind
	outrun := func(s *scripted) { s.save(3, 91) }
	pinned := func(s *scripted) {
		s.served, s.lost = state.Heading{Version: 4, Next: 40, Identity: "4", Pinned: 4}, nil
	}
	corrupt := func(s *scripted) { s.save(10, 100); s.down = state.ErrCorrupt }
	from := map[string][]step{
		"nothing":    {},
		"following":  {saved},
		"missing":    {saved, lost},
		"relearning": {saved, again},
		"damaged":    {saved, corrupt},
	}
	for _, c := range []struct {
		from, name string
		poll       step
		want       loadState
		next       int64 // of what is served; 0 is nothing
		whole      bool
		newest     int64
	}{
		{"nothing", "the pointer is lost", lost, following, 0, true, 0},
		{"nothing", "the first save", saved, following, 90, true, 9},
		{"nothing", "a corrupt save", corrupt, following, 0, false, 10},

		{"following", "the pointer is lost", lost, missing, 90, false, 9},
		{"following", "named again", func(*scripted) {}, following, 90, true, 9},
		{"following", "a new history, behind", again, relearning, 90, false, 9},
		{"following", "a number used again, behind", func(s *scripted) { s.save(9, 80) }, relearning, 90, false, 9},
		{"following", "a new history, as far", outrun, following, 91, true, 3},
		{"following", "a save", func(s *scripted) { s.save(10, 100) }, following, 100, true, 10},
		{"following", "a pin", pinned, following, 40, true, 9},
		{"following", "a step back", func(s *scripted) { s.save(5, 50) }, relearning, 90, false, 9},
		{"following", "a save after a step back", func(s *scripted) { s.save(10, 60) }, relearning, 90, false, 9},
		{"following", "a corrupt save", corrupt, following, 90, false, 10},
		{"following", "the version before", func(s *scripted) { s.save(10, 100); s.older = true }, following, 99, false, 10},
		{"following", "a model of another program", func(s *scripted) { s.save(10, 100); s.model = nil }, following, 90, false, 10},

		{"missing", "the pointer is lost", lost, missing, 90, false, 9},
		{"missing", "named again", saved, following, 90, true, 9},
		{"missing", "a new history, behind", again, relearning, 90, false, 9},
		{"missing", "a new history, as far", outrun, following, 91, true, 3},
		{"missing", "a new history with a pin", pinned, following, 40, true, 4},

		{"relearning", "the pointer is lost", lost, relearning, 90, false, 9},
		{"relearning", "named again", saved, following, 90, true, 9},
		{"relearning", "still behind", func(s *scripted) { s.save(12, 80) }, relearning, 90, false, 9},
		{"relearning", "as far", outrun, following, 91, true, 3},
		{"relearning", "a pin", pinned, following, 40, true, 4},

		{"damaged", "named again", func(*scripted) {}, following, 90, false, 10},
		{"damaged", "a save", func(s *scripted) { s.save(11, 110) }, following, 110, true, 11},

		// A store that cannot be asked changes nothing.
		{"following", "no answer", func(s *scripted) { s.lost = state.Transient(errors.New("down")) }, following, 90, true, 9},
		{"following", "no checkpoint in time", func(s *scripted) { s.save(10, 100); s.down = state.Transient(errors.New("slow")) }, following, 90, true, 9},
		{"missing", "no answer", func(s *scripted) { s.lost = state.Transient(errors.New("down")) }, missing, 90, false, 9},
		{"relearning", "no answer", func(s *scripted) { s.lost = state.Transient(errors.New("down")) }, relearning, 90, false, 9},
	} {
		t.Run(c.from+", "+c.name, func(t *testing.T) {
			store := &scripted{model: bytes}
			l := newLoader(store, "default", newMetrics(nil), slog.New(slog.DiscardHandler))
			for _, step := range append(from[c.from], c.poll) {
				step(store)
				l.poll(t.Context())
			}
			next := int64(0)
			if current := l.current.Load(); current != nil {
				next = current.next
			}
			if l.state != c.want || next != c.next || l.whole() != c.whole || l.newest != c.newest {
				t.Errorf("state %d, offset %d is served, whole %v, newest %d; want %d, %d, %v, %d",
					l.state, next, l.whole(), l.newest, c.want, c.next, c.whole, c.newest)
			}
		})
	}
}

// A fault that people may repair in place is tried again at every poll.
func TestTriesAgain(t *testing.T) {
	store := &scripted{}
	store.save(1, 10)
	store.down = errors.New("the user may not do this")
	l := newLoader(store, "default", newMetrics(nil), slog.New(slog.DiscardHandler))
	l.poll(t.Context())
	if l.bad == nil || l.tried != (state.Heading{}) {
		t.Fatalf("bad %v, tried %+v, want an error and a zero heading", l.bad, l.tried)
	}
	m, err := model.New(model.Config{TableBits: 10, DuplicateWindow: 10})
	if err != nil {
		t.Fatal(err)
	}
	if store.model, err = m.AppendBinary(nil); err != nil {
		t.Fatal(err)
	}
	store.down = nil
	l.poll(t.Context())
	if l.bad != nil || l.current.Load() == nil {
		t.Errorf("bad %v, %v is served after the repair", l.bad, l.current.Load())
	}
}

// A checkpoint whose bits were wrong only in what was read is served later, although no other one is saved.
func TestACorruptCheckpointIsReadAgain(t *testing.T) {
	m, err := model.New(model.Config{TableBits: 10, DuplicateWindow: 10})
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, misread := range map[string]func(s *scripted, wrong bool){
		"nothing was whole":        func(s *scripted, wrong bool) { s.down = map[bool]error{true: state.ErrCorrupt}[wrong] },
		"the version before was":   func(s *scripted, wrong bool) { s.older = wrong },
		"a pinned version, and so": func(s *scripted, wrong bool) { s.served.Pinned, s.older = s.served.Version, wrong },
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &scripted{model: bytes}
			l := newLoader(store, "default", newMetrics(nil), slog.New(slog.DiscardHandler))
			store.save(9, 90)
			l.poll(t.Context())
			store.save(10, 100)
			misread(store, true)
			l.poll(t.Context())
			misread(store, false)
			l.poll(t.Context())
			if l.whole() {
				t.Errorf("%s: it is read again at once", name)
			}
			time.Sleep(readAgain)
			l.poll(t.Context())
			if next := l.current.Load().next; next != 100 || !l.whole() || l.stale.Load() {
				t.Errorf("%s: offset %d is served, whole %v, stale %v; want 100, true, false",
					name, next, l.whole(), l.stale.Load())
			}
		})
	}
}
