package learner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/service/background"
	"hamlet/cmd/internal/service/wire"
	"hamlet/state"
	"hamlet/stream"
)

// noisy is a model of eight dense numbers that rebuilds ensembles often.
func noisy() model.Config {
	return model.Config{
		TableBits: 8, DuplicateWindow: 5000, Dense: []string{"a", "b", "c", "d", "e", "f", "g", "h"},
		VectorEnsembles: []string{"logit-trees", "adaboost"}, Window: 400, Rebuild: 200,
	}
}

// vectors returns n labelled vectors, a noisy model that learnt them, and its alerts in
// order. From event from on, 30 % of the ham is labelled spam.
func vectors(t *testing.T, n, from int) ([]stream.Record, []stream.Alert, *model.Model) {
	t.Helper()
	return labelled(t, noisy(), n, func(i int, spam bool, u float64) bool { return spam || i >= from && u < .3 })
}

// labelled returns n vectors, each with the label that a function gives to its number, its
// true class and a random number. With them it returns a model that learnt them and its
// alerts in order. The classes differ by 1.6 standard deviations in four of eight numbers, so
// one in twenty true labels looks wrong.
func labelled(t *testing.T, cfg model.Config, n int, label func(i int, spam bool, u float64) bool) ([]stream.Record, []stream.Alert, *model.Model) {
	t.Helper()
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(11, 12))
	var (
		records []stream.Record
		alerts  []stream.Alert
	)
	for i := range n {
		spam := random.IntN(2) == 1
		body := stream.Body{Kind: stream.Vector}
		example := model.Example{ID: fmt.Sprint("e", i), Source: "s", Body: model.Body{Tenant: "t"}}
		for j, name := range noisy().Dense {
			x := random.NormFloat64()
			if j < 4 && spam {
				x += 1.6
			}
			body.Vector = append(body.Vector, stream.Number{Name: name, Value: x})
			example.Body.Vector = append(example.Body.Vector, feature.Number{Name: name, Value: x})
		}
		spam = label(i, spam, random.Float64())
		example.Spam = spam
		e := stream.Event{ID: example.ID, Source: "s", Tenant: "t", Label: stream.Ham, Body: body}
		if spam {
			e.Label = stream.Spam
		}
		example.Identity = identityOf(&e)
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, stream.Record{Key: []byte("t"), Value: value, Headers: headers})
		effect, err := m.Apply(&example)
		if err != nil {
			t.Fatal(err)
		}
		for k := range effect.Alerts {
			a := wire.Alert(&effect.Alerts[k])
			a.Model = "default"
			alerts = append(alerts, a)
		}
	}
	return records, alerts, m
}

// A late runner does no work before somebody waits for it, like a very slow machine. An
// early runner does it at once.
type late struct{}

func (late) Go(work func()) (wait func()) { return work }

type early struct{}

func (early) Go(work func()) (wait func()) { work(); return func() {} }

// A gate is a runner that does each task when the test allows it.
type gate struct {
	asked chan struct{} // the model waits for a task
	pass  chan struct{} // closed: all tasks may run
	group *sync.WaitGroup
}

func (g gate) Go(work func()) (wait func()) {
	done := make(chan struct{})
	g.group.Go(func() {
		<-g.pass
		work()
		close(done)
	})
	return func() {
		select {
		case g.asked <- struct{}{}:
		default:
		}
		<-done
	}
}

// The model's bytes and alerts do not depend on where and when the slow work is done.
func TestSlowRunner(t *testing.T) {
	r, n := newRig(t), newNATSRig(t)
	const events, from = 2600, 1800
	records, alerts, m := vectors(t, events, from)
	if !slices.ContainsFunc(alerts, func(a stream.Alert) bool { return a.Kind == stream.AlertLabelNoise }) {
		t.Fatalf("the stream raises no label noise, so that it shows nothing: %+v", alerts)
	}
	want := sum(t, m)
	r.produce(records...)
	beside := background.New(nil)
	defer beside.Close()
	for _, c := range []struct {
		name   string
		runner model.Runner
	}{{"none", nil}, {"early", early{}}, {"late", late{}}, {"beside", beside}} {
		t.Run(c.name, func(t *testing.T) {
			r.forget()
			cfg := r.config()
			cfg.Model, cfg.Runner, cfg.Alerts = noisy(), c.runner, n.publisher()
			cfg.Name = c.name // own message ids, or the stream would drop the alerts as copies
			r.learn(cfg, events)
			if c := r.head(); c.ModelSHA256 != want {
				t.Error("the model differs")
			}
			var wantIDs []string
			for _, a := range alerts {
				a.Model = c.name
				wantIDs = append(wantIDs, a.MessageID())
			}
			got := slices.DeleteFunc(n.ids(), func(id string) bool { return !strings.HasPrefix(id, c.name+".") })
			if !slices.Equal(got, wantIDs) {
				t.Errorf("the stream of alerts holds %v, want %v", got, wantIDs)
			}
		})
	}
}

func messageIDs(alerts []stream.Alert) (ids []string) {
	for i := range alerts {
		ids = append(ids, alerts[i].MessageID())
	}
	return ids
}

// A mortal store refuses saves after its learner is dead.
type mortal struct {
	Store
	mu   sync.Mutex
	dead bool
}

var errDead = errors.New("dead")

func (s *mortal) die() {
	s.mu.Lock()
	s.dead = true
	s.mu.Unlock()
}

func (s *mortal) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return 0, errDead
	}
	return s.Store.Save(ctx, c)
}

// A learner dies while an event waits for a running rebuild or SNR. The next learner
// starts this task again from the checkpoint. The bytes are the same, and each alert is
// stored once although both published it.
func TestDeathDuringARebuild(t *testing.T) {
	r, n := newRig(t), newNATSRig(t)
	const events, from = 2600, 1800
	records, alerts, m := vectors(t, events, from)
	r.produce(records...)
	for _, stop := range []int{2, 4, 3, 5, 4} { // the number of the wait in which it dies
		cfg := r.config()
		store := &mortal{Store: cfg.Store}
		cfg.Model, cfg.Alerts, cfg.Store, cfg.SaveEvery = noisy(), n.publisher(), store, 1
		cfg.Follow.MaxBatch = 20 // so that saves lie between the beginning of work and its end
		waits := 0
		g := gate{asked: make(chan struct{}, 1), pass: make(chan struct{}), group: new(sync.WaitGroup)}
		cfg.Runner = runnerFunc(func(work func()) func() {
			wait := late{}.Go(work)
			return func() {
				if waits++; waits == stop {
					wait = g.Go(work)
				}
				wait()
			}
		})
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		select {
		case <-g.asked:
			store.die()
			cancel()
			close(g.pass)
			if err := <-ended; !errors.Is(err, errDead) {
				t.Fatalf("the learner that died ended with %v", err)
			}
			g.group.Wait()
		case err := <-ended:
			cancel()
			t.Fatalf("the learner ended without the wait that it was to die in: %v", err)
		}
		cancel()
	}
	saved := r.head()
	if saved.Events == 0 || saved.Events >= events {
		t.Fatalf("the last that died had saved %d events", saved.Events)
	}
	cfg := r.config()
	cfg.Model, cfg.Alerts = noisy(), n.publisher()
	r.learn(cfg, events)
	if r.head().ModelSHA256 != sum(t, m) {
		t.Error("the model differs from one that never died")
	}
	if got, want := n.ids(), messageIDs(alerts); !slices.Equal(got, want) {
		t.Errorf("the stream of alerts holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

type runnerFunc func(work func()) (wait func())

func (f runnerFunc) Go(work func()) (wait func()) { return f(work) }
