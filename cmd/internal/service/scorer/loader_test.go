package scorer

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
)

// newTestLoader returns a loader that polls only on request, and its log.
func newTestLoader(t *testing.T, r *miniredis.Miniredis) (*loader, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return newLoader(openStore(t, r), "default", newMetrics(nil), slog.New(slog.NewTextHandler(&log, nil))), &log
}

func predicted(t *testing.T, l *loader) stream.Verdict {
	t.Helper()
	current := l.current.Load()
	if current == nil {
		t.Fatal("there is no model")
	}
	request := &stream.Event{Body: stream.Body{Kind: stream.Text, Text: question}}
	verdicts, _, err := current.score(context.Background(), []*stream.Event{request}, scoreConfig{explain: true}, fixedRules, current.info.Saved)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts[0]
}

// If all checkpoints are damaged, the old model stays in place. This is logged once.
func TestCorruptCheckpoint(t *testing.T) {
	r := miniredis.RunT(t)
	teacher := newTeacher(t, openStore(t, r))
	teacher.learn(10)
	first := teacher.save()
	l, log := newTestLoader(t, r)
	l.poll(patience(t))

	teacher.learn(10)
	teacher.save()
	for _, key := range r.Keys() {
		if strings.Contains(key, ":chunk:") {
			if err := r.Set(key, "garbage"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		l.poll(patience(t))
	}
	if v := predicted(t, l); v.Model.SHA256 != first {
		t.Errorf("the model %s is served, want the first, %s", v.Model.SHA256, first)
	}
	if !l.stale.Load() {
		t.Error("the served model isn't called stale")
	}
	if n := strings.Count(log.String(), "can't be served"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log)
	}

	teacher.learn(10)
	third := teacher.save()
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != third || l.stale.Load() {
		t.Errorf("after a whole checkpoint the model %s is served, stale %v; want %s", v.Model.SHA256, l.stale.Load(), third)
	}
	teacher.check(predicted(t, l))
}

// A store that can't be reached is logged once, and once when it is back.
func TestOutageIsLoggedOnce(t *testing.T) {
	r := restartable(t)
	teacher := newTeacher(t, openStore(t, r))
	teacher.learn(10)
	teacher.save()
	l, log := newTestLoader(t, r)
	l.poll(patience(t))
	r.Close()
	for range 3 {
		l.poll(patience(t))
	}
	if !l.stale.Load() {
		t.Error("the served model isn't called stale")
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.poll(patience(t))
	}
	if l.stale.Load() {
		t.Error("the served model is still called stale")
	}
	for _, message := range []string{"can't be read", "can be read again", "there is a model to serve"} {
		if n := strings.Count(log.String(), message); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", message, n, log)
		}
	}
}

// A store that keeps a model for each of several partitions is refused. What was served before
// is served on, and the log says why once.
func TestModelsOfSeveralPartitions(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	teacher := newTeacher(t, store)
	teacher.learn(10)
	sum := teacher.save()
	l, log := newTestLoader(t, r)
	l.poll(patience(t))
	const partitions = "hamlet:{default}:0:partitions"
	if members, err := r.Members(partitions); err != nil || len(members) != 1 {
		t.Fatalf("%s has %v, %v", partitions, members, err)
	}
	if _, err := r.SAdd(partitions, "3"); err != nil {
		t.Fatal(err)
	}
	teacher.learn(10)
	teacher.save()
	fresh, said := newTestLoader(t, r)
	for range 3 {
		l.poll(patience(t))
		fresh.poll(patience(t))
	}
	if v := predicted(t, l); v.Model.SHA256 != sum || !l.stale.Load() {
		t.Errorf("the model %s is served, stale %v; want the one before, %s", v.Model.SHA256, l.stale.Load(), sum)
	}
	if fresh.current.Load() != nil || !fresh.stale.Load() {
		t.Error("a scorer that begins serves the model of one of the partitions")
	}
	for _, log := range []string{log.String(), said.String()} {
		if n := strings.Count(log, "hamlet log merge --from default"); n != 1 {
			t.Errorf("said %d times, want once:\n%s", n, log)
		}
	}

	if _, err := r.SRem(partitions, "3"); err != nil {
		t.Fatal(err)
	}
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != teacher.last || l.stale.Load() {
		t.Errorf("without the others the model %s is served, stale %v; want %s", v.Model.SHA256, l.stale.Load(), teacher.last)
	}
}

