package learner

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"hamlet/state"
	"hamlet/stream"
)

// heard counts the labels that are not doubtful.
type heard struct{ atomic.Int32 }

func (h *heard) Labelled(e stream.JournalEntry) {
	if e.Doubt == nil {
		h.Add(1)
	}
}

// mails returns n labelled mails, the first of which has the number from.
func mails(t *testing.T, from, n int) []stream.Record {
	t.Helper()
	records := make([]stream.Record, n)
	for k := range records {
		i := from + k
		e := stream.Event{ID: fmt.Sprint("m", i), Tenant: "t", Source: "s", Label: stream.Spam, Body: stream.Body{
			Kind: stream.Mail, Mail: fmt.Appendf(nil, "Subject: hello %d\r\nMessage-ID: <%d@x>\r\n\r\nwords %d\r\n", i, i, i)}}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		records[k] = stream.Record{Value: value, Headers: headers}
	}
	return records
}

// What another learner has saved it has handed on.
func TestASaveCoversWhatWasHandedOn(t *testing.T) {
	var l Learner
	hand := func(offset int64, active bool) bool {
		hand, _ := l.firstTime(offset, active)
		return hand
	}
	for range 2 {
		if !hand(0, false) {
			t.Error("a standby hands nothing on")
		}
	}
	if !hand(0, true) || hand(0, false) {
		t.Error("the active one hands on once")
	}
	l.handedOn(0)
	if hand(0, true) {
		t.Error("handedOn went back")
	}
	if l.handedOn(7); hand(6, true) || !hand(7, true) {
		t.Error("what comes of 6 was handed on, of 7 not")
	}
}

// A model whose newest manifest is damaged goes on from the checkpoint before.
func TestADamagedManifest(t *testing.T) {
	r := newRig(t)
	records, m := texts(t, 100)
	r.produce(records[:50]...)
	r.learn(r.config(), 50)
	r.produce(records[50:]...)
	r.learn(r.config(), 100)
	_, version, err := r.store.Load(t.Context(), state.Head)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.client().HSet(t.Context(), key(fmt.Sprint("version:", version)), "manifest", "nonsense").Err(); err != nil {
		t.Fatal(err)
	}
	cfg := r.config()
	store := &reached{Store: cfg.Store}
	cfg.Store = store
	p := r.run(cfg)
	p.until(t, "saved again", func(s Status) bool { return s.SavedEnd == 100 && s.Version > version })
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if n := store.loaded(); n > 2 { // a second look tells that the head is damaged
		t.Errorf("the model was loaded %d times, want at most twice", n)
	}
	if r.head().ModelSHA256 != sum(t, m) {
		t.Error("the model differs")
	}
}

// The newest checkpoint is damaged, and the log has lost an end that this checkpoint had learnt. What
// came in its place is learnt and published, whatever the damaged one covers.
func TestADamagedHeadOfACutLog(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 70)
	r.produce(records[:50]...)
	p := r.run(r.config())
	p.until(t, "saved", func(s Status) bool { return s.SavedEnd == 50 })
	before := r.head()
	r.produce(records[50:]...)
	p.until(t, "saved", func(s Status) bool { return s.SavedEnd == 70 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	m, damaged, err := r.store.Manifest(t.Context(), state.Head)
	if err != nil {
		t.Fatal(err)
	}
	if m.Model == before.ModelSHA256 {
		t.Fatal("the two checkpoints share their bytes")
	}
	for _, chunk := range m.Chunks {
		r.set(fmt.Sprintf("chunk:%x", chunk), "damaged")
	}
	r.events.Cut(55)
	for i := range 30 {
		r.produce(letter(100 + i))
	}
	p = r.run(r.config())
	p.until(t, "saved again", func(s Status) bool { return s.SavedEnd == 85 && s.Version > damaged })
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	written := r.letters()
	for i := range 30 {
		if name := fmt.Sprintf("dead letter no event %d", 100+i); written[name] == 0 {
			t.Errorf("%s is not out", name)
		}
	}
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
	before := sourceSum(c)
	close(s.entered)
	<-s.let
	s.changed.Store(sourceSum(c) != before)
	return 0, ctx.Err()
}

// sourceSum returns the SHA-256 of what a checkpoint's Source writes.
func sourceSum(c *state.Checkpoint) [sha256.Size]byte {
	b, err := c.Bytes()
	if err != nil {
		panic(err) // to write to memory does not fail
	}
	return sha256.Sum256(b)
}

// A save that was given up keeps its bytes while the learner is active again and saves.
func TestAnAbandonedSaveKeepsItsBytes(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 90)
	slow := &blocked{entered: make(chan struct{}), let: make(chan struct{})}
	a := r.hand("a", func(cfg *Config) { slow.Store, cfg.Store = cfg.Store, slow })
	let := sync.OnceFunc(func() { close(slow.let) })
	t.Cleanup(let)
	a.learn(0, records[:30]...)
	a.save()
	slow.block.Store(true)
	a.learn(30, records[30:60]...)
	if err := a.w.startSave(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-slow.entered
	if _, err := r.store.Seize(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	a.look(1)
	a.idle(standby)
	a.look(lapsedAfter)
	a.idle(active)
	a.learn(60, records[60:]...)
	a.save()
	let()
	a.l.savings.Wait()
	if c := r.head(); slow.changed.Load() || c.Position.Next != 90 {
		t.Errorf("the bytes of a running save were changed: %v; the head is at %d", slow.changed.Load(), c.Position.Next)
	}
}

// A learner that was active knows its own saves: as a standby it goes on with its model.
func TestAStandbyKnowsItsOwnSaves(t *testing.T) {
	for name, settled := range map[string]bool{"taken in": true, "just ended": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a := r.hand("a")
			a.learn(0, letter(0))
			if err := a.w.startSave(t.Context()); err != nil {
				t.Fatal(err)
			}
			if awaitRunning(t, a.w); settled {
				a.idle(active)
			}
			if _, err := r.store.Seize(t.Context(), "other"); err != nil {
				t.Fatal(err)
			}
			a.look(1)
			a.idle(standby)
			a.learn(1, letter(1))
			a.look(1)
			a.idle(standby)
			if s := a.l.Status(); s.SavedEnd != 1 || s.Backlog != 1 {
				t.Errorf("%+v", s)
			}
			r.saveOther()
			a.look(1)
			a.reloads("another learner")
		})
	}
}
