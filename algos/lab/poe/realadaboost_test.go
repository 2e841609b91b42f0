package poe_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/boost"
	"hamlet/algos/lab/poe"
	"hamlet/algos/poeboost"
)

func newData(tb testing.TB, x [][]float64) *boost.Data {
	tb.Helper()
	d, err := boost.NewData(x)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// noise draws rows of which the first features decide, with flipped labels.
func noise(seed uint64, n, dim int, flips float64) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(seed, 11))
	for range n {
		row := make([]float64, dim)
		for j := range row {
			row[j] = math.Round(100*r.NormFloat64()) / 100
		}
		label := math.Copysign(1, row[0]+0.7*row[1%dim]-0.4*row[2%dim]+0.1)
		if r.Float64() < flips {
			label = -label
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y
}

func newRealAdaBoost(tb testing.TB, x [][]float64, y []float64, cfg poe.RealAdaBoostConfig) *poe.RealAdaBoost {
	tb.Helper()
	b, err := poe.NewRealAdaBoost(newData(tb, x), y, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Reference: Schapire and Singer 1999, section 3: D ← D e^(−y f_t)/Z with Z = Σ D e^(−y f_t),
// ∏Z is the mean of e^(−yf), and D is ωe^(−yf) normalised. The oracle is the recursion by
// plain exponentials, from the hypotheses that the rounds report.
func TestRealAdaBoostByDefinition(t *testing.T) {
	x, y := noise(31, 150, 4, 0.1)
	ω := make([]float64, len(y))
	total := 0.0
	for i := range ω {
		ω[i] = float64(1 + i%3)
		total += ω[i]
	}
	for _, c := range []poe.RealAdaBoostConfig{
		{}, {Learner: poeboost.Step}, {Learner: poeboost.Step, Rate: 5},
		{Criterion: poe.LeastZ}, {Criterion: poe.LeastZ, Learner: poeboost.Step},
	} {
		c.Rounds, c.Weights = 20, ω
		b := newRealAdaBoost(t, x, y, c)
		d, f := make([]float64, len(y)), make([]float64, len(y))
		for i := range d {
			d[i] = ω[i] / total
		}
		product := 1.0
		weights, logOdds := make([]float64, len(y)), make([]float64, len(y))
		for b.Round() {
			rounds := b.Rounds()
			r := rounds[len(rounds)-1]
			z, p := 0.0, 0.0
			for i, row := range x {
				odds := math.Exp(r.Hypothesis.LogOdds(row)) // p/(1−p)
				correct := odds / (1 + odds)
				if y[i] < 0 {
					correct = 1 / (1 + odds)
				}
				p += d[i] * correct
				z += d[i] * math.Exp(-y[i]*0.5*math.Log(odds))
			}
			near(t, "Z", r.Z, z)
			near(t, "Σ D P(y | x, h)", r.MeanProbability, p)
			loss, likelihood, wrong := 0.0, 0.0, 0.0
			for i, row := range x {
				ft := 0.5 * r.Hypothesis.LogOdds(row)
				f[i] += ft
				d[i] *= math.Exp(-y[i]*ft) / z
				loss += ω[i] * math.Exp(-y[i]*f[i]) / total
				likelihood -= ω[i] * math.Log1p(math.Exp(-2*y[i]*f[i])) / total
				if (f[i] > 0) != (y[i] > 0) {
					wrong += ω[i] / total
				}
			}
			product *= r.Z
			near(t, "∏Z", product, loss)
			near(t, "mean log likelihood", r.MeanLogLikelihood, likelihood)
			near(t, "train error", r.TrainError, wrong)
			b.WeightsTo(weights)
			b.LogOddsTo(logOdds)
			for i := range d {
				near(t, "D by the recursion", weights[i], d[i])
				near(t, "D by the direct formula", weights[i], ω[i]*math.Exp(-y[i]*f[i])/(total*loss))
				near(t, "2f", logOdds[i], 2*f[i])
				near(t, "2f of the ensemble", b.Ensemble().LogOdds(x[i]), 2*f[i])
			}
		}
		if n := len(b.Rounds()); n < 10 {
			t.Errorf("%+v: only %d rounds", c, n)
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-10*(1+math.Abs(want))) {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// A round takes the feature with the best criterion under its weights. The oracle fits
// each feature alone.
func TestRealAdaBoostTakesTheBestFeature(t *testing.T) {
	x, y := noise(32, 120, 5, 0.15)
	for _, criterion := range []poe.Criterion{poe.MeanProbability, poe.LeastZ} {
		b := newRealAdaBoost(t, x, y, poe.RealAdaBoostConfig{Rounds: 8, Criterion: criterion})
		d := make([]float64, len(y))
		for k := 0; ; k++ {
			b.WeightsTo(d)
			if !b.Round() {
				break
			}
			best, least := -1, math.Inf(1)
			for j := range x[0] {
				column := make([][]float64, len(x))
				for i := range x {
					column[i] = x[i][j : j+1]
				}
				one := newRealAdaBoost(t, column, y, poe.RealAdaBoostConfig{Rounds: 1, Weights: d})
				if !one.Round() {
					continue
				}
				c := 1 - one.Rounds()[0].MeanProbability
				if criterion == poe.LeastZ {
					c = one.Rounds()[0].Z
				}
				if c < least {
					best, least = j, c
				}
			}
			if got := b.Rounds()[k].Hypothesis.Feature; got != best {
				t.Errorf("criterion %d, round %d: feature %d, the best is %d", criterion, k, got, best)
			}
		}
	}
}

// Separable, constant and extreme data give finite answers and a reason to stop.
func TestRealAdaBoostOnDegenerateData(t *testing.T) {
	for _, c := range []struct {
		name string
		x    [][]float64
		y    []float64
		stop boost.Stop
	}{
		{"separable", [][]float64{{1}, {2}, {3}, {4}}, []float64{-1, -1, 1, 1}, boost.Rounds},
		{"one class", [][]float64{{1, 2}, {3, 1}, {0, 0}}, []float64{-1, -1, -1}, boost.Rounds},
		{"constant and balanced", [][]float64{{1}, {1}}, []float64{1, -1}, boost.NoEdge},
		{"exclusive or", [][]float64{{0, 0}, {0, 1}, {1, 0}, {1, 1}}, []float64{1, -1, -1, 1}, boost.NoEdge},
		{"extreme", [][]float64{{math.MaxFloat64}, {-math.MaxFloat64}, {0}}, []float64{1, -1, 1}, boost.Rounds},
	} {
		for _, cfg := range []poe.RealAdaBoostConfig{
			{}, {Learner: poeboost.Step}, {Learner: poeboost.Step, Rate: poeboost.MaxRate}, {Criterion: poe.LeastZ},
		} {
			cfg.Rounds = 30
			b := newRealAdaBoost(t, c.x, c.y, cfg)
			if err := b.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			if b.Stopped() != c.stop {
				t.Errorf("%s, %+v: stopped by %v, want %v", c.name, cfg, b.Stopped(), c.stop)
			}
			e := b.Ensemble()
			for _, v := range []float64{0, 1, -1e300, 1e300, math.Inf(1), math.Inf(-1), math.NaN()} {
				row := make([]float64, len(c.x[0]))
				for j := range row {
					row[j] = v
				}
				if f := e.LogOdds(row); !(math.Abs(f) <= math.MaxFloat64) {
					t.Errorf("%s, %+v: log-odds %v at %v", c.name, cfg, f, v)
				}
			}
		}
	}
}

func TestRealAdaBoostRefusesBadConfigs(t *testing.T) {
	d := newData(t, [][]float64{{1}, {2}})
	for _, cfg := range []poe.RealAdaBoostConfig{
		{Rounds: -1}, {Rate: -1}, {Rate: math.Inf(1)}, {Learner: 9}, {Criterion: 9}, {Weights: []float64{1}},
	} {
		if _, err := poe.NewRealAdaBoost(d, []float64{1, -1}, cfg); err == nil {
			t.Errorf("%+v has no error", cfg)
		}
	}
}

// With Raw, features whose mean is 0 and whose deviation is 1 give the same hypotheses;
// others keep their scale.
func TestRawFeatures(t *testing.T) {
	x, y := [][]float64{{-1}, {1}, {-1}, {1}}, []float64{-1, 1, 1, 1}
	raw, standard := newRealAdaBoost(t, x, y, poe.RealAdaBoostConfig{Raw: true}), newRealAdaBoost(t, x, y, poe.RealAdaBoostConfig{})
	raw.Round()
	standard.Round()
	if raw.Rounds()[0] != standard.Rounds()[0] {
		t.Errorf("%+v, standardised %+v", raw.Rounds()[0], standard.Rounds()[0])
	}
	far := [][]float64{{99}, {101}, {99}, {101}}
	b, err := poeboost.NewContinuous(newData(t, far), y, poeboost.ContinuousConfig{Raw: true, Learner: poeboost.Step})
	if err != nil {
		t.Fatal(err)
	}
	b.Round()
	if h := b.Rounds()[0].Hypothesis; h.Mean != 0 || h.SD != 1 || h.Weight != 0.5*(-99+101+99+101)/4 {
		t.Errorf("raw hypothesis %+v", h)
	}
}
