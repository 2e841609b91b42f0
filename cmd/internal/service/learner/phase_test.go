package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
)

// A hand is a worker that a test drives in place of the follower and of the watch's goroutine. The
// store is a real one. It saves when the test says so.
type hand struct {
	t *testing.T
	l *Learner
	w *worker
}

// hand opens a worker whose log answers.
func (r *rig) hand(writer string, change ...func(*Config)) *hand {
	r.t.Helper()
	cfg := r.config()
	cfg.Writer, cfg.SaveEvery = writer, time.Hour
	for _, change := range change {
		change(&cfg)
	}
	l, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	l.answered = time.Now
	l.running = r.t.Context()
	r.t.Cleanup(l.savings.Wait)
	h := &hand{t: r.t, l: l}
	h.open()
	return h
}

func (h *hand) open() {
	h.t.Helper()
	var err error
	if h.w, err = h.l.open(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if h.w.phase != standby {
		h.t.Fatalf("an opened worker is %v, want a standby", h.w.phase)
	}
}

// look has the watch look or beat n times.
func (h *hand) look(n int) {
	for range n {
		h.l.watch.step(h.t.Context())
	}
}

// turn turns as soon as the pause after the last attempt to acquire is over.
func (h *hand) turn() error {
	h.w.again = time.Time{}
	defer func() { h.w.lastSave = time.Now() }()
	return h.w.turn(h.t.Context(), true)
}

// idle turns, and wants the worker to be in a phase.
func (h *hand) idle(want phase) {
	h.t.Helper()
	if err := h.turn(); err != nil {
		h.t.Fatal(err)
	}
	if h.w.phase != want {
		h.t.Fatalf("%s is %v, want %v", h.l.writer, h.w.phase, want)
	}
}

// learn gives records to the worker, the first of which stands at the offset at.
func (h *hand) learn(at int64, records ...stream.Record) {
	h.t.Helper()
	if err := h.turn(); err != nil {
		h.t.Fatal(err)
	}
	batch := make([]stream.Record, len(records))
	for i, r := range records {
		r.Offset = at + int64(i)
		batch[i] = r
	}
	if err := h.w.handle(h.t.Context(), batch, at+int64(len(batch))); err != nil {
		h.t.Fatal(err)
	}
}

// save has the active worker publish and save now.
func (h *hand) save() {
	h.t.Helper()
	if err := h.w.finish(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// reloads wants a turn to have the model loaded again.
func (h *hand) reloads(why string) {
	h.t.Helper()
	err := h.turn()
	if !errors.Is(err, follow.ErrReload) || !strings.Contains(err.Error(), why) {
		h.t.Fatalf("%s: got %v, want a reload because of %q", h.l.writer, err, why)
	}
}

// letter returns a record that is no event.
func letter(i int) stream.Record { return stream.Record{Value: fmt.Append(nil, "no event ", i)} }

// A stuck worker does not beat, but one that waits for its alerts to be published does.
func TestAStuckWorkerDoesNotBeat(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.idle(active)
	beats := func() int64 {
		t.Helper()
		l, err := r.store.Lease(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l.Beats
	}
	if at := a.l.turned.Load(); !strings.Contains(at.String(), " m=") {
		t.Errorf("it turned at %v, without a monotonic reading: a wall clock that is set back hides a stuck worker", at)
	}
	long := time.Now().Add(-2 * stuckAfter)
	a.l.turned.Store(&long)
	before := beats()
	if a.look(1); beats() != before {
		t.Error("a worker that does not turn beats")
	}
	a.l.blocked.Store(true)
	if a.look(1); beats() != before+1 {
		t.Error("a worker that waits on purpose does not beat")
	}
}

// taking: what was saved between the last look and the lease decides.
func TestTakingLooksOnceMore(t *testing.T) {
	for name, test := range map[string]struct {
		saved func(r *rig, a *hand)
		want  func(b *hand)
	}{
		"further": {
			func(r *rig, a *hand) { a.learn(1, letter(1)); a.save() },
			func(b *hand) { b.idle(standby) },
		},
		"not mine": {
			func(r *rig, a *hand) {
				other := r.hand("other")
				a.l.release()
				other.look(1)
				other.idle(active)
				other.learn(1, letter(1))
				other.save()
				other.l.release()
			},
			func(b *hand) { b.reloads("another learner") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a := r.hand("a")
			a.learn(0, letter(0))
			a.save()
			b := r.hand("b")
			seen := b.l.watch.sight()
			test.saved(r, a)
			// What it acts on is older than the lease that it takes.
			lease, err := r.store.Lease(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			seen.lease, seen.lapsed = lease, true
			b.l.watch.seen = seen
			test.want(b)
			if l, err := r.store.Lease(t.Context()); err != nil || !l.Free() {
				t.Errorf("the lease is %+v, %v; want it free", l, err)
			}
		})
	}
}

// A standby that could not keep everything loads the saved model before it takes over.
func TestAFullStandbyLoads(t *testing.T) {
	r := newRig(t)
	a, b := r.hand("a"), r.hand("b")
	a.idle(active)
	b.look(1)
	for i := range maxBacklog + 1 {
		b.learn(int64(i), letter(i))
	}
	b.idle(standby)
	b.look(lapsedAfter)
	b.reloads("could not keep")
	b.open()
	b.idle(active)
	for i := range maxBacklog + 1 {
		b.learn(int64(i), letter(i))
	}
	if n := len(r.letters()); n != maxBacklog+1 {
		t.Errorf("%d letters are out, want %d", n, maxBacklog+1)
	}
}

// active, the store lost its data → it acquires again and saves what is in memory.
func TestTheStoreLostItsData(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	r.forget()
	a.l.watch.step(t.Context())
	a.idle(active)
	a.save()
	if c := r.head(); c.Position.Next != 1 || c.Writer != a.l.writer {
		t.Errorf("saved %+v", c)
	}
	// A save that was begun before is refused, which is no second loss.
	a.learn(1, letter(1))
	r.forget()
	if err := a.w.startSave(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, a.w)
	a.l.watch.step(t.Context())
	epoch := a.w.lease.Epoch
	if a.idle(active); a.w.lease.Epoch != epoch+1 {
		t.Errorf("epoch %d after %d", a.w.lease.Epoch, epoch)
	}
	if a.save(); r.head().Position.Next != 2 {
		t.Errorf("saved at %d", r.head().Position.Next)
	}
	// The reply of an Acquire was lost: the lease is this learner's own.
	seen, err := r.store.Lease(t.Context())
	if err == nil {
		_, err = r.store.Acquire(t.Context(), seen, a.l.writer)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.l.watch.step(t.Context())
	a.idle(active)
	a.learn(2, letter(2))
	a.save()
}

// active, asked to stop → leaving: it saves and frees the lease. A standby saves nothing.
func TestLeavingSavesAndFreesTheLease(t *testing.T) {
	r := newRig(t)
	leaves, store := new(asked), new(asked)
	a := r.hand("a", func(cfg *Config) { leaves.Store, cfg.Store = cfg.Store, leaves })
	a.learn(0, letter(0))
	leaves.calls = nil
	b := r.hand("b", func(cfg *Config) { store.Store, cfg.Store = cfg.Store, store })
	b.learn(0, letter(0))
	store.calls = nil
	if err := b.w.Close(t.Context()); err != nil || len(store.calls) > 0 {
		t.Fatalf("%v; a standby asks the store to %q", err, store.calls)
	}
	if _, err := r.store.Heading(t.Context(), state.Head); !errors.Is(err, state.ErrNone) {
		t.Errorf("a standby saved: %v", err)
	}
	if err := a.w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := r.store.Lease(t.Context())
	if err != nil || !l.Free() || r.head().Position.Next != 1 {
		t.Errorf("lease %+v, %v; saved at %d", l, err, r.head().Position.Next)
	}
	// Who acquires a lease that is free already has the save refused.
	if want := []string{"save", "release"}; !slices.Equal(leaves.calls, want) {
		t.Errorf("who leaves asks the store to %q, want %q", leaves.calls, want)
	}
}

// A store that has lost its data gives an epoch again. A learner takes it for its own only if its own
// writer has it.
func TestAnEpochOfAnotherWriterIsNotOwn(t *testing.T) {
	r := newRig(t)
	store, err := redis.New(redis.Config{Addr: r.options.Addr, Model: "default"}) // knows no epoch of a
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	a, b := r.hand("a"), r.hand("b", func(cfg *Config) { cfg.Store = store })
	a.learn(0, letter(0))
	a.save()
	r.forget()
	b.look(1)
	b.learn(0, letter(0))
	if b.w.phase != active || b.w.lease.Epoch != a.w.lease.Epoch {
		t.Fatalf("b is %v under the epoch %d, want active under that of a, %d", b.w.phase, b.w.lease.Epoch, a.w.lease.Epoch)
	}
	a.look(1)
	a.idle(standby)
	if l, err := r.store.Lease(t.Context()); err != nil || !l.Holds(b.w.lease) {
		t.Errorf("the lease is %+v, %v; b has %+v", l, err, b.w.lease)
	}
	b.look(1)
	b.idle(active)
	if b.save(); r.head().Writer != b.l.writer {
		t.Errorf("saved by %s", r.head().Writer)
	}
}

// A blind store cannot tell what is saved, while blind.
type blind struct {
	Store
	blind bool
}

func (s *blind) Heading(ctx context.Context, which state.Pointer) (state.Heading, error) {
	if s.blind {
		return state.Heading{}, state.Transient(errors.New("away"))
	}
	return s.Store.Heading(ctx, which)
}

// taking, the store goes away → standby. The lease is free then, and it tries again.
func TestTakingWithoutTheStore(t *testing.T) {
	r := newRig(t)
	store := new(blind)
	a := r.hand("a", func(cfg *Config) { store.Store, cfg.Store = cfg.Store, store })
	store.blind = true
	a.idle(standby)
	if l, err := r.store.Lease(t.Context()); err != nil || !l.Free() || l.Epoch != 1 {
		t.Errorf("the lease is %+v, %v; want it free", l, err)
	}
	store.blind = false
	a.idle(standby) // what it has seen is older
	a.look(1)
	a.idle(active)
}

// An attempt that was lost is followed by a pause, so that the store is not asked without end.
func TestAttemptsPause(t *testing.T) {
	r := newRig(t)
	a, b := r.hand("a"), r.hand("b")
	a.idle(active)
	began := time.Now()
	b.idle(standby) // it saw the lease free, and comes too late
	if pause := b.w.again.Sub(began); pause < phasePoll || pause > 2*time.Since(began)+2*phasePoll {
		t.Errorf("a pause of %v", pause)
	}
	a.l.release()
	b.look(1)
	b.w.again = time.Now().Add(time.Minute)
	if err := b.w.turn(t.Context(), true); err != nil || b.w.phase != standby {
		t.Errorf("in the pause it is %v, %v", b.w.phase, err)
	}
	b.idle(active)
}

// The metrics say who is active, what a standby keeps, and why a learner became active.
func TestRoleMetrics(t *testing.T) {
	r := newRig(t)
	shown := map[string]*prometheus.Registry{}
	open := func(name string) *hand {
		shown[name] = prometheus.NewRegistry()
		return r.hand(name, func(cfg *Config) { cfg.Metrics = NewMetrics(shown[name]) })
	}
	want := func(name string, values map[string]float64) {
		t.Helper()
		got := gathered(t, shown[name])
		for series, v := range values {
			if g, ok := got["hamlet_learner_"+series]; !ok || g != v {
				t.Errorf("%s: %s is %v (there: %v), want %v", name, series, g, ok, v)
			}
		}
	}
	a, b := open("a"), open("b")
	a.learn(0, letter(0))
	b.learn(0, letter(0))
	want("a", map[string]float64{"active{default,0}": 1, "kept{0}": 0, "takeovers_total{free}": 1, "takeovers_total{lapsed}": 0, "unsaved_records{0}": 1})
	want("b", map[string]float64{"active{default,0}": 0, "kept{0}": 1, "takeovers_total{free}": 0, "beat_age_seconds{}": 0})
	if _, ok := gathered(t, shown["b"])["hamlet_learner_unsaved_records{0}"]; ok {
		t.Error("a standby shows what only the active learner is to show")
	}
	b.look(lapsedAfter)
	b.idle(active)
	a.look(1)
	a.idle(standby)
	want("a", map[string]float64{"active{default,0}": 0, "beat_age_seconds{}": 0})
	want("b", map[string]float64{"active{default,0}": 1, "kept{0}": 0, "takeovers_total{lapsed}": 1})
	if age := gathered(t, shown["b"])["hamlet_learner_beat_age_seconds{}"]; age <= 0 {
		t.Errorf("the active learner's last beat was %v s ago", age)
	}
	r.forget()
	b.look(1)
	b.idle(active)
	want("b", map[string]float64{"active{default,0}": 1, "takeovers_total{again}": 1})
}

// An epoch that was never beaten is an older program's. It lapses after a minute without a save,
// and each save that it makes begins the minute again, also one that changes nothing.
func TestAnOlderProgramIsWaitedFor(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	r.set("epoch", "7")
	r.del("lease")
	a.look(unbeatenLapsedAfter - 1)
	a.idle(standby)
	r.del("refs") // as each save of an older program does
	a.look(unbeatenLapsedAfter - 1)
	a.idle(standby)
	a.look(1)
	a.idle(active)
	if l, err := r.store.Lease(t.Context()); err != nil || l.Epoch != 8 {
		t.Errorf("%+v, %v", l, err)
	}
}

// Of several that see the same lease lapse, one wins.
func TestOneOfManyTakesOver(t *testing.T) {
	r := newRig(t)
	var hands []*hand
	for i := range 5 {
		hands = append(hands, r.hand(fmt.Sprint("h", i)))
	}
	n := 0
	for _, h := range hands {
		if err := h.turn(); err != nil {
			t.Fatal(err)
		}
		if h.w.phase == active {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d are active, want 1", n)
	}
}
