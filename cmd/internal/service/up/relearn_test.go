package up

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/learner/learnertest"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/parts"
	"hamlet/state"
	"hamlet/stream"
)

// An aged is a folder whose model has learnt its log, and is of older numerics than this program's.
type aged struct {
	*testing.T
	path  string
	dir   *machine.Dir
	store state.Store
	cfg   config
	sha   [32]byte // of the model under this program's numerics
	saved int64    // the version of older numerics
}

const agedEvents = 200

// newAged makes one. damaged: a record is damaged and left out before it is learnt.
func newAged(t *testing.T, damaged bool) *aged {
	t.Helper()
	a := &aged{T: t, path: t.TempDir()}
	t.Cleanup(func() { a.dir.Close() })
	a.open()
	for i := range agedEvents {
		e := stream.Event{ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: fmt.Sprint("lunch number ", i)}}
		if i%3 == 0 {
			e.Label, e.Body.Text = stream.Spam, fmt.Sprint("prize number ", i)
		}
		value, headers, err := e.EncodeRecord()
		if err == nil {
			err = a.cfg.learner.Follow.Log.(stream.Topic).Append(t.Context(), stream.Record{Value: value, Headers: headers})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if damaged {
		a.leaveOut(50)
	}
	a.learn()
	c, _ := a.head()
	a.sha = c.ModelSHA256
	a.grow(func(*state.Checkpoint) {})
	return a
}

// open opens the folder.
func (a *aged) open() {
	a.Helper()
	var err error
	if a.dir, err = machine.Open(a.Context(), a.path, machine.Config{}); err != nil {
		a.Fatal(err)
	}
	topic := stream.EventsTopic("default")
	if err := a.dir.Ensure(a.Context(), topic, 1, 0); err != nil {
		a.Fatal(err)
	}
	log, err := a.dir.Open(topic)
	if err != nil {
		a.Fatal(err)
	}
	if a.store, err = a.dir.Store("default"); err != nil {
		a.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	a.cfg = config{set: &parts.Set{Store: a.store}, relearn: true, log: quiet, learner: learner.Config{
		Follow: follow.Topic(log, a.dir), Topic: topic, Letters: log, Receipts: log, Store: a.store, Name: "default", Writer: "w", SaveEvery: time.Millisecond, Log: quiet,
		Model: model.Config{TableBits: 8, TextExperts: []string{"lean"}, Alarms: model.Alarms{Off: true}},
	}}
}

// leaveOut damages a record, and leaves it out of the log.
func (a *aged) leaveOut(offset int) {
	a.Helper()
	if err := a.dir.Close(); err != nil {
		a.Fatal(err)
	}
	file := filepath.Join(a.path, "logs", a.cfg.learner.Topic, "00000000000000000000.log")
	b, err := os.ReadFile(file)
	if err != nil {
		a.Fatal(err)
	}
	at := bytes.Index(b, fmt.Appendf(nil, " number %d", offset))
	b[at] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		a.Fatal(err)
	}
	a.open()
	if err := a.dir.Skip(a.Context(), a.cfg.learner.Topic, int64(offset), int64(offset)+1); err != nil {
		a.Fatal(err)
	}
}

// learn runs a learner until all is learnt and saved.
func (a *aged) learn() {
	a.Helper()
	l, err := learner.New(a.cfg.learner)
	if err != nil {
		a.Fatal(err)
	}
	ctx, stop := context.WithTimeout(a.Context(), time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	for l.Status().Next < agedEvents && len(ended) == 0 && clock.Sleep(ctx, time.Millisecond) {
	}
	late := ctx.Err()
	stop()
	if err := errors.Join(<-ended, late); err != nil {
		a.Fatal(err)
	}
}

func (a *aged) head() (*state.Checkpoint, int64) {
	a.Helper()
	c, version, err := a.store.Load(a.Context(), state.Head)
	if err != nil {
		a.Fatal(err)
	}
	return c, version
}

// grow saves the model as one of older numerics, and changed.
func (a *aged) grow(change func(*state.Checkpoint)) {
	a.Helper()
	here, err := strconv.Atoi(model.CurrentNumerics())
	if err != nil {
		a.Fatal(err)
	}
	c, _ := a.head()
	if older := strconv.Itoa(here - 1); c.Numerics != older {
		c.Numerics, c.Model = older, learnertest.WithNumerics(a, c.Model, older)
	}
	change(c)
	lease, err := a.store.Seize(a.Context(), "test")
	if err != nil {
		a.Fatal(err)
	}
	c.Epoch, c.Writer = lease.Epoch, lease.Writer
	if a.saved, err = a.store.Save(a.Context(), c); err == nil {
		_, err = a.store.Release(a.Context(), lease)
	}
	if err != nil {
		a.Fatal(err)
	}
}

// plan plans, and wants that there is something to do.
func (a *aged) plan() *relearning {
	a.Helper()
	r, err := planRelearning(a.Context(), &a.cfg)
	if err != nil || r == nil {
		a.Fatalf("nothing is to be learnt again: %v", err)
	}
	return r
}

// relearn learns the log again.
func (a *aged) relearn() {
	a.Helper()
	if err := a.plan().run(a.Context(), func(string) {}); err != nil {
		a.Fatal(err)
	}
}

// wantDone wants a head of this program's numerics with this model, and that the next start leaves it alone.
func (a *aged) wantDone(sha [32]byte) {
	a.Helper()
	c, version := a.head()
	if c.Numerics != model.CurrentNumerics() || version != a.saved+1 {
		a.Errorf("version %d is of numerics %s; the old one is version %d", version, c.Numerics, a.saved)
	}
	if got := c.ModelSHA256; got != sha {
		a.Errorf("the model is %x, want %x", got, sha)
	}
	if r, err := planRelearning(a.Context(), &a.cfg); r != nil || err != nil || a.cfg.learner.AdoptConfig {
		a.Errorf("the next start tries again: %v, %v; adopts: %t", r, err, a.cfg.learner.AdoptConfig)
	}
	a.learn() // it goes on from there
}

// A cutLog ends a context after some reads of a few records.
type cutLog struct {
	stream.Log
	reads int
	stop  func()
}

func (l *cutLog) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) ([]stream.Record, int64, error) {
	if l.reads--; l.reads < 0 {
		l.stop()
	}
	most.Records = 10
	return l.Log.Read(ctx, from, most, wait)
}

// A start that is stopped in the midst of it changes nothing, and the next one learns all.
func TestRelearningIsStopped(t *testing.T) {
	a := newAged(t, false)
	before, _ := a.head()
	for reads := range 5 {
		r := a.plan()
		ctx, stop := context.WithCancel(t.Context())
		cfg := *r.cfg
		cfg.learner.Follow.Log = &cutLog{cfg.learner.Follow.Log, 4 * reads, stop}
		r.cfg = &cfg
		if err := r.run(ctx, func(string) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped after %d reads: %v", 4*reads, err)
		}
		stop()
		if c, version := a.head(); version != a.saved || c.ModelSHA256 != before.ModelSHA256 {
			t.Fatalf("stopped after %d reads: version %d is saved", 4*reads, version)
		}
	}
	a.relearn()
	a.wantDone(a.sha)
}

// A version that an operator pinned stays pinned, and answers.
func TestRelearningLeavesAPin(t *testing.T) {
	a := newAged(t, false)
	if err := a.store.Pin(t.Context(), a.saved); err != nil {
		t.Fatal(err)
	}
	a.relearn()
	a.wantDone(a.sha)
	if pinned, err := a.store.Pinned(t.Context()); pinned != a.saved || err != nil {
		t.Errorf("version %d is pinned, want %d (%v)", pinned, a.saved, err)
	}
	if c, version, err := a.store.Load(t.Context(), state.Served); err != nil || version != a.saved || c.Numerics == model.CurrentNumerics() {
		t.Errorf("version %d answers, want %d (%v)", version, a.saved, err)
	}
	if err := a.store.Unpin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, _, err := a.store.Load(t.Context(), state.Served); err != nil || c.ModelSHA256 != a.sha {
		t.Errorf("without the pin another model answers than what was learnt again (%v)", err)
	}
}

// What was left out of the log before the model learnt it is left out again.
func TestRelearningPassesOverWhatIsLeftOut(t *testing.T) {
	a := newAged(t, true)
	a.relearn()
	a.wantDone(a.sha)
	if c, _ := a.head(); c.Events != agedEvents-1 {
		t.Errorf("%d events", c.Events)
	}
}

// Where the log does not make the model, that one goes on, and the next start does not try again: what it
// learnt was left out of the log since, or is damaged, or it was restored over a new log.
func TestRelearningInVain(t *testing.T) {
	for name, lose := range map[string]func(a *aged){
		"left out since": func(a *aged) { a.leaveOut(50) },
		"damaged": func(a *aged) {
			a.leaveOut(50)
			if err := a.dir.Close(); err != nil {
				a.Fatal(err)
			}
			if err := os.Remove(filepath.Join(a.path, "logs", a.cfg.learner.Topic, "log")); err != nil { // which says what is left out
				a.Fatal(err)
			}
			a.open()
		},
		"knows more": func(a *aged) { a.grow(func(c *state.Checkpoint) { c.Events++ }) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAged(t, false)
			lose(a)
			old, _ := a.head()
			m, err := model.Restore(old.Model)
			if err == nil {
				err = m.Adopt(m.Config())
			}
			if err != nil {
				t.Fatal(err)
			}
			want, err := m.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			a.relearn()
			a.wantDone(sha256.Sum256(want))
		})
	}
}

