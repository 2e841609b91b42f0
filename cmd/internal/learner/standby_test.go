package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A replica is a learner of an ordered model whose test says when the group gives it the order
// log.
type replica struct {
	t     *testing.T
	l     *Learner
	store *counting
	stop  func() error // as an orderly end, and again without effect
}

// A counting store counts loads and epochs. With an error it refuses saves, as if its learner were
// dead.
type counting struct {
	Store
	mu     sync.Mutex
	loads  int
	takes  int
	refuse error
}

func (s *counting) Take(ctx context.Context) (int64, error) {
	epoch, err := s.Store.Take(ctx)
	s.mu.Lock()
	s.takes++
	s.mu.Unlock()
	return epoch, err
}

func (s *counting) Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error) {
	s.mu.Lock()
	s.loads++
	s.mu.Unlock()
	return s.Store.Load(ctx, which)
}

func (s *counting) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return 0, s.refuse
	}
	return s.Store.Save(ctx, c)
}

func (s *counting) die(refuse error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

func (s *counting) loaded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

func (s *counting) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takes
}

// A silent publisher loses what it is given once its learner is dead.
type silent struct {
	Publisher
	store *counting
}

func (s *silent) Publish(ctx context.Context, records ...kafka.Record) error {
	s.store.mu.Lock()
	dead := s.store.refuse != nil
	s.store.mu.Unlock()
	if dead {
		return nil
	}
	return s.Publisher.Publish(ctx, records...)
}

func (r *rig) replica(name string, change func(*Config)) *replica {
	r.t.Helper()
	cfg := r.ordered(name)
	store := &counting{Store: r.store}
	cfg.Store, cfg.DeadLetters = store, &silent{r.producer, store}
	if change != nil {
		change(&cfg)
	}
	l, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.running = ctx
	ended := make(chan error, 1)
	go func() {
		err := kafka.Follow(ctx, l.cfg.Order.consumer(l.cfg.Consumer), 0, func(ctx context.Context, _ int) (kafka.Handler, error) {
			o, err := l.openOrdered(ctx)
			if err != nil {
				return nil, err
			}
			return o, nil
		})
		if l.halt != nil {
			l.halt()
		}
		l.savings.Wait()
		ended <- err
	}()
	rep := &replica{t: r.t, l: l, store: store}
	rep.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	r.t.Cleanup(func() { _ = rep.stop() })
	return rep
}

// kill ends a replica that neither publishes nor saves.
func (p *replica) kill() {
	p.t.Helper()
	p.store.die(errDead)
	if err := p.stop(); !errors.Is(err, errDead) {
		p.t.Errorf("the dead learner ended with %v", err)
	}
}

// sit gives the order log to the replica until the function is called.
func (p *replica) sit() (leave func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() { left <- p.l.seat.hold(ctx, time.Minute) }()
	p.t.Cleanup(cancel)
	return func() error { cancel(); return <-left }
}

func (p *replica) status() Status { return p.l.Status()[0] }

func (p *replica) until(what string, holds func(Status) bool) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		s, ok := p.l.Status()[0]
		if ok && s.Order != nil && holds(s) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			p.t.Fatalf("%s: not within %v: %+v", what, patience, s)
		}
	}
}

func active(s Status) bool  { return s.Order.Active }
func standby(s Status) bool { return !s.Order.Active }
func events(n int) func(Status) bool {
	return func(s Status) bool { return s.Events >= uint64(n) }
}
func saved(s Status) bool { return s.Order.Active && s.Version != 0 && s.SavedEnd == s.Next }

// untilSaved waits until the saved model has taken all events.
func (r *rig) untilSaved() {
	r.t.Helper()
	for deadline := time.Now().Add(patience); !r.caughtUp(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("not all events are in the saved model")
		}
	}
}

