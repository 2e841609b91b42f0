package selflabel

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/leak"
	"hamlet/stream/servertest/loopback"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A class is a teacher's: what it was taught. fail says what becomes of an event.
type class struct {
	mu     sync.Mutex
	fail   func(*stream.Event) error
	taught []stream.Event
	tried  int
}

func (c *class) Publish(_ context.Context, events ...stream.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried++
	for i := range events {
		if c.fail != nil {
			if err := c.fail(&events[i]); err != nil {
				return err
			}
		}
		c.taught = append(c.taught, events[i])
	}
	return nil
}

func (c *class) set(fail func(*stream.Event) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = fail
}

// messages returns which messages were taught. An answer may come twice.
func (c *class) messages() map[string]bool {
	of := map[string]bool{}
	for _, e := range c.all() {
		of[e.Of] = true
	}
	return of
}

func (c *class) all() []stream.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]stream.Event(nil), c.taught...)
}

func (c *class) tries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tried
}

// eventually waits until something is so. An answer that was taken and lost comes again after two
// minutes.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func verdict(identity string, d stream.Decision) *stream.Verdict {
	return &stream.Verdict{Identity: identity, Decision: d}
}

var mail = []byte("Subject: canary\n\nwords of somebody\n")

// start runs a service on a store of the server at url until the test ends, or stop is called.
func start(t *testing.T, url string, cfg Config) (s *Service, stop func()) {
	t.Helper()
	if cfg.Store == nil {
		conn, err := nats.Connect(nats.Config{URL: url, Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		if cfg.Store, err = nats.NewWaiting(conn, nats.WaitingConfig{After: max(cfg.After, time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	cfg.recheck, cfg.pause, cfg.flush = 10*time.Millisecond, 5*time.Millisecond, cmp.Or(cfg.flush, 20*time.Second)
	s = New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return s, stop
}

func startNATS(t *testing.T) *embedded.NATS {
	t.Helper()
	n, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func (s *Service) dropped(reason string) float64 {
	return testutil.ToFloat64(s.metrics.dropped.WithLabelValues(reason))
}

// Sure answers wait, also while their gateway is away, and are taught once they are due.
func TestSureAnswersAreTaughtWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	n, to := startNATS(t), new(class)
	s, stop := start(t, n.URL(), Config{Teacher: to, After: time.Hour})
	s.Answered("default", mail, verdict("a", stream.DecideSpam))
	s.Answered("alice", mail, verdict("b", stream.DecideHam))
	s.Answered("default", mail, verdict("c", stream.DecideUnsure))
	s.Answered("default", mail, verdict("", stream.DecideSpam))
	eventually(t, "the answers are not stored", func() bool { return testutil.ToFloat64(s.metrics.stored) == 2 })
	eventually(t, "nobody looks at what waits", func() bool {
		state, err := s.cfg.Store.State(t.Context())
		return err == nil && state.Answers == 2
	})
	stop()
	if got := to.all(); len(got) > 0 {
		t.Fatalf("taught at once: %+v", got)
	}

	began := time.Now()
	s, _ = start(t, n.URL(), Config{Teacher: to, After: time.Millisecond})
	eventually(t, "the answers are not taught", func() bool { return len(to.messages()) == 2 })
	got := map[string]stream.Event{}
	for _, e := range to.all() {
		got[e.Of] = e
	}
	for of, want := range map[string]struct {
		label  stream.Label
		tenant string
	}{"a": {stream.Spam, "default"}, "b": {stream.Ham, "alice"}} {
		e := got[of]
		if e.ID != of+"/assume" || e.Action != stream.Assume || e.Label != want.label || e.Tenant != want.tenant || e.Source != Source ||
			!bytes.Equal(e.Body.Mail, mail) || e.Time.After(began) || e.Validate() != nil {
			t.Errorf("taught %+v", e)
		}
	}
	eventually(t, "what is taught still waits", func() bool {
		state, err := s.cfg.Store.State(t.Context())
		return err == nil && state.Answers == 0 && testutil.ToFloat64(s.metrics.published) >= 2
	})
}

// A gateway whose clock is wrong stops nobody: answers from the future, as many as are taken at
// once, are taught when the server has kept them for so long.
func TestAWrongClockStopsNobody(t *testing.T) {
	t.Parallel()
	n, to := startNATS(t), new(class)
	conn, err := nats.Connect(nats.Config{URL: n.URL(), Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	store, err := nats.NewWaiting(conn, nats.WaitingConfig{After: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	const wrong = 64
	for i := range wrong {
		of := fmt.Sprint(i)
		e := &stream.Event{
			ID: of + "/assume", Time: time.Now().AddDate(10, 0, 0), Source: Source, Tenant: "default", Action: stream.Assume, Of: of, Label: stream.Ham,
			Body: stream.Body{Kind: stream.Mail, Mail: mail},
		}
		// The server drops a second one of this ID.
		eventually(t, "an answer from the future is not stored", func() bool { return store.Put(t.Context(), e) == nil })
	}
	s, _ := start(t, n.URL(), Config{Teacher: to, After: time.Millisecond})
	s.Answered("default", mail, verdict("right", stream.DecideSpam))
	eventually(t, "the answers are not taught", func() bool { return len(to.messages()) == wrong+1 })
}

// While NATS is away answers wait in memory, and it comes back with those that it had.
func TestAnswersOutliveNATS(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), new(class)
	at := loopback.Hold(t)
	n, err := embedded.StartNATS(embedded.NATSOptions{Dir: dir, Addr: at})
	if err != nil {
		t.Fatal(err)
	}
	taken, back := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(taken) })
	to.set(func(*stream.Event) error {
		first()
		<-back
		return nil
	})
	s, _ := start(t, n.URL(), Config{Teacher: to, After: time.Millisecond})
	release := sync.OnceFunc(func() { close(back) })
	t.Cleanup(release) // before the service stops, which waits for the teacher
	s.Answered("default", mail, verdict("before", stream.DecideHam))
	eventually(t, "the first answer is not taught", func() bool {
		select {
		case <-taken:
			return true
		default:
			return false
		}
	})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	s.Answered("default", mail, verdict("meanwhile", stream.DecideSpam))
	eventually(t, "it is not said to fail", func() bool { return testutil.ToFloat64(s.metrics.failing.WithLabelValues(stepNames[storing])) == 1 })
	if n, err = embedded.StartNATS(embedded.NATSOptions{Dir: dir, Addr: at}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	release()
	eventually(t, "the answers are not taught", func() bool { return len(to.messages()) == 2 })
}

// While the learner's log is away answers wait. What it will never take is dropped.
func TestAnOutageOfTheLogDelays(t *testing.T) {
	t.Parallel()
	log, to := new(lines), new(class)
	var works atomic.Bool
	to.set(func(e *stream.Event) error {
		switch {
		case e.Of == "7":
			return fmt.Errorf("publish: %w", stream.ErrTooLarge)
		case works.Load():
			return nil
		}
		return stream.ErrAway
	})
	s, stop := start(t, startNATS(t).URL(), Config{Teacher: to, After: time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))})
	for i := range 20 {
		s.Answered("default", mail, verdict(fmt.Sprint(i), stream.DecideHam))
	}
	eventually(t, "nothing is tried again", func() bool { return to.tries() > 60 })
	if failing := testutil.ToFloat64(s.metrics.failing.WithLabelValues(stepNames[publishing])); failing != 1 {
		t.Errorf("failing is %v", failing)
	}
	// NATS may fail beside it.
	if log.count("self-label fails", "step=publish") != 1 || log.count("works again", "step=publish") != 0 {
		t.Errorf("after %d tries the log is\n%s", to.tries(), log)
	}
	works.Store(true)
	eventually(t, "the answers are not taught", func() bool { return len(to.messages()) >= 19 && s.dropped(droppedTooLarge) >= 1 })
	eventually(t, "it is still said to fail", func() bool { return testutil.ToFloat64(s.metrics.failing.WithLabelValues(stepNames[publishing])) == 0 })
	stop()
	if got := to.messages(); len(got) != 19 || got["7"] {
		t.Errorf("%d messages are taught: %v", len(got), got)
	}
	// Tries that are under way when the log is back may say each once more that it fails.
	fails, worksAgain := log.count("self-label fails", "step=publish"), log.count("works again", "step=publish")
	if fails > 1+publishers || worksAgain != fails || log.count("canary", "") > 0 {
		t.Errorf("the log is\n%s", log)
	}
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// count returns how many lines hold both texts.
func (l *lines) count(a, b string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, a) && strings.Contains(line, b) {
			n++
		}
	}
	return n
}

// A fakeStore does what put says, and gives no answers.
type fakeStore struct {
	put func(ctx context.Context) error
}

func (f fakeStore) Put(ctx context.Context, _ *stream.Event) error { return f.put(ctx) }
func (f fakeStore) Receive(ctx context.Context, _ func(*nats.WaitingAnswer)) error {
	<-ctx.Done()
	return nil
}
func (f fakeStore) State(context.Context) (nats.WaitingState, error) {
	return nats.WaitingState{}, nats.ErrNoServer
}

// A store that does not answer costs no door any time, and a bounded memory. What does not fit
// is counted, and the end does not wait for it.
func TestAStuckStoreDelaysNoDoor(t *testing.T) {
	t.Parallel()
	held := make(chan struct{}, writers)
	s, stop := start(t, "", Config{After: time.Hour, flush: 10 * time.Millisecond, Store: fakeStore{func(ctx context.Context) error {
		held <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}})
	for range writers {
		s.Answered("default", mail, verdict("a", stream.DecideSpam))
	}
	for range writers {
		<-held
	}
	const flood = 3 * maxQueued
	for range flood {
		s.Answered("default", mail, verdict("a", stream.DecideSpam))
	}
	if got := s.dropped(droppedQueue); got != flood-maxQueued {
		t.Errorf("%v of %d are dropped, %d fit", got, flood, maxQueued)
	}
	go func() { // what the writers take in their last moment
		for range held {
		}
	}()
	stop()
	close(held)
	left, stopped := float64(len(s.queue)), s.dropped(droppedStopped)
	if left+stopped != maxQueued+writers || s.dropped(droppedQueue) != flood-maxQueued {
		t.Errorf("%v are dropped at the end, %v are left, want %d in all", stopped, left, maxQueued+writers)
	}
}

// Large messages fill the memory before there are many of them.
func TestQueuedBytesAreBounded(t *testing.T) {
	t.Parallel()
	s := New(Config{After: time.Hour})
	large := make([]byte, 800<<10)
	for range 60 {
		s.Answered("default", large, verdict("a", stream.DecideSpam))
	}
	fit := maxQueuedBytes / len(large)
	if len(s.queue) != fit || s.dropped(droppedQueue) != float64(60-fit) || s.bytes.Load() != int64(fit*len(large)) {
		t.Errorf("%d fit, %v are dropped; want %d", len(s.queue), s.dropped(droppedQueue), fit)
	}
}

// What the store refuses for good is counted by its reason, and not tried again.
func TestRefusedAnswersAreCounted(t *testing.T) {
	t.Parallel()
	for reason, refusal := range map[string]error{droppedFull: stream.ErrFull, droppedTooLarge: stream.ErrTooLarge} {
		registry := prometheus.NewRegistry()
		s, stop := start(t, "", Config{After: time.Hour, Registerer: registry, Store: fakeStore{func(context.Context) error { return fmt.Errorf("put: %w", refusal) }}})
		s.Answered("default", mail, verdict("a", stream.DecideSpam))
		eventually(t, reason+" is not counted", func() bool { return s.dropped(reason) == 1 })
		stop()
		if s.bytes.Load() != 0 || testutil.ToFloat64(s.metrics.failing.WithLabelValues(stepNames[storing])) != 0 {
			t.Errorf("%s: %d bytes are still counted", reason, s.bytes.Load())
		}
	}
	// A store that refuses answers is not away any more.
	for reason, refusal := range map[string]error{droppedFull: stream.ErrFull, droppedTooLarge: stream.ErrTooLarge} {
		tries := 0
		s, stop := start(t, "", Config{After: time.Hour, Store: fakeStore{func(context.Context) error {
			if tries++; tries == 1 {
				return errors.New("away")
			}
			return refusal
		}}})
		s.Answered("default", mail, verdict("a", stream.DecideSpam))
		eventually(t, reason+" is not counted", func() bool { return s.dropped(reason) == 1 })
		stop()
		if testutil.ToFloat64(s.metrics.failing.WithLabelValues(stepNames[storing])) != 0 {
			t.Errorf("%s: the store is said to fail", reason)
		}
	}
	// An outage is: the answer is stored when it ends.
	away := make(chan struct{})
	s, _ := start(t, "", Config{After: time.Hour, Store: fakeStore{func(context.Context) error {
		select {
		case <-away:
			return nil
		default:
			return errors.New("away")
		}
	}}})
	s.Answered("default", mail, verdict("a", stream.DecideSpam))
	eventually(t, "it is not said to fail", func() bool { return testutil.ToFloat64(s.metrics.failing.WithLabelValues(stepNames[storing])) == 1 })
	close(away)
	eventually(t, "the answer is not stored", func() bool {
		return testutil.ToFloat64(s.metrics.stored) == 1 && testutil.ToFloat64(s.metrics.failing.WithLabelValues(stepNames[storing])) == 0
	})
}
