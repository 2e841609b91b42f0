package model_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

var small = model.Config{TableBits: 10, Dense: dense, DuplicateWindow: 50}

// A model is a function of its log: not of predictions in between, of save and
// restore points, or of a Predictor's history.
func TestModelIsAFunctionOfItsLog(t *testing.T) {
	events := madeUp(400, 1)
	for i := range events {
		events[i].Source = strings.Repeat("s", i%7)
	}
	cfg := small
	cfg.SpamShare = true // the more state, the better
	plain := newModel(t, cfg)
	apply(t, plain, events)

	busy := newModel(t, cfg)
	predictor := busy.NewPredictor()
	for i := range events {
		for _, k := range []int{i, 399 - i, 7} {
			if _, err := predictor.Predict(&events[k].Body); err != nil {
				t.Fatal(err)
			}
			if _, _, err := predictor.Explain(&events[k].Body); err != nil {
				t.Fatal(err)
			}
		}
		if i%97 == 0 || i < 3 {
			restored, err := model.Restore(bytesOf(t, busy))
			if err != nil {
				t.Fatal(err)
			}
			busy, predictor = restored, restored.NewPredictor()
		}
		before, err := predictor.Predict(&events[i].Body)
		if err != nil {
			t.Fatal(err)
		}
		effect, err := busy.Apply(&events[i])
		if err != nil {
			t.Fatal(err)
		}
		if effect.Prediction != before {
			t.Fatalf("event %d: Apply predicts %+v, Predict said %+v", i, effect.Prediction, before)
		}
	}
	if sumOf(t, plain) != sumOf(t, busy) {
		t.Error("predictions, saves and restores have changed the model")
	}
	if plain.Events() != 400 || plain.Spam() == 0 || plain.Spam() == 400 {
		t.Errorf("%d events, %d spam", plain.Events(), plain.Spam())
	}
}

func TestCopiesDoNotTick(t *testing.T) {
	events := madeUp(120, 2)
	once, twice := newModel(t, small), newModel(t, small)
	for i := range events {
		apply(t, once, events[i:i+1])
		apply(t, twice, events[i:i+1])
		for _, k := range []int{i, max(0, i-49)} { // the window holds 50
			again := events[k]
			again.Spam = !again.Spam // what names an event is not its label
			if effect, err := twice.Apply(&again); err != nil || !reflect.DeepEqual(effect, model.Effect{Duplicate: true}) {
				t.Fatalf("event %d again: %+v, %v", k, effect, err)
			}
		}
	}
	if sumOf(t, once) != sumOf(t, twice) {
		t.Error("copies have changed the model")
	}
	effect, err := twice.Apply(&events[0])
	if err != nil || effect.Duplicate {
		t.Errorf("a copy further back than the window: %+v, %v; want a new event", effect, err)
	}
}

// Tenant, source and id name an event together, and do not run into each other.
func TestWhatNamesAnEvent(t *testing.T) {
	m := newModel(t, small)
	message := &feature.Message{Body: []byte("hello")}
	for i, ex := range []model.Example{
		{ID: "a", Source: "b", Body: model.Body{Tenant: "c"}}, {ID: "a", Source: "b", Body: model.Body{Tenant: "d"}}, {ID: "a", Source: "d", Body: model.Body{Tenant: "c"}},
		{ID: "", Source: "ba", Body: model.Body{Tenant: "c"}}, {ID: "ab", Source: "", Body: model.Body{Tenant: "c"}}, {ID: "a", Source: "", Body: model.Body{Tenant: "cb"}},
	} {
		ex.Body.Message = message
		if effect, err := m.Apply(&ex); err != nil || effect.Duplicate {
			t.Errorf("event %d: %+v, %v", i, effect, err)
		}
	}
}

