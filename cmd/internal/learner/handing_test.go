package learner

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// heard counts labels.
type heard struct{ atomic.Int32 }

func (h *heard) Labelled(string, string, stream.Label, time.Time) { h.Add(1) }

func mails(t *testing.T, topic string, n int) []kafka.Record {
	t.Helper()
	records := make([]kafka.Record, n)
	for i := range records {
		e := stream.Event{ID: fmt.Sprint("m", i), Tenant: "t", Source: "s", Label: stream.Spam, Body: stream.Body{
			Kind: stream.Mail, Mail: fmt.Appendf(nil, "Subject: hello %d\r\nMessage-ID: <%d@x>\r\n\r\nwords %d\r\n", i, i, i)}}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		records[i] = kafka.Record{Topic: topic, Value: value, Headers: headers}
	}
	return records
}

// saveOther saves another model in place of the saved one: its
// manifest counts one event more.
func (r *rig) saveOther() {
	r.t.Helper()
	c := r.head()
	var err error
	if c.Epoch, err = r.store.Take(r.t.Context()); err == nil {
		c.Events, c.Saved = c.Events+1, time.Now()
		_, err = r.store.Save(r.t.Context(), c)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (p *replica) untilLoaded(n int) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); p.store.loaded() < n; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("the model was loaded %d times, want %d", p.store.loaded(), n)
		}
	}
}

// Labels that a standby kept are handed on once, also if it had to load the model again before
// it became active. Each record is observed once.
func TestLabelsOutlastAReload(t *testing.T) {
	r := newOrderedRig(t, 2)
	records := mails(t, r.topic, 100)
	a := r.replica("a", nil)
	a.sit()
	r.spread(records[:50])
	a.until("saved", func(s Status) bool { return saved(s) && s.Events == 50 })
	var labels heard
	var observed atomic.Int32
	b := r.replica("b", func(cfg *Config) {
		cfg.Answered, cfg.Observe = &labels, func(Applied) { observed.Add(1) }
	})
	b.until("follows", standby)
	a.store.die(state.Transient(errDead))
	r.spread(records[50:])
	b.until("follows", func(s Status) bool { return s.Events == 100 && s.Order.Kept == 50 })
	r.saveOther()
	b.untilLoaded(2)
	b.until("follows again", func(s Status) bool { return s.Events == 100 && s.Order.Kept == 50 })
	a.kill()
	if n := labels.Load(); n != 0 {
		t.Errorf("a standby has handed on %d labels", n)
	}
	b.sit()
	b.until("active", active)
	r.untilSaved()
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if n := labels.Load(); n != 50 {
		t.Errorf("%d labels, want 50", n)
	}
	if n := observed.Load(); n != 50 {
		t.Errorf("%d records were observed, want 50", n)
	}
}

// What another learner has saved it has handed on.
func TestASaveCoversWhatWasHandedOn(t *testing.T) {
	l := &Learner{counted: map[int]counts{}}
	hand := func(offset int64, standby bool) bool {
		hand, _ := l.firstTime(0, offset, standby)
		return hand
	}
	for range 2 {
		if !hand(0, true) {
			t.Error("a standby hands nothing on")
		}
	}
	if !hand(0, false) || hand(0, true) {
		t.Error("the active one hands on once")
	}
	l.handedOn(make([]sequencer.Place, 1))
	if hand(0, false) {
		t.Error("handedOn went back")
	}
	places := make([]sequencer.Place, 1)
	places[0].Next = 7
	if l.handedOn(places); hand(6, false) || !hand(7, false) {
		t.Error("what comes of 6 was handed on, of 7 not")
	}
}

