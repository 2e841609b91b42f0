package learner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/stream"
)

// A counting store counts loads. Once its learner is cut off every request fails, as if the store
// were away.
type counting struct {
	Store
	mu    sync.Mutex
	loads int
	off   bool
}

var errCut = state.Transient(errors.New("cut off"))

func (s *counting) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = true
}

func (s *counting) isCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off
}

func (s *counting) loaded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

func (s *counting) Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error) {
	s.mu.Lock()
	s.loads++
	s.mu.Unlock()
	return s.Store.Load(ctx, which)
}

func (s *counting) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	if s.isCut() {
		return 0, errCut
	}
	return s.Store.Save(ctx, c)
}

func (s *counting) Beat(ctx context.Context, mine state.Lease) (state.Lease, error) {
	if s.isCut() {
		return mine, errCut
	}
	return s.Store.Beat(ctx, mine)
}

func (s *counting) Release(ctx context.Context, mine state.Lease) (state.Lease, error) {
	if s.isCut() {
		return mine, errCut
	}
	return s.Store.Release(ctx, mine)
}

// A replica is a learner that can be cut off.
type replica struct {
	*running
	store *counting
	cfg   Config
}

// replica runs a learner. Once it is cut off, the letters that it writes are lost too.
func (r *rig) replica(name string, change ...func(*Config)) *replica {
	r.t.Helper()
	cfg := r.config()
	store := &counting{Store: cfg.Store}
	cfg.Writer, cfg.Store = name, store
	cfg.Letters = lettersFunc(func(ctx context.Context, records ...stream.Record) error {
		if store.isCut() {
			return nil
		}
		return r.dead.Append(ctx, records...)
	})
	cfg.Follow.Drain = 100 * time.Millisecond // of one that is cut off
	for _, change := range change {
		change(&cfg)
	}
	return &replica{r.run(cfg), store, cfg}
}

// withLetters returns texts among which every tenth is no event, and the model that has learnt them.
func withLetters(t *testing.T, n int) ([]stream.Record, *model.Model) {
	t.Helper()
	records, _ := texts(t, n)
	m, err := model.New(small)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if i%10 == 0 {
			records[i] = letter(i)
		} else {
			learn(t, m, records[i:i+1])
		}
	}
	return records, m
}

// wantLetters wants each of n letters once.
func (r *rig) wantLetters(n int) {
	r.t.Helper()
	letters := r.letters()
	for of, times := range letters {
		if times != 1 {
			r.t.Errorf("%d times %s", times, of)
		}
	}
	if len(letters) != n {
		r.t.Errorf("%d letters, want %d", len(letters), n)
	}
}

// The active learner is cut off after it has learnt what it neither published nor saved. The standby
// goes on with the model that it holds, and publishes that, each once.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	records, m := withLetters(t, 600)
	a := r.replica("a")
	r.produce(records[:200]...)
	a.until(t, "saved", func(s Status) bool { return s.Active && s.SavedEnd == 200 })
	b := r.replica("b")
	b.until(t, "follows", func(s Status) bool { return s.Events == 180 && s.Holder == "a" && s.Kept == 0 })
	if got := b.l.Standing(); got != "standby, 0 behind; a is active" {
		t.Errorf("b is %q", got)
	}

	a.store.cut()
	r.produce(records[200:400]...)
	a.until(t, "learns on", func(s Status) bool { return s.Events == 360 })
	b.until(t, "takes over", func(s Status) bool { return s.Active && s.SavedEnd == 400 })
	if s := a.l.Status(); !s.Active {
		t.Error("a knows what it cannot know")
	}
	r.produce(records[400:]...)
	b.until(t, "saved", func(s Status) bool { return s.SavedEnd == 600 })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if err := a.stop(); err == nil || !strings.Contains(err.Error(), "since offset 200 were not saved and will be learnt again") {
		t.Errorf("the learner that was cut off ended with %v", err)
	}
	r.wantLetters(60)
	if n := b.store.loaded(); n != 1 {
		t.Errorf("the standby has loaded the model %d times, want once", n)
	}
	if c := r.head(); c.ModelSHA256() != sum(t, m) || c.Position.Next != 600 {
		t.Errorf("the head is at %d, or another model", c.Position.Next)
	}
}