// After the store was wiped, the model stays in place and is called stale.
func TestWipedState(t *testing.T) {
	r := miniredis.RunT(t)
	teacher := newTeacher(t, openStore(t, r))
	teacher.learn(10)
	sum := teacher.save()
	l, _ := newTestLoader(t, r)
	l.poll(patience(t))
	r.FlushAll()
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != sum || !l.stale.Load() {
		t.Errorf("the model %s is served, stale %v; want %s, true", v.Model.SHA256, l.stale.Load(), sum)
	}
}

// The pinned version is served, even if the head moves.
func TestPinnedVersion(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	teacher := newTeacher(t, store)
	teacher.learn(10)
	first := teacher.save()
	head, err := store.Heading(patience(t), state.Head)
	if err != nil {
		t.Fatal(err)
	}
	l, _ := newTestLoader(t, r)
	teacher.learn(10)
	second := teacher.save()
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != second {
		t.Errorf("the model %s is served, want the second, %s", v.Model.SHA256, second)
	}
	if err := store.Pin(patience(t), head.Version); err != nil {
		t.Fatal(err)
	}
	l.poll(patience(t))
	if v := predicted(t, l); v.Model.SHA256 != first {
		t.Errorf("the model %s is served, want the pinned one, %s", v.Model.SHA256, first)
	}
}

// A pin whose version is lost is said in the log and in Info, until an operator ends it. The log says each change once.
func TestLostPinIsSaid(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	teacher := newTeacher(t, store)
	teacher.learn(10)
	first := teacher.save()
	teacher.learn(10)
	teacher.save()
	l, log := newTestLoader(t, r)
	s := &Scorer{rules: fixedRules, follower: &follower{}}
	s.follower.answering.Store(l)
	check := func(when string, pinned, lost bool, sum string) {
		t.Helper()
		for range 2 {
			l.poll(patience(t))
		}
		info, err := s.Info(patience(t))
		if err != nil {
			t.Fatal(err)
		}
		if info.Pinned != pinned || info.PinLost != lost || info.Model.SHA256 != sum || info.Stale {
			t.Errorf("%s: info %+v; want pinned %v, lost %v and the model %s", when, info, pinned, lost, sum)
		}
	}
	check("before the pin", false, false, teacher.last)
	if err := store.Pin(patience(t), 1); err != nil {
		t.Fatal(err)
	}
	check("pinned", true, false, first)
	r.Del("hamlet:{default}:0:version:1")
	teacher.learn(10)
	check("lost", false, true, teacher.save())
	if err := store.Unpin(patience(t)); err != nil {
		t.Fatal(err)
	}
	check("unpinned", false, false, teacher.last)
	for _, message := range []string{"an operator pinned a version", "level=WARN msg=\"the pinned version is gone", "no version is pinned any more"} {
		if n := strings.Count(log.String(), message); n != 1 {
			t.Errorf("%q is logged %d times, want once:\n%s", message, n, log)
		}
	}
}

// A readStore counts the checkpoints that are read.
type readStore struct {
	*redis.Store
	loads int
}

func (c *readStore) Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error) {
	c.loads++
	return c.Store.Load(ctx, which)
}

