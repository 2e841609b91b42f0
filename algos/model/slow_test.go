package model_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"hamlet/algos/drift"
	"hamlet/algos/ensemble"
	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// busy has ensembles and alarms that come often.
var busy = model.Config{
	TableBits: 8, Dense: []string{"a", "b", "c"}, SecondHead: 0.99, Window: 150, Rebuild: 100,
	VectorEnsembles: []string{string(ensemble.LogitTrees), string(ensemble.AdaBoost)},
}

// rings are labelled vectors that no line divides: spam lies around ham. From
// event flipped on, half of the labels are false.
func rings(n, flipped int, seed uint64) []model.Example {
	r := rand.New(rand.NewPCG(seed, 2))
	all := make([]model.Example, n)
	for i := range all {
		x := [3]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		spam := x[0]*x[0]+x[1]*x[1] > 1.4
		if i >= flipped && r.IntN(2) == 0 {
			spam = !spam
		}
		all[i] = model.Example{ID: fmt.Sprint("r", i), Source: []string{"desk", "trap"}[r.IntN(2)], Spam: spam,
			Body: model.Body{Tenant: "t", Vector: []feature.Number{{Name: "a", Value: x[0]}, {Name: "b", Value: x[1]}, {Name: "c", Value: x[2]}}}}
	}
	return all
}

// background runs work in goroutines that begin as soon as they may, late only
// when their result is wanted: the two ends of what a machine can do.
type background struct{ late bool }

func (b background) Go(work func()) (wait func()) {
	start, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		<-start
		work()
	}()
	if !b.late {
		close(start)
	}
	return func() {
		if b.late {
			close(start)
		}
		<-done
	}
}

// Whenever the slow work is computed, wherever a learner
// stops and goes on from its checkpoint, the bytes are the same; and so are the
// alerts and rebuilds that events report.
func TestWhatIsSlowChangesNoBit(t *testing.T) {
	events := rings(2600, 1800, 1)
	type told struct {
		alerts, rebuilds []string
	}
	run := func(t *testing.T, runner model.Runner, stops map[int]bool) (told, []byte) {
		m := newModel(t, busy)
		m.SetRunner(runner)
		var out told
		for i := range events {
			effect, err := m.Apply(&events[i])
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range effect.Alerts {
				s := fmt.Sprintf("%s %s %v %d %d.%d %v %v", a.Kind, a.Body, a.State, a.Event, a.Incident, a.Transition, a.Status, a.Diagnosis)
				if a.Report != nil {
					s += fmt.Sprintf(" %+v", *a.Report)
				}
				out.alerts = append(out.alerts, s)
			}
			for _, r := range effect.Rebuilds {
				out.rebuilds = append(out.rebuilds, fmt.Sprintf("%+v at %d", r, m.Events()))
			}
			if stops[i+1] {
				saved := bytesOf(t, m)
				if m, err = model.Restore(saved); err != nil {
					t.Fatalf("after %d events: %v", i+1, err)
				}
				if !bytes.Equal(bytesOf(t, m), saved) {
					t.Fatalf("after %d events: restored and saved, it has other bytes", i+1)
				}
				m.SetRunner(runner)
			}
		}
		return out, bytesOf(t, m)
	}
	want, wantBytes := run(t, nil, nil)
	if len(want.alerts) == 0 || len(want.rebuilds) != 2*(19+16) {
		t.Fatalf("%d alerts, %d rebuilds: %v %v", len(want.alerts), len(want.rebuilds), want.alerts, want.rebuilds)
	}
	often := map[int]bool{}
	for i := 7; i < len(events); i += 43 {
		often[i] = true
	}
	for _, tt := range []struct {
		name   string
		runner model.Runner
		stops  map[int]bool
	}{
		{"in the background", background{}, nil},
		{"as late as can be", background{late: true}, nil},
		{"stopped at every 43rd event", background{}, often},
		{"stopped where results are due", nil, map[int]bool{49: true, 50: true, 51: true, 99: true, 100: true, 101: true, 1000: true, 1050: true, 1051: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, gotBytes := run(t, tt.runner, tt.stops)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("told %v\nwant %v", got, want)
			}
			if !bytes.Equal(gotBytes, wantBytes) {
				t.Error("other bytes")
			}
		})
	}
}