func TestRefusalsChangeNothing(t *testing.T) {
	m := newModel(t, small)
	apply(t, m, madeUp(60, 3))
	before := sumOf(t, m)
	whole := []feature.Number{{Name: "age", Value: 1}, {Name: "links", Value: 1}, {Name: "size", Value: 1}}
	with := func(i int, n feature.Number) []feature.Number {
		v := slices.Clone(whole)
		v[i] = n
		return v
	}
	for _, tt := range []struct {
		body model.Body
		want string
	}{
		{model.Body{}, "exactly one"},
		{model.Body{Message: &feature.Message{}, Vector: whole}, "exactly one"},
		{model.Body{Vector: []feature.Number{}}, `"age" is missing`},
		{model.Body{Vector: whole[:2]}, `"size" is missing`},
		{model.Body{Vector: with(1, feature.Number{Name: "link", Value: 1})}, `"links" is missing`},
		{model.Body{Vector: with(2, feature.Number{Name: "size", Value: math.NaN()})}, `"size" is not a finite number`},
		{model.Body{Vector: append(slices.Clone(whole), feature.Number{Name: "x", Value: math.Inf(1)})}, `"x" is not a finite number`},
		{model.Body{Vector: with(1, feature.Number{Name: "age", Value: 1})}, `"age" is given twice`},
	} {
		ex := model.Example{ID: "refused", Body: tt.body}
		_, err := m.Apply(&ex)
		var refused *model.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tt.want) {
			t.Errorf("Apply: %v, want a refusal with %q", err, tt.want)
		}
		if _, err := m.NewPredictor().Predict(&tt.body); !errors.As(err, &refused) {
			t.Errorf("Predict: %v, want a refusal with %q", err, tt.want)
		}
		if err := m.Check(&tt.body); !errors.As(err, &refused) {
			t.Errorf("Check: %v, want a refusal with %q", err, tt.want)
		}
	}
	if after := sumOf(t, m); after != before {
		t.Error("refused events have changed the model")
	}
	ok := model.Example{ID: "refused", Body: model.Body{Vector: whole}}
	if effect, err := m.Apply(&ok); err != nil || effect.Duplicate {
		t.Errorf("the id of a refused event, with a good body: %+v, %v", effect, err)
	}
}

// Before its first event a half answers by its prior: one half, and how wide.
func TestPriorAnswers(t *testing.T) {
	m := newModel(t, small)
	for _, ex := range madeUp(20, 4) {
		p, why, err := m.NewPredictor().Explain(&ex.Body)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := p.Interval(1.645)
		if p.P() != 0.5 || p.Mean != 0 || !(p.Variance > 0.05) || lo > 0.45 || hi < 0.55 || len(why) == 0 {
			t.Errorf("%+v, interval [%v, %v], %d reasons; want ½ and doubt", p, lo, hi, len(why))
		}
	}
	if m.Epsilon() != 0.1 || m.Events() != 0 {
		t.Errorf("ε %v after %d events", m.Epsilon(), m.Events())
	}
}

// The prior's answer is that of a half that exists but has learnt nothing alike:
// the first event's prediction equals the one before the half was there.
func TestPriorIsTheFirstEventsPrediction(t *testing.T) {
	for _, ex := range madeUp(20, 5) {
		m := newModel(t, small)
		want, err := m.NewPredictor().Predict(&ex.Body)
		if err != nil {
			t.Fatal(err)
		}
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		if got := effect.Prediction; got.Mean != want.Mean || math.Abs(got.Variance-want.Variance) > 1e-12 {
			t.Errorf("first prediction %+v, the prior's %+v", got, want)
		}
	}
}

