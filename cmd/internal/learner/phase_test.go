package learner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/follow"
	"hamlet/state"
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

// loading → standby → taking → active: a learner that is alone is active before its first record.
func TestAloneIsActiveAtOnce(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	if err := a.w.Handle(t.Context(), []stream.Record{letter(0)}, 1); err != nil {
		t.Fatal(err)
	}
	if a.w.phase != active || a.w.kept.len() != 0 || a.l.Status().Holder != "a" {
		t.Errorf("%v, keeps %d; %+v", a.w.phase, a.w.kept.len(), a.l.Status())
	}
}

// standby, lapsed → active. Before the fourth equal reading it is not, and a beat begins the
// count again.
func TestAStandbyWaitsUntilTheLeaseLapses(t *testing.T) {
	r := newRig(t)
	a, b := r.hand("a"), r.hand("b")
	a.idle(active)
	b.look(lapsedAfter - 1)
	b.idle(standby)
	a.look(1)
	b.look(lapsedAfter - 1)
	b.idle(standby)
	b.look(1)
	b.idle(active)
	a.look(1)
	a.idle(standby) // its beat is refused
	if s := b.l.Status(); !s.Active || b.l.Ready() != nil || b.l.Standing() != "active, 0 records behind" {
		t.Errorf("%+v, %v, %s", s, b.l.Ready(), b.l.Standing())
	}
	if a.look(1); a.l.watch.sight().lease.Writer != b.l.writer {
		t.Errorf("a sees %+v", a.l.watch.sight().lease)
	}
	a.idle(standby)
	if want := "standby, 0 behind; b is active"; a.l.Standing() != want {
		t.Errorf("%q, want %q", a.l.Standing(), want)
	}
}

// A reading that failed starts the count of equal ones again.
func TestAFailedReadingProvesNothing(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.idle(active)
	store := new(blind)
	b := r.hand("b", func(cfg *Config) { store.Store, cfg.Store = cfg.Store, store })
	b.look(lapsedAfter - 1)
	store.blind = true
	b.look(1)
	store.blind = false
	b.look(lapsedAfter - 1)
	b.idle(standby)
	b.look(1)
	b.idle(active)
}

// A standby acquires nothing while the log does not answer, and the active learner does not beat.
func TestWithoutALogNobodyActs(t *testing.T) {
	r := newRig(t)
	a, b := r.hand("a"), r.hand("b")
	a.idle(active)
	a.l.answered = func() time.Time { return time.Now().Add(-2 * logSilent) }
	b.l.answered = a.l.answered
	for range lapsedAfter {
		a.look(1)
		b.look(1)
	}
	b.idle(standby)
	b.l.answered = time.Now
	b.idle(active)
}

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
	a.l.turned.Store(time.Now().Add(-2 * stuckAfter).UnixNano())
	before := beats()
	if a.look(1); beats() != before {
		t.Error("a worker that does not turn beats")
	}
	a.l.blocked.Store(true)
	if a.look(1); beats() != before+1 {
		t.Error("a worker that waits on purpose does not beat")
	}
}

// A save that is the model's own: what it covers is forgotten, and nothing is loaded.
func TestAStandbyForgetsWhatIsSaved(t *testing.T) {
	r := newRig(t)
	a, b := r.hand("a"), r.hand("b")
	a.learn(0, letter(0))
	a.save()
	b.look(1)
	b.reloads("another learner") // what it began with was no save of a
	b.open()
	a.learn(1, letter(1), letter(2))
	b.learn(1, letter(1), letter(2), letter(3))
	if b.w.kept.len() != 3 {
		t.Fatalf("keeps %d letters, want 3", b.w.kept.len())
	}
	a.save()
	b.look(1)
	b.idle(standby)
	if s := b.l.Status(); b.w.kept.len() != 1 || s.SavedEnd != 3 || s.Version == 0 {
		t.Errorf("keeps %d letters; %+v", b.w.kept.len(), s)
	}
	a.l.release()
	b.look(1)
	b.idle(active)
	if got := len(r.letters()); got != 4 {
		t.Errorf("%d letters are out, want 4", got)
	}
}

// A save that is the model's own and beyond it: the standby waits for the log, and after ten
// seconds it loads the save. It does not acquire before.
func TestAStandbyBehindTheSavedModel(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	b := r.hand("b")
	a.learn(1, letter(1))
	a.save()
	a.l.release()
	b.look(1)
	b.idle(standby)
	if err := b.l.Ready(); err == nil || err.Error() != "standby, behind the saved model by 1" {
		t.Errorf("ready: %v", err)
	}
	if err := b.w.late(b.w.overdue.at.Add(-1)); err != nil {
		t.Errorf("before its time: %v", err)
	}
	if err := b.w.late(b.w.overdue.at); !errors.Is(err, follow.ErrReload) {
		t.Errorf("after its time: %v", err)
	}
	b.learn(1, letter(1))
	if b.w.phase != active || b.l.Ready() != nil {
		t.Errorf("%v once it has come there; ready: %v", b.w.phase, b.l.Ready())
	}
}

