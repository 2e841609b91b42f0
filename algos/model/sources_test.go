package model_test

import (
	"fmt"
	"math"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

// A sourceOracle is equation (3) over a map, forgetting nobody.
type sourceOracle struct {
	common         float64
	doubts, labels map[string]float64
}

func newSourceOracle() *sourceOracle {
	return &sourceOracle{0.1, map[string]float64{}, map[string]float64{}}
}

func (o *sourceOracle) rate(source string) float64 {
	if len(o.labels) < 2 {
		return o.common
	}
	return max(0.0003, (20*o.common+o.doubts[source])/(20+o.labels[source]))
}

func (o *sourceOracle) observe(source string, effect model.Effect) {
	o.common = effect.Epsilon
	o.doubts[source] = 0.99*o.doubts[source] + 1 - effect.Phi
	o.labels[source] = 0.99*o.labels[source] + 1
}

// believed is equation (1), φ of a label that was predicted so. q is the moderated
// probability by the head's own variance, without the answer's inflation.
func believed(effect model.Effect, spam bool, ε, common float64) float64 {
	p := effect.Prediction
	q := 1 / (1 + math.Exp(-p.Mean/math.Sqrt(1+math.Pi*(p.Variance/1.5)/8)))
	if !spam {
		q = 1 - q
	}
	return max(math.Pow(2*common, 8), (1-ε)*q/((1-ε)*q+ε*(1-q)))
}

// said is a short mail of a source; what it is about says whether it is spam.
func said(i int, spam bool, source string) model.Example {
	text := fmt.Sprintf("minutes of meeting number %d, please review", i%17)
	if spam {
		text = fmt.Sprintf("CHEAP pills $%d!!! order now at pills.example", i%17)
	}
	return model.Example{ID: fmt.Sprint(i), Source: source, Spam: spam, Body: model.Body{
		Message: &feature.Message{Body: []byte(text), BodyBytes: len(text)}}}
}

// Reference: equations (1) and (3). One of three sources lies every other time.
func TestSourcesAreTrustedApart(t *testing.T) {
	m, oracle := newModel(t, model.Config{TableBits: 12, TextExperts: []string{text.Lean}}), newSourceOracle()
	for i := range 1500 {
		source := []string{"desk", "user", "liar"}[i%3]
		ex := said(i, i/3%2 == 0, source)
		if source == "liar" && i/3%4 < 2 {
			ex.Spam = !ex.Spam
		}
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		// 1−q of a saturated prediction has the rounding of q.
		if want := believed(effect, ex.Spam, oracle.rate(source), oracle.common); math.Abs(effect.Phi-want) > 1e-9 {
			t.Fatalf("event %d of %s: φ = %v, want %v by ε_s = %v", i, source, effect.Phi, want, oracle.rate(source))
		}
		oracle.observe(source, effect)
	}
	honest, liar := oracle.rate("desk"), oracle.rate("liar")
	if honest > 0.05 || liar < 0.3 || math.Abs(honest-oracle.rate("user")) > 0.02 {
		t.Errorf("the honest sources have ε_s = %v and %v, the liar %v", honest, oracle.rate("user"), liar)
	}
	if newcomer := oracle.rate("new"); newcomer != oracle.common {
		t.Errorf("a newcomer has ε_s = %v, the common rate is %v", newcomer, oracle.common)
	}
}

// With one source there is one rate, and with TrustByAll as well.
func TestCommonFlipRate(t *testing.T) {
	for _, tt := range []struct {
		cfg     model.Config
		sources int
	}{
		{model.Config{TableBits: 12, TextExperts: []string{text.Lean}}, 1},
		{model.Config{TableBits: 12, TextExperts: []string{text.Lean}, TrustBy: model.TrustByAll}, 3},
	} {
		m, ε := newModel(t, tt.cfg), 0.1
		for i := range 300 {
			ex := said(i, i/3%2 == 0, fmt.Sprint("s", i%tt.sources))
			if i%3 == 2 {
				ex.Spam = !ex.Spam
			}
			effect, err := m.Apply(&ex)
			if err != nil {
				t.Fatal(err)
			}
			if want := believed(effect, ex.Spam, ε, ε); math.Abs(effect.Phi-want) > 1e-9 {
				t.Fatalf("%+v: event %d: φ = %v, want %v by ε = %v", tt.cfg, i, effect.Phi, want, ε)
			}
			ε = effect.Epsilon
		}
	}
}

// 4,096 sources have rates; who has been silent for longest makes room.
func TestSourcesAreBounded(t *testing.T) {
	const most = 4096
	cfg := model.Config{TableBits: 8, TextExperts: []string{text.LeanOpening}, Standing: model.StandingNone, Alarms: model.Alarms{Off: true}}
	m, oracle := newModel(t, cfg), newSourceOracle()
	i := 0
	say := func(source string, lie bool) model.Effect {
		ex := said(i, i%2 == 0, source)
		if lie {
			ex.Spam = !ex.Spam
		}
		i++
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		if want := believed(effect, ex.Spam, oracle.rate(source), oracle.common); math.Abs(effect.Phi-want) > 1e-9 {
			t.Fatalf("event %d of %s: φ = %v, want %v", i, source, effect.Phi, want)
		}
		oracle.observe(source, effect)
		return effect
	}
	for range 100 {
		say("first", true)
		say("second", true)
		say("honest", false)
	}
	for k := range most - 3 {
		say(fmt.Sprint("crowd", k), false)
	}
	full := len(bytesOf(t, m))
	say("first", true) // all are known, and second has been silent for longest
	say("straw", false)
	if n := len(bytesOf(t, m)); n != full+2*8+len("straw")-len("second") { // the keys of two events, and names
		t.Errorf("one source more than %d, and the model grows by %d bytes, want 15", most, n-full)
	}
	if last := oracle.rate("second"); last < 2*oracle.common {
		t.Fatalf("second has ε_s = %v, the common rate is %v: forgetting it would not show", last, oracle.common)
	}
	delete(oracle.doubts, "second")
	delete(oracle.labels, "second")
	m, err := model.Restore(bytesOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	say("second", true)
	say("first", true)
}