// What the learner of this process has just saved is served without a read, if the store names it. Anything
// else is read. A model that is handed over takes the place of one that was read.
func TestHandedModelIsServed(t *testing.T) {
	r := miniredis.RunT(t)
	store := &readStore{Store: openStore(t, r)}
	teacher := newTeacher(t, store.Store)
	s := New(Config{Store: store})
	saved := func() (c *state.Checkpoint, m *model.Model, version int64, sum string) {
		t.Helper()
		teacher.learn(10)
		sum = teacher.save()
		c, version, err := store.Store.Load(patience(t), state.Head)
		if err != nil {
			t.Fatal(err)
		}
		if m, err = teacher.model.Copy(); err != nil {
			t.Fatal(err)
		}
		c.Model = nil
		return c, m, version, sum
	}
	check := func(when, sum string, m *model.Model, loads int) {
		t.Helper()
		s.follower.poll(patience(t))
		if got := s.follower.current(); got == nil || got.ref.SHA256 != sum || store.loads != loads || m != nil && got.model != m {
			t.Errorf("%s: %+v is served after %d reads, want %s after %d", when, got, store.loads, sum, loads)
		}
		teacher.check(predicted(t, s.follower.answering.Load()))
	}
	c, first, version, name := saved()
	s.Saved(c, first, version)
	check("handed", name, first, 0)
	check("at the next poll", name, first, 0)

	old := c
	c, again, next, name := saved()
	s.Saved(old, first, version)
	check("an older one is handed", name, nil, 1)
	s.Saved(c, again, next)
	check("what was read is handed", name, again, 1)

	c, m, version, name := saved()
	s.Saved(c, m, version+1)
	check("a number that the store does not name", name, nil, 2)

	c, m, version, _ = saved()
	if err := store.Pin(t.Context(), version-1); err != nil {
		t.Fatal(err)
	}
	s.Saved(c, m, version)
	check("another version is pinned", name, nil, 2)
	if s.follower.handed.Load() != nil || s.follower.answering.Load().handed != nil {
		t.Error("the memory of a checkpoint that is not served is kept")
	}
}

// Saved returns when a scorer that runs serves what was handed over, without waiting for its next poll, or when it
// has ended. It gives back the model before once no question is answered from it.
func TestSavedGivesTheModelBeforeBack(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	teacher := newTeacher(t, store)
	s := New(Config{Store: store, PollInterval: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go s.follow(ctx)
	<-s.begun
	hand := func() (m, unused *model.Model) {
		t.Helper()
		teacher.learn(10)
		teacher.save()
		c, version, err := store.Load(patience(t), state.Head)
		if err != nil {
			t.Fatal(err)
		}
		if m, err = teacher.model.Copy(); err != nil {
			t.Fatal(err)
		}
		if unused = s.Saved(c, m, version); !s.follower.answering.Load().serves(m) {
			t.Fatal("what was handed over is not served")
		}
		return m, unused
	}
	first, none := hand()
	second, unused := hand()
	if none != nil || unused != first {
		t.Errorf("given back: %p, %p; want none and the first, %p", none, unused, first)
	}
	asked, idle := s.follower.use(), s.follower.use()
	idle.leave()
	go func() { // a question that ends while Saved waits, or before
		for s.follower.answering.Load().serves(second) {
			runtime.Gosched()
		}
		if n := asked.users.Load(); n != 1 {
			t.Errorf("%d questions are answered from the second, want 1", n)
		}
		asked.leave()
	}()
	if _, unused := hand(); unused != second || asked.users.Load() != 0 {
		t.Errorf("given back: %p with %d users; want the second, %p, and none", unused, asked.users.Load(), second)
	}
	cancel()
	<-s.ended
	if s.Saved(new(state.Checkpoint), nil, 1) != nil {
		t.Error("a scorer that has ended gives back a model")
	}
}

// Questions that come while models are handed over are answered from whole models, which a learner does not change
// meanwhile: the race detector looks.
func TestQuestionsWhileModelsAreGivenBack(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	teacher := newTeacher(t, store)
	s := New(Config{Store: store, PollInterval: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go s.follow(ctx)
	<-s.begun
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			for ctx.Err() == nil {
				request := &stream.Event{Body: stream.Body{Kind: stream.Text, Text: question}}
				if verdicts, err := s.Score(t.Context(), []*stream.Event{request}, false); err == nil {
					teacher.check(verdicts[0])
				}
			}
		})
	}
	given := 0
	for range 30 {
		teacher.learn(10)
		teacher.save()
		c, version, err := store.Load(patience(t), state.Head)
		if err != nil {
			t.Fatal(err)
		}
		m, err := teacher.model.Copy()
		if err != nil {
			t.Fatal(err)
		}
		if unused := s.Saved(c, m, version); unused != nil {
			given++
			teacher.model.Reclaim(unused, true)
		}
	}
	cancel()
	asking.Wait()
	if given == 0 {
		t.Error("no model was given back")
	}
}