// letters returns where dead letters and receipts come from.
func (r *rig) letters() (from map[string]int) {
	r.t.Helper()
	from = map[string]int{}
	for _, topic := range []string{stream.DeadLetterTopic, stream.ReceiptTopic} {
		_, ends, err := kafka.Offsets(r.t.Context(), r.kafka, topic)
		if err != nil {
			r.t.Fatal(err)
		}
		for p, end := range ends {
			err := kafka.ReadRange(r.t.Context(), r.kafka, topic, p, 0, end, func(rec *kafka.Record) error {
				from[fmt.Sprintf("%s %x", topic, rec.Value)]++
				return nil
			})
			if err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return from
}

// withLetters returns texts among which every tenth is no event.
func withLetters(t *testing.T, r *rig, n int) []kafka.Record {
	records, _ := texts(t, r.topic, n)
	for i := 0; i < n; i += 10 {
		records[i] = kafka.Record{Topic: r.topic, Value: fmt.Append(nil, "no event ", i)}
	}
	return records
}

// The active learner dies after it has learnt what it neither published nor saved. The standby
// goes on with the model that it holds, publishes that, each once, and proposes what comes.
func TestAStandbyTakesOver(t *testing.T) {
	r := newOrderedRig(t, 3)
	records := withLetters(t, r, 600)
	a, b := r.replica("a", nil), r.replica("b", nil)
	a.sit()
	r.spread(slices.Clone(records[:200]))
	a.until("saved", func(s Status) bool { return saved(s) && s.Events == 180 })
	b.until("follows", events(180))
	b.until("what is saved need not be kept", func(s Status) bool { return s.Order.Kept == 0 && s.Order.Writer == "a" })
	if b.status().Order.Active || b.l.Standing() != "standby, 0 records of the order log behind; a was active last" || !strings.HasPrefix(a.l.Standing(), "active, 0 ") {
		t.Errorf("a is %s, b is %s", a.l.Standing(), b.l.Standing())
	}

	a.store.die(state.Transient(errDead))
	r.spread(slices.Clone(records[200:400]))
	a.until("learns on", events(360))
	b.until("follows", func(s Status) bool { return s.Events == 360 && s.Order.Kept == 20 })
	if got := len(r.letters()); got != 20 {
		t.Errorf("%d letters before the take-over, want 20", got)
	}
	b.sit() // a does not know that it is dead
	b.until("takes over", active)
	r.spread(slices.Clone(records[400:]))
	r.untilSaved()
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	a.kill()
	letters := r.letters()
	for from, n := range letters {
		if n != 1 {
			t.Errorf("%d times %s", n, from)
		}
	}
	if len(letters) != 60 {
		t.Errorf("%d letters, want 60", len(letters))
	}
	if n := b.store.loaded(); n != 1 {
		t.Errorf("the standby has loaded the model %d times, want once", n)
	}
	if got := r.wantReplayed(b.l.cfg); got != 600 {
		t.Errorf("the logs name %d records, want 600", got)
	}
}

// A learner that must give the order log back saves first. One that loses the epoch does not
// save. Both keep the model and go on with it when they are active again.
func TestTheActiveLearnerBecomesAStandby(t *testing.T) {
	r := newOrderedRig(t, 2)
	records := withLetters(t, r, 300)
	a := r.replica("a", func(cfg *Config) { cfg.SaveEvery = time.Hour })
	leave := a.sit()
	r.spread(slices.Clone(records[:100]))
	a.until("learns", events(90))
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	a.until("gave it back", standby)
	if c := r.head(); c.Events < 90 || c.Position.Next != a.status().Next {
		t.Errorf("saved at %d after %d events, want %d", c.Position.Next, c.Events, a.status().Next)
	}
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}

	b := r.replica("b", nil)
	b.sit()
	b.until("active", active)
	taken := b.store.taken()
	if _, err := r.store.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.spread(slices.Clone(records[100:200]))
	// Only a standby takes the epoch. That it was one may be over before it is seen.
	b.until("lost the epoch and took it again", func(s Status) bool { return b.store.taken() > taken && saved(s) })
	r.spread(slices.Clone(records[200:]))
	r.untilSaved()
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if n := b.store.loaded(); n != 1 {
		t.Errorf("the model was loaded %d times, want once", n)
	}
	r.wantReplayed(b.l.cfg)
	if n := len(r.letters()); n != 30 {
		t.Errorf("%d letters, want 30", n)
	}
}

// Where the store holds another model than a standby's, it takes that one: another
// configuration, another history, or other events.
func TestAStandbyTakesTheOperatorsModel(t *testing.T) {
	r := newOrderedRig(t, 2)
	records, _ := texts(t, r.topic, 200)
	r.spread(slices.Clone(records[:100]))
	if err := r.runOrdered(r.ordered("a")); err != nil {
		t.Fatal(err)
	}
	base := r.head()
	save := func(t *testing.T, replace func(*state.Checkpoint)) (version int64) {
		t.Helper()
		c := *base
		replace(&c)
		var err error
		if c.Epoch, err = r.store.Take(t.Context()); err == nil {
			c.Saved = time.Now()
			version, err = r.store.Save(t.Context(), &c)
		}
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	for name, replace := range map[string]func(c *state.Checkpoint){
		"another configuration": func(c *state.Checkpoint) {
			c.Config = []byte(`{"table_bits":11}`)
		},
		"another lineage": func(c *state.Checkpoint) {
			var s sequencer.State
			if err := s.UnmarshalBinary(c.Order); err != nil {
				t.Fatal(err)
			}
			s.Lineage[0] = 1
			c.Order, _ = s.AppendBinary(nil)
		},
		"other events": func(c *state.Checkpoint) { c.Events++ },
	} {
		t.Run(name, func(t *testing.T) {
			b := r.replica("b", nil)
			b.t = t
			b.until("follows", standby)
			save(t, replace)
			for deadline := time.Now().Add(patience); b.store.loaded() < 2; <-time.After(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the standby goes on with its own model")
				}
			}
			if err := b.stop(); err != nil {
				t.Error(err)
			}
		})
	}
	// The same model, saved by another learner, is no reason.
	save(t, func(*state.Checkpoint) {})
	b := r.replica("b", nil)
	b.until("follows", standby)
	version := save(t, func(*state.Checkpoint) {})
	b.until("saw it", func(s Status) bool { return s.Version == version })
	b.sit()
	b.until("active", active)
	if n := b.store.loaded(); n != 1 {
		t.Errorf("the model was loaded %d times, want once", n)
	}
}

// A standby that could not keep everything begins at the saved model, and nothing is lost.
func TestAFullStandbyBeginsAtTheSavedModel(t *testing.T) {
	r := newOrderedRig(t, 2)
	records := withLetters(t, r, 200)
	a, b := r.replica("a", nil), r.replica("b", nil)
	a.sit()
	r.spread(slices.Clone(records[:100]))
	a.until("saved", func(s Status) bool { return saved(s) && s.Events == 90 })
	b.until("follows", func(s Status) bool { return s.Events == 90 && s.Order.Kept == 0 })
	a.store.die(state.Transient(errDead))
	more := make([]kafka.Record, maxKept)
	for i := range more {
		more[i] = kafka.Record{Topic: r.topic, Value: fmt.Append(nil, "nor this ", i)}
	}
	r.spread(more)
	r.spread(slices.Clone(records[100:]))
	b.until("follows", events(180))
	a.kill()
	b.sit()
	b.until("takes over", active)
	r.untilSaved()
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if n := b.store.loaded(); n != 2 {
		t.Errorf("the model was loaded %d times, want twice", n)
	}
	if n := len(r.letters()); n != 20+maxKept {
		t.Errorf("%d letters, want %d", n, 20+maxKept)
	}
	r.wantReplayed(b.l.cfg)
}

// A standby that is to be active and does not come to the saved model's place in time loads it.
// Where the order log does not reach so far, that says so.
func TestAnOverdueStandbyLoads(t *testing.T) {
	o := &orderedModel{partitionModel: &partitionModel{l: &Learner{}}, state: &sequencer.State{}, awaits: 7}
	o.l.seat.held = true
	if err := o.changeRole(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := o.overdue(o.overdueAt.Add(-1)); err != nil {
		t.Errorf("before its time: %v", err)
	}
	if err := o.overdue(o.overdueAt); !errors.Is(err, kafka.ErrReload) {
		t.Errorf("got %v, want ErrReload", err)
	}
	o.awaits = 8 // it was saved again
	if err := o.overdue(o.overdueAt); err != nil {
		t.Errorf("of another model: %v", err)
	}
}