// A save that is not the model's own: an operator has put another model there.
func TestAStandbyLoadsTheOperatorsModel(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	b := r.hand("b")
	events := r.saveOther()
	b.look(1)
	b.reloads("an operator")
	b.open()
	if b.w.status.SavedEvents != events {
		t.Errorf("goes on from %d events, want %d", b.w.status.SavedEvents, events)
	}
	a.look(1)
	a.idle(standby)
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
	for i := range maxKept + 1 {
		b.learn(int64(i), letter(i))
	}
	b.idle(standby)
	b.look(lapsedAfter)
	b.reloads("could not keep")
	b.open()
	b.idle(active)
	for i := range maxKept + 1 {
		b.learn(int64(i), letter(i))
	}
	if n := len(r.letters()); n != maxKept+1 {
		t.Errorf("%d letters are out, want %d", n, maxKept+1)
	}
}

// active, save refused → standby: it keeps what is not published, and leaves the lease to others.
func TestTheActiveLearnerKeepsWhatItDidNotPublish(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.idle(active)
	a.w.outbox.add(stream.Alert{Model: "default", Kind: stream.AlertConcept})
	if _, err := r.store.Seize(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	a.l.watch.step(t.Context())
	a.idle(standby)
	if left := time.Until(a.w.again); a.w.kept.len() != 1 || left <= 0 || left > retakeAfter {
		t.Errorf("keeps %d, waits %v", a.w.kept.len(), left)
	}
	a.look(lapsedAfter)
	a.idle(active)
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
	a := r.hand("a")
	a.learn(0, letter(0))
	store := new(asked)
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
}

// leaving, the lease was lost: nothing is saved, and the other one's lease stays.
func TestLeavingWithoutTheLease(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	other, err := r.store.Seize(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.store.Heading(t.Context(), state.Head); !errors.Is(err, state.ErrNone) {
		t.Errorf("it saved: %v", err)
	}
	if l, err := r.store.Lease(t.Context()); err != nil || l != other {
		t.Errorf("the lease is %+v, %v; want %+v", l, err, other)
	}
	if len(r.letters()) != 1 {
		t.Error("the letter is not out")
	}
}

// leaving, the store lost its data: the model in memory may be all that is left, and is saved.
func TestLeavingAfterTheStoreLostItsData(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	a.save()
	a.learn(1, letter(1))
	r.forget()
	if err := a.w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if l, err := r.store.Lease(t.Context()); err != nil || !l.Free() || r.head().Position.Next != 2 {
		t.Errorf("lease %+v, %v; saved at %d", l, err, r.head().Position.Next)
	}
}

// leaving, the store is away: it tries as long as it may, and says what was not saved.
func TestLeavingWithoutTheStore(t *testing.T) {
	r := newRig(t)
	a := r.hand("a")
	a.learn(0, letter(0))
	if err := r.redis.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := a.w.Close(ctx); err == nil || !strings.Contains(err.Error(), "since offset 0 were not saved and will be learnt again") {
		t.Errorf("got %v", err)
	}
	if s := a.l.Status(); s.Loaded {
		t.Errorf("the status still has %+v", s)
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

// loading, the store or the log is away: it waits, and is stopped at once.
func TestLoadingWaits(t *testing.T) {
	r := newRig(t)
	if err := r.redis.Close(); err != nil {
		t.Fatal(err)
	}
	r.produce(letter(0))
	r.events.Fail(stream.ErrAway)
	p := r.run(r.config())
	if err := p.l.Ready(); err == nil || err.Error() != "loading" || p.l.Standing() != "loading" {
		t.Errorf("%v, %s", err, p.l.Standing())
	}
	if err := r.run(r.config()).stop(); err != nil {
		t.Errorf("stopped while it waits: %v", err)
	}
	r.events.Fail(nil)
	if err := r.run(r.config()).stop(); err != nil {
		t.Errorf("stopped while it waits: %v", err)
	}
	r.startRedis()
	p.until(t, "active", func(s Status) bool { return s.Active })
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

// While the store is away an active learner learns on, and a standby acquires nothing.
func TestTheStoreIsAway(t *testing.T) {
	r := newRig(t)
	a, b := r.hand("a"), r.hand("b")
	a.learn(0, letter(0))
	b.learn(0, letter(0))
	if err := r.redis.Close(); err != nil {
		t.Fatal(err)
	}
	a.look(1)
	b.look(lapsedAfter)
	a.learn(1, letter(1))
	b.learn(1, letter(1))
	a.idle(active)
	b.idle(standby)
	r.startRedis()
	a.look(1)
	a.idle(active)
	b.look(1)
	b.idle(standby)
}