// A fullStore has no room for a while.
type fullStore struct {
	state.Store
	saves int
}

func (s *fullStore) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	if s.saves--; s.saves >= 0 {
		return 0, state.Transient(errors.New("no space left on device"))
	}
	return s.Store.Save(ctx, c)
}

// What was learnt again waits for room, and says so.
func TestRelearningWaitsForRoom(t *testing.T) {
	a := newAged(t, false)
	r := a.plan()
	cfg := *r.cfg
	cfg.set, r.cfg = &parts.Set{Store: &fullStore{a.store, 1}}, &cfg
	var said []string
	if err := r.run(t.Context(), func(text string) { said = append(said, text) }); err != nil {
		t.Fatal(err)
	}
	if n := len(said); n == 0 || said[n-1] != "the model of numerics "+model.CurrentNumerics()+" cannot be saved yet: no space left on device" {
		t.Errorf("it says %q", said)
	}
	a.wantDone(a.sha)
}

// A watchedLog notes whether it is read after done is closed.
type watchedLog struct {
	stream.Log
	done <-chan struct{}
	late bool
}

func (l *watchedLog) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) ([]stream.Record, int64, error) {
	select {
	case <-l.done:
		l.late = true
	default:
	}
	return l.Log.Read(ctx, from, most, wait)
}

// A watchedStore wants that nothing is saved after done is closed.
type watchedStore struct {
	state.Store
	t    *testing.T
	done <-chan struct{}
}

func (s *watchedStore) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	select {
	case <-s.done:
		s.t.Error("retention could begin before the model was saved")
	default:
	}
	return s.Store.Save(ctx, c)
}

// Retention waits until the log has been read, and what it made is saved.
func TestRelearningReadsBeforeRetention(t *testing.T) {
	a := newAged(t, false)
	r := a.plan()
	cfg := *r.cfg
	log := &watchedLog{Log: cfg.learner.Follow.Log, done: r.read}
	cfg.learner.Follow.Log, r.cfg = log, &cfg
	cfg.set = &parts.Set{Store: &watchedStore{a.store, t, r.read}}
	if err := r.run(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.read:
	default:
		t.Error("retention still waits")
	}
	if log.late {
		t.Error("the log was read after retention could begin")
	}
	a.wantDone(a.sha)
}