// What is withdrawn takes no part in later rebuilds, and in one that is under way
// it does, also when the learner stops in between and starts it again.
func TestWithdrawnBetweenStartAndEffect(t *testing.T) {
	events := rings(400, 400, 3)
	run := func(stop int) []byte {
		m := newModel(t, busy)
		for i := range events {
			apply(t, m, events[i:i+1])
			if i%90 == 20 {
				take := events[i-10]
				take.Action, take.Of, take.ID = model.Unlearn, take.ID, "u"+take.ID
				apply(t, m, []model.Example{take})
			}
			if i == stop {
				var err error
				if m, err = model.Restore(bytesOf(t, m)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return bytesOf(t, m)
	}
	want := run(-1)
	for _, stop := range []int{119, 120, 210, 299} {
		if !bytes.Equal(run(stop), want) {
			t.Errorf("stopped after %d events, other bytes", stop+1)
		}
	}
}

// Where facts fight an ensemble two levels win. On rings a linear
// head is no better than the share of spam; with trees beside it most is known.
func TestEnsembleSeesWhatTheHeadCannot(t *testing.T) {
	alone := busy
	alone.VectorEnsembles, alone.SecondHead = []string{}, 0
	events := rings(1500, 1500, 4)
	with, without := prequential(t, busy, events), prequential(t, alone, events)
	if with.LogLoss > 0.7*without.LogLoss || with.Error > 0.5*without.Error {
		t.Errorf("log loss %.3f and error %.3f with ensembles, %.3f and %.3f without", with.LogLoss, with.Error, without.LogLoss, without.Error)
	}
}

// Contributions stay additive,
// and the interval has the head's doubt.
func TestContributionsOfAStackAddUp(t *testing.T) {
	for _, second := range []float64{0, 0.98} {
		cfg := busy
		cfg.SecondHead = second
		m := newModel(t, cfg)
		events := rings(420, 420, 5)
		apply(t, m, events[:400])
		p := m.NewPredictor()
		for _, ex := range events[400:] {
			prediction, all, err := p.Explain(&ex.Body)
			if err != nil {
				t.Fatal(err)
			}
			sum, ensembles := 0.0, 0
			for _, c := range all {
				sum += c.Contribution
				if strings.HasPrefix(c.Name, "ensemble: ") {
					ensembles++
				}
				if !(c.SD >= 0 && c.SD < 100) {
					t.Errorf("%+v", c)
				}
			}
			if math.Abs(sum-prediction.Mean) > 1e-9 || ensembles != 2 {
				t.Errorf("contributions add up to %v with %d ensembles, the mean is %v: %+v", sum, ensembles, prediction.Mean, all)
			}
			again, err := p.Predict(&ex.Body)
			if err != nil || again != prediction {
				t.Errorf("explained %+v, predicted %+v, %v", prediction, again, err)
			}
		}
	}
}

// Mail unlike all before it is in doubt, although an ensemble is sure.
func TestStackCarriesTheHeadsDoubt(t *testing.T) {
	m := newModel(t, busy)
	apply(t, m, rings(600, 600, 6))
	ask := func(c float64) model.Prediction {
		p, err := m.NewPredictor().Predict(&model.Body{Vector: []feature.Number{
			{Name: "a", Value: 0.1}, {Name: "b", Value: 0}, {Name: "c", Value: c}}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if known, odd := ask(0), ask(1e6); odd.Variance < 2*known.Variance {
		t.Errorf("variance %v of what is known, %v of what is not", known.Variance, odd.Variance)
	}
}

// A rebuild that cannot be leaves the ensemble before it, and says so.
func TestRebuildThatFailsKeepsTheOld(t *testing.T) {
	cfg := busy
	cfg.VectorEnsembles = []string{string(ensemble.LogitTrees)}
	m := newModel(t, cfg)
	apply(t, m, rings(300, 300, 7))
	served := func() string {
		_, all, err := m.NewPredictor().Explain(&rings(1, 1, 8)[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Name == "ensemble: logit-trees" {
				return fmt.Sprint(c.Contribution != 0)
			}
		}
		return "no ensemble"
	}
	failed := 0
	spam := rings(800, 800, 9)
	for i := range spam {
		spam[i].ID, spam[i].Spam = "s"+spam[i].ID, true
		effect, err := m.Apply(&spam[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range effect.Rebuilds {
			if r.Err != nil {
				failed++
				if r.Ensemble != "logit-trees" || r.Body != model.BodyVector || r.Started%50 != 0 {
					t.Errorf("%+v", r)
				}
			}
		}
	}
	if failed < 3 {
		t.Errorf("%d rebuilds on one class failed", failed)
	}
	if got := served(); got != "true" {
		t.Errorf("an ensemble that answers: %s", got)
	}
}

// Every kind runs, alone, beside mail and vectors, and its model is restored.
func TestEveryEnsembleRuns(t *testing.T) {
	for _, kind := range ensemble.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			m := newModel(t, model.Config{TableBits: 8, Dense: dense, Window: 60, Rebuild: 50,
				TextEnsembles: []string{string(kind)}, VectorEnsembles: []string{string(kind)}})
			events := madeUp(500, 20)
			for i := range events {
				effect, err := m.Apply(&events[i])
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range effect.Rebuilds {
					if r.Err != nil {
						t.Errorf("event %d: %+v", i, r)
					}
				}
			}
			saved := bytesOf(t, m)
			again, err := model.Restore(saved)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(bytesOf(t, again), saved) {
				t.Error("restored and saved, it has other bytes")
			}
			if n := m.WindowBytes(); n < 1000 || n > len(saved) {
				t.Errorf("%d bytes of windows in %d", n, len(saved))
			}
		})
	}
}

// The alarms read together, and an alarm that an event raised is the one that
// stands.
func TestAlarmsStand(t *testing.T) {
	m := newModel(t, model.Config{TableBits: 8, Dense: []string{"a", "b", "c"}})
	if m.Diagnosis() != drift.Nothing || len(m.Alarms()) != 0 {
		t.Error("alarms before the first event")
	}
	raised := map[string]bool{}
	open := map[uint64]model.Alert{} // the last alert of each incident that is not over
	events := rings(2600, 1800, 1)
	for i := range events {
		effect, err := m.Apply(&events[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range effect.Alerts {
			if a.Transition != open[a.Incident].Transition+1 {
				t.Errorf("event %d: %+v after %+v", i+1, a, open[a.Incident])
			}
			if open[a.Incident] = a; a.State == drift.Cleared || a.State == drift.Withdrawn {
				delete(open, a.Incident)
			}
			if a.Body != model.BodyVector || a.Event != uint64(i)+1 || (a.State == drift.Raised) == raised[a.Kind] {
				t.Errorf("event %d: %+v", i+1, a)
			}
			raised[a.Kind] = a.State == drift.Raised
		}
		for _, a := range m.Alarms() {
			if a.Status.Raised != raised[a.Kind] {
				t.Fatalf("event %d: %+v, told %v", i+1, a, raised)
			}
		}
		stand := m.Incidents()
		for _, at := range stand {
			if a, ok := open[at.Incident]; !ok || at.Kind != a.Kind || at.Transition != a.Transition || at.Body != a.Body {
				t.Fatalf("event %d: %+v is open, told %+v", i+1, at, a)
			}
		}
		if len(stand) != len(open) {
			t.Fatalf("event %d: %d incidents are open, told %d", i+1, len(stand), len(open))
		}
	}
	if !raised[drift.KindLabelNoise] || m.Diagnosis() != drift.LabelsWentBad {
		t.Errorf("half of the labels are false: %v, %v", raised, m.Diagnosis())
	}
}

func TestAlarmsAreOff(t *testing.T) {
	cfg := busy
	cfg.Alarms.Off = true
	m := newModel(t, cfg)
	apply(t, m, rings(400, 200, 1))
	if len(m.Alarms()) != 0 || m.Diagnosis() != drift.Nothing {
		t.Errorf("%+v", m.Alarms())
	}
	if _, err := model.Restore(bytesOf(t, m)); err != nil {
		t.Error(err)
	}
}

// Second head and stacker are repaired as the head is: after a mass of forged labels
// has been withdrawn they are again what the others made of them.
func TestWithdrawalReachesTheStack(t *testing.T) {
	cfg := model.Config{TableBits: 8, Dense: []string{"a", "b", "c"}, SecondHead: 0.999, VectorEnsembles: []string{}, LabelTrust: model.TrustNone}
	clean, m := newModel(t, cfg), newModel(t, cfg)
	good := rings(300, 300, 11)
	for i := range good {
		good[i].Spam = good[i].Body.Vector[0].Value > 0
	}
	apply(t, clean, good)
	apply(t, m, good)
	forged := rings(300, 300, 12)
	for i := range forged {
		forged[i].ID, forged[i].Spam = "f"+forged[i].ID, forged[i].Body.Vector[0].Value <= 0
	}
	apply(t, m, forged)
	for _, f := range forged {
		f.Action, f.Of, f.ID = model.Unlearn, f.ID, "u"+f.ID
		apply(t, m, []model.Example{f})
	}
	asked := &model.Body{Vector: []feature.Number{{Name: "a", Value: 2}, {Name: "b", Value: 0}, {Name: "c", Value: 0}}}
	want, err := clean.NewPredictor().Predict(asked)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.NewPredictor().Predict(asked)
	if err != nil {
		t.Fatal(err)
	}
	// What is left has forgotten something of the good in the meantime.
	if want.P() < 0.97 || got.P() < 0.95 {
		t.Errorf("p = %.3f after the repair, %.3f had nothing been forged", got.P(), want.P())
	}
}

// Thresholds of alarms can be changed on a living model; whether there are any
// cannot.
func TestAlarmsAreRetuned(t *testing.T) {
	m := newModel(t, busy)
	apply(t, m, rings(300, 300, 13))
	cfg := m.Config()
	cfg.Alarms.Drop, cfg.Alarms.Concept = 0.4, 40 // flip rates of rings are high: Confirmed counts
	if err := m.Adopt(cfg); err != nil {
		t.Fatal(err)
	}
	for _, a := range m.Alarms() {
		// That of label noise is the other one while ε is high.
		want := map[string]float64{
			drift.KindLabelNoise: 0.1, drift.KindCovariate: 0.65, drift.KindConcept: 40, drift.KindSource: 0.1, drift.KindUnknown: 1,
		}[a.Kind]
		if a.Status.Threshold != want {
			t.Errorf("%s has the threshold %v, want %v", a.Kind, a.Status.Threshold, want)
		}
	}
	again, err := model.Restore(bytesOf(t, m))
	if err != nil || len(again.Adoptions()) != 1 || again.Config().Alarms.Drop != 0.4 {
		t.Errorf("restored: %+v, %v", again, err)
	}
	cfg.Alarms = model.Alarms{Off: true}
	if err := m.Adopt(cfg); err == nil || !strings.Contains(err.Error(), "alarms") {
		t.Errorf("alarms off: %v", err)
	}
}