// A model whose newest manifest is damaged goes on from the checkpoint before.
func TestADamagedManifest(t *testing.T) {
	r := newOrderedRig(t, 2)
	records, _ := texts(t, r.topic, 100)
	r.spread(records[:50])
	if err := r.runOrdered(r.ordered("a")); err != nil {
		t.Fatal(err)
	}
	r.spread(records[50:])
	if err := r.runOrdered(r.ordered("a")); err != nil {
		t.Fatal(err)
	}
	_, version, err := r.store.Load(t.Context(), state.Head)
	if err != nil {
		t.Fatal(err)
	}
	c := goredis.NewClient(&goredis.Options{Addr: r.options.Addr})
	defer c.Close()
	if err := c.HSet(t.Context(), fmt.Sprintf("hamlet:{default}:0:version:%d", version), "manifest", "nonsense").Err(); err != nil {
		t.Fatal(err)
	}
	b := r.replica("b", nil)
	b.sit()
	b.until("saved again", func(s Status) bool { return saved(s) && s.Version > version })
	if n := b.store.loaded(); n != 1 {
		t.Errorf("the model was loaded %d times, want once", n)
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	r.wantReplayed(b.l.cfg)
}

// A blocked store blocks the next save until let is closed, and notes whether its bytes change.
type blocked struct {
	Store
	block        atomic.Bool
	entered, let chan struct{}
	changed      atomic.Bool
}

func (s *blocked) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	if !s.block.CompareAndSwap(true, false) {
		return s.Store.Save(ctx, c)
	}
	before := sha256.Sum256(c.Model)
	close(s.entered)
	<-s.let
	s.changed.Store(sha256.Sum256(c.Model) != before)
	return 0, ctx.Err()
}

// A save that was given up keeps its bytes while the learner is active again and saves.
func TestAnAbandonedSaveKeepsItsBytes(t *testing.T) {
	r := newOrderedRig(t, 2)
	records, _ := texts(t, r.topic, 90)
	slow := &blocked{Store: r.store, entered: make(chan struct{}), let: make(chan struct{})}
	let := sync.OnceFunc(func() { close(slow.let) })
	a := r.replica("a", func(cfg *Config) { cfg.Store = slow })
	t.Cleanup(let) // before the replica is stopped
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- a.l.seat.hold(ctx, 10*time.Millisecond) }()
	r.spread(records[:30])
	a.until("saved", saved)
	slow.block.Store(true)
	r.spread(records[30:60])
	select {
	case <-slow.entered:
	case <-time.After(patience):
		t.Fatal("no save")
	}
	cancel()
	<-left // it may have had no time
	a.until("gave it back", standby)
	a.sit()
	r.spread(records[60:])
	a.until("active", active)
	r.untilSaved()
	let()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if slow.changed.Load() {
		t.Error("the bytes of a running save were changed")
	}
}

// A learner that was active knows its own saves, however long ago they were.
func TestAStandbyKnowsItsOwnSaves(t *testing.T) {
	r := newOrderedRig(t, 1)
	for name, ended := range map[string]bool{"taken in": false, "just ended": true} {
		t.Run(name, func(t *testing.T) {
			a := r.replica("a", nil)
			a.until("began", standby)
			if err := a.stop(); err != nil {
				t.Fatal(err)
			}
			o, err := a.l.openOrdered(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer o.halt(nil)
			c, err := o.copyModel()
			if err != nil {
				t.Fatal(err)
			}
			c.Position.Next = 5
			o.state.Log.Next = 10
			if ended {
				s := &saving{copied: c, version: 7, done: make(chan struct{}), cancel: func() {}}
				close(s.done)
				o.partitionModel.running = s
			} else {
				o.noteSaved(c, 7, c.ModelSHA256())
			}
			o.standBy()
			if err := o.judge(&head{&state.Manifest{Position: c.Position, Saved: c.Saved}, 7}); err != nil {
				t.Error(err)
			}
			if err := o.judge(&head{&state.Manifest{Position: c.Position, Saved: c.Saved}, 8}); err == nil {
				t.Error("somebody else's save was taken for its own")
			}
		})
	}
}

// A save that is seen late is known.
func TestPassage(t *testing.T) {
	var p passage
	at := state.Position{Next: 1, Chain: [32]byte{1}}
	p.note(at, 9)
	for next := int64(2); next < 100_000; next++ {
		p.note(state.Position{Next: next}, uint64(next))
	}
	if !p.has(at, 9) {
		t.Error("100,000 records later the place is forgotten")
	}
	if p.has(at, 10) || p.has(state.Position{Next: 1}, 9) || p.has(state.Position{Next: 1 << 20}, 0) {
		t.Error("other places are taken for the model's")
	}
}