// The active learner loses the lease to somebody who does nothing with it. It keeps its model, stands
// by, and goes on when the lease lapses.
func TestTheActiveLearnerBecomesAStandby(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	records, m := withLetters(t, 300)
	r.produce(records[:100]...)
	a := r.replica("a")
	a.until(t, "saved", func(s Status) bool { return s.SavedEnd == 100 })
	if _, err := r.store.Seize(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	a.until(t, "stands by", func(s Status) bool { return !s.Active && s.Holder == "nobody" })
	r.produce(records[100:200]...)
	a.until(t, "follows", func(s Status) bool { return s.Next == 200 })
	r.produce(records[200:]...)
	a.until(t, "took it again", func(s Status) bool { return s.Active && s.SavedEnd == 300 })
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if n := a.store.loaded(); n != 1 {
		t.Errorf("the model was loaded %d times, want once", n)
	}
	r.wantLetters(30)
	if r.head().ModelSHA256() != sum(t, m) {
		t.Error("the model differs")
	}
}

// A learner that stops hands over: the standby need not wait until the lease lapses.
func TestAnOrderlyStopHandsOver(t *testing.T) {
	r := newRig(t)
	records, m := withLetters(t, 200)
	a := r.replica("a")
	r.produce(records[:100]...)
	a.until(t, "saved", func(s Status) bool { return s.SavedEnd == 100 })
	b := r.replica("b")
	b.until(t, "follows", func(s Status) bool { return s.Next == 100 })
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	if l, err := r.store.Lease(t.Context()); err != nil || !l.Free() && l.Writer != b.l.writer {
		t.Errorf("the lease is %+v, %v; want it free", l, err)
	}
	r.produce(records[100:]...)
	b.until(t, "saved", func(s Status) bool { return s.Active && s.SavedEnd == 200 })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	r.wantLetters(20)
	if r.head().ModelSHA256() != sum(t, m) {
		t.Error("the model differs")
	}
}

// Of two learners that both think they are active, the later one saves. The other one's save is
// refused, and nothing is learnt twice.
func TestTheLaterOneSaves(t *testing.T) {
	r := newRig(t)
	records, m := withLetters(t, 400)
	a, b := r.hand("a"), r.hand("b")
	a.learn(0, records[:200]...)
	a.save()
	b.look(1)
	b.reloads("another learner")
	b.open()
	for i := 200; i < 400; i += 50 { // a beats no more, and each takes the lease in turn
		former, next := a, b
		if i%100 == 50 {
			former, next = b, a
		}
		next.look(lapsedAfter)
		next.learn(int64(i), records[i:i+50]...)
		former.learn(int64(i), records[i:i+50]...)
		if former.w.phase != active || next.w.phase != active {
			t.Fatalf("at %d they are %v and %v", i, former.w.phase, next.w.phase)
		}
		next.save()
		former.save()
		former.look(1)
		former.idle(standby)
		former.look(1)
		former.reloads("another learner")
		former.open()
	}
	if c := r.head(); c.ModelSHA256() != sum(t, m) || c.Position.Next != 400 {
		t.Errorf("the head is at %d, or another model", c.Position.Next)
	}
}

// A standby with another configuration is equal to the active learner, which has not adopted it. It
// adopts once it is active.
func TestAStandbyAdoptsWhenItIsActive(t *testing.T) {
	r := newRig(t)
	records, m := texts(t, 200)
	a := r.hand("a")
	a.learn(0, records[:100]...)
	a.save()
	b := r.hand("b", func(cfg *Config) { cfg.AdoptConfig, cfg.Model.LabelTrust = true, model.TrustNone })
	a.learn(100, records[100:]...)
	b.learn(100, records[100:]...)
	if sum(t, b.w.model) != sum(t, m) {
		t.Error("as a standby it has another model than the active learner")
	}
	a.save()
	b.look(1)
	b.idle(standby)
	a.l.release()
	b.look(1)
	b.idle(active)
	b.save()
	if c := r.head(); !strings.Contains(string(c.Config), `"none"`) || c.Events != 200 || c.Writer != b.l.writer {
		t.Errorf("%s saved %d events with %s", c.Writer, c.Events, c.Config)
	}
	// A learner with the old configuration refuses the model, and b goes on.
	if err := r.try(r.config(), 200); err == nil || !strings.Contains(err.Error(), "label_trust") {
		t.Errorf("the old configuration is now the other one: got %v", err)
	}
	b.look(1)
	b.idle(active)
}

// A cuttable log fails while it is cut off.
type cuttable struct {
	stream.Log
	off atomic.Bool
}

func (l *cuttable) Bounds(ctx context.Context) (stream.Bounds, error) {
	if l.off.Load() {
		return stream.Bounds{}, stream.ErrAway
	}
	return l.Log.Bounds(ctx)
}

func (l *cuttable) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) ([]stream.Record, int64, error) {
	if l.off.Load() {
		return nil, 0, stream.ErrAway
	}
	return l.Log.Read(ctx, from, most, wait)
}

// A learner that is cut off from the log alone beats no more, and the standby takes over. Once the log
// answers it stands by, and the saved model stays that of the log.
func TestCutOffFromTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	records, m := withLetters(t, 300)
	r.produce(records[:100]...)
	log := &cuttable{Log: r.events}
	a := r.replica("a", func(cfg *Config) { cfg.Follow.Log = log })
	a.until(t, "saved", func(s Status) bool { return s.Active && s.SavedEnd == 100 })
	b := r.replica("b")
	b.until(t, "follows", func(s Status) bool { return s.Next == 100 && s.Holder == "a" })
	log.off.Store(true)
	r.produce(records[100:200]...)
	b.until(t, "takes over", func(s Status) bool { return s.Active && s.SavedEnd == 200 })
	log.off.Store(false)
	a.until(t, "stands by", func(s Status) bool { return !s.Active && s.Next == 200 && s.Holder == "b" })
	r.produce(records[200:]...)
	for _, p := range []*replica{a, b} {
		p.until(t, "follows", func(s Status) bool { return s.SavedEnd == 300 && s.SHA256 == sum(t, m) })
	}
	if n := len(r.letters()); n != 30 { // until its next beat a is active too: some are written twice
		t.Errorf("%d letters, want 30", n)
	}
}