func TestExplanationsAddUp(t *testing.T) {
	m := newModel(t, small)
	events := madeUp(300, 6)
	apply(t, m, events)
	p := m.NewPredictor()
	for _, ex := range events[:50] {
		prediction, why, err := p.Explain(&ex.Body)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := p.Predict(&ex.Body); err != nil || again != prediction {
			t.Errorf("Explain predicts %+v, Predict %+v, %v", prediction, again, err)
		}
		sum := 0.0
		for i, c := range why {
			sum += c.Contribution
			if c.SD < 0 || c.Name == "" || i > 0 && math.Abs(c.Contribution) > math.Abs(why[i-1].Contribution) {
				t.Errorf("reason %d is %+v after %+v", i, c, why[max(0, i-1)])
			}
		}
		if math.Abs(sum-prediction.Mean) > 1e-9 {
			t.Errorf("contributions add up to %v, the mean is %v", sum, prediction.Mean)
		}
		name := "fact: html"
		if ex.Body.Vector != nil {
			name = "links"
		}
		if !slices.ContainsFunc(why, func(c model.Contribution) bool { return c.Name == name }) {
			t.Errorf("no reason %q in %v", name, why)
		}
	}
}

// Flipped labels make ε rise, and get a small φ; clean ones make it fall.
func TestLabelTrust(t *testing.T) {
	m := newModel(t, model.Config{TableBits: 14, TextExperts: []string{text.Lean}})
	message := func(i int, spam bool) model.Example {
		words := fmt.Sprintf("minutes of meeting number %d, please review", i%17)
		if spam {
			words = fmt.Sprintf("CHEAP pills $%d!!! order now at pills.example", i%17)
		}
		return model.Example{ID: fmt.Sprint(i), Spam: spam, Body: model.Body{
			Message: &feature.Message{Body: []byte(words), BodyBytes: len(words)}}}
	}
	last := 0.0
	for i := range 1000 {
		ex := message(i, i%2 == 0)
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		last = effect.Epsilon
	}
	if last != m.Epsilon() || last > 0.005 {
		t.Errorf("ε %v after clean labels, want it near .0003", last)
	}
	lie := message(1000, true)
	lie.Spam = false
	if effect, err := m.Apply(&lie); err != nil || effect.Phi > 0.5 || effect.Epsilon <= last {
		t.Errorf("a lie: %+v, %v; want φ below ½ and ε above %v", effect, err, last)
	}
}

// The steady state allocates nothing, which is what lets a learner's cost be
// told from a profile.
func TestNothingIsAllocated(t *testing.T) {
	m := newModel(t, small)
	apply(t, m, madeUp(300, 7))
	events := madeUp(500, 8)
	for i := range events {
		events[i].ID = fmt.Sprint("other", i)
	}
	i := 0
	if n := testing.AllocsPerRun(200, func() {
		if _, err := m.Apply(&events[i]); err != nil {
			t.Fatal(err)
		}
		i++
	}); n > 0 && !raceDetector {
		t.Errorf("Apply allocates %v times an event", n)
	}
	r, reading := m.NewExtractor(), new(model.Extract)
	readAhead := func() {
		for k := range 50 {
			r.Read(reading, &events[k].Body)
			events[k].Body.Extract = nil
		}
	}
	readAhead()
	if n := testing.AllocsPerRun(5, readAhead); n > 0 {
		t.Errorf("50 bodies that are read ahead allocate %v times", n)
	}
	p := m.NewPredictor()
	predict := func() {
		for k := range 50 {
			if _, err := p.Predict(&events[k].Body); err != nil {
				t.Fatal(err)
			}
		}
	}
	predict()
	if n := testing.AllocsPerRun(5, predict); n > 0 {
		t.Errorf("50 predictions allocate %v times", n)
	}
}

// Another CPU may lack fused multiply-add: the same program with it switched off
// must make the same bytes.
func TestBitsDoNotDependOnFMA(t *testing.T) {
	const ask = "HAMLET_TEST_PRINT_MODEL_SUM"
	m := newModel(t, small)
	apply(t, m, madeUp(500, 9))
	sum := sumOf(t, m)
	if os.Getenv(ask) != "" {
		fmt.Println("sum:", sum)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestBitsDoNotDependOnFMA$", "-test.v")
	cmd.Env = append(os.Environ(), ask+"=1", "GODEBUG=cpu.fma=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("sum: "+sum)) {
		t.Errorf("with FMA %s, without:\n%s", sum, out)
	}
}
