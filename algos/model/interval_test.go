package model_test

import (
	"math"
	"strconv"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/ensemble"
	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

// contained fails if p leaves an interval, or an interval is not as it is documented.
func contained(t *testing.T, what string, p model.Prediction) {
	t.Helper()
	for _, z := range []float64{0, 1e-9, 0.5, 1, model.Z90, 3, 40} {
		lo, hi := p.Interval(z)
		s := z * math.Sqrt(p.Variance)
		central := [2]float64{logistic.Sigmoid(p.Mean - s), logistic.Sigmoid(p.Mean + s)}
		switch {
		case !(0 <= lo && lo <= p.P() && p.P() <= hi && hi <= 1):
			t.Fatalf("%s: %+v: p = %v is outside its interval [%v, %v] at ±%v", what, p, p.P(), lo, hi, z)
		case !(lo <= central[0] && central[1] <= hi):
			t.Fatalf("%s: %+v: [%v, %v] is narrower than σ(Mean ± %v standard deviations), %v", what, p, lo, hi, z, central)
		case !p.Skewed(z) && (lo < central[0]*(1-1e-9) || hi > 1-(1-central[1])*(1-1e-9)+1e-16):
			t.Fatalf("%s: %+v: [%v, %v] is wider than %v although p is inside", what, p, lo, hi, central)
		}
	}
	if want := blr.Predictive(p.Mean, p.Variance); p.LogOdds != want {
		t.Fatalf("%s: %+v: log-odds are not the belief's, %v", what, p, want)
	}
}

// lo ≤ p ≤ hi in every event of streams of each kind: sms with text experts alone, with an
// ensemble and a second head, and spambase with ensembles; from the first event, which
// the prior answers.
func TestProbabilityIsInItsInterval(t *testing.T) {
	sms := smsEvents(t)
	spambase, columns := spambaseEvents(t)
	for i := range spambase { // the file lists spam first
		j := (i * 1009) % len(spambase)
		spambase[i], spambase[j] = spambase[j], spambase[i]
	}
	beside := model.Config{TextExperts: []string{text.Lean}, TextEnsembles: []string{string(ensemble.RealAdaBoost)}, SecondHead: 0.99}
	for _, c := range []struct {
		name   string
		cfg    model.Config
		events []model.Example
	}{
		{"sms", model.Config{}, sms},
		{"sms with an ensemble", beside, sms[:1500]},
		{"spambase", model.Config{Dense: columns}, spambase[:2000]},
		{"spambase, merged columns", model.Config{}, spambase[:500]},
	} {
		m := newModel(t, c.cfg)
		first, err := m.NewPredictor().Predict(&c.events[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		contained(t, c.name+" before any event", first)
		skewed := 0
		for i := range c.events {
			effect, err := m.Apply(&c.events[i])
			if err != nil {
				t.Fatal(err)
			}
			p := effect.Prediction
			contained(t, c.name+" event "+strconv.Itoa(i), p)
			if p.Skewed(model.Z90) {
				skewed++
			}
		}
		t.Logf("%s: %d of %d intervals were widened", c.name, skewed, len(c.events))
		if skewed*10 > len(c.events) {
			t.Errorf("%s: %d of %d 90 %% intervals had to be widened, want at most 10 %%", c.name, skewed, len(c.events))
		}
	}
}

// A large variance makes p leave the central interval, which then reaches to p and no
// further.
func TestSkewedIntervalIsWidened(t *testing.T) {
	p := model.Prediction{Mean: -6, Variance: 1}
	p.LogOdds = -2 // such a belief is a mixture's; a Gaussian's interval holds p at 90 %
	if lo, hi := p.Interval(model.Z90); !p.Skewed(model.Z90) || hi != p.P() || lo != logistic.Sigmoid(-6-model.Z90) {
		t.Errorf("[%v, %v], want [σ(−6 − 1.645), %v]", lo, hi, p.P())
	}
	p.LogOdds = -5.6
	if lo, hi := p.Interval(model.Z90); p.Skewed(model.Z90) || lo != logistic.Sigmoid(-6-model.Z90) || hi != logistic.Sigmoid(-6+model.Z90) {
		t.Errorf("[%v, %v] is not the central interval", lo, hi)
	}
	p = model.Prediction{LogOdds: blr.Predictive(-40, 36), Mean: -40, Variance: 36}
	if !p.Skewed(model.Z90) {
		t.Errorf("%+v: E[σ(z)] by a tail of z is inside the central interval", p)
	}
	contained(t, "a skewed Gaussian", p)
}

// Before the first event only the bias of a vector's head is not 0. So its contribution
// has the standard deviation of the whole answer, which is √1.5 of the prior's.
func TestContributionHasTheBeliefsDeviation(t *testing.T) {
	m := newModel(t, model.Config{Dense: []string{"a"}})
	p, why, err := m.NewPredictor().Explain(&model.Body{Vector: []feature.Number{{Name: "a", Value: 7}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1.5 * 0.3; math.Abs(p.Variance-want) > 1e-15 {
		t.Errorf("variance %v, want %v", p.Variance, want)
	}
	for _, c := range why {
		want := 0.0
		if c.Name == "bias" {
			want = math.Sqrt(p.Variance)
		}
		if math.Abs(c.SD-want) > 1e-15 {
			t.Errorf("%s: standard deviation %v, want %v", c.Name, c.SD, want)
		}
	}
}
