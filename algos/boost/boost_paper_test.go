package boost

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/internal/logistic"
)

// near reports whether got is within a relative or absolute tolerance of want.
func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1, math.Abs(want))
}

// A task is a data set to boost on.
type task struct {
	name    string
	x       [][]float64
	y       []float64
	weights []float64
}

// tasks are small, hard, weighted and separable ones, of few distinct values.
func tasks() []task {
	r := rand.New(rand.NewPCG(11, 12))
	var out []task
	for _, rows := range []int{5, 40, 200} {
		x := drawRows(r, rows, 6, 40)
		y := drawLabels(r, x)
		weights := make([]float64, rows)
		for i := range weights {
			weights[i] = r.Float64() * float64(r.IntN(4))
		}
		out = append(out, task{"noisy", x, y, nil}, task{"weighted", x, y, weights})
	}
	x := drawRows(r, 60, 2, 30)
	y := make([]float64, len(x))
	for i := range y {
		y[i] = math.Copysign(1, x[i][0]+x[i][1]+0.01)
	}
	return append(out, task{"separable", x, y, nil})
}

// both returns the data as both searches have it.
func (k task) both(t *testing.T) []*Data { return []*Data{mustData(t, k.x), mustQuantise(t, k.x, 0)} }

// expCost returns Σω e^(−yf)/Σω.
func (s *sample) expCost() float64 {
	cost := 0.0
	for i, f := range s.f {
		cost += s.weights[i] * math.Exp(-s.y[i]*f)
	}
	return cost / s.total
}

// Reference: slides, 8: the training error is at most the mean of e^(−yf), which
// is ∏Z, at every round and for every booster that normalises by Z; slides, 12
// and 13: Z = 2√(ε(1−ε)) and ∏Z ≤ exp(−2Σγ²).
func TestProductOfZBoundsTheTrainingErrorAtEveryRound(t *testing.T) {
	for _, k := range tasks() {
		for _, d := range k.both(t) {
			a, err := NewAdaBoost(d, k.y, AdaBoostConfig{Weights: k.weights})
			if err != nil {
				t.Fatal(err)
			}
			for a.Round() {
				r := a.log[len(a.log)-1]
				if r.TrainError > r.Bound*(1+1e-12) || !near(r.Bound, a.expCost(), 1e-9) || r.TrainError != a.trainError() {
					t.Errorf("%s: training error %v, ∏Z %v, mean e^(−yf) %v", k.name, r.TrainError, r.Bound, a.expCost())
				}
				if r.Epsilon > separated && !near(r.Z, 2*math.Sqrt(r.Epsilon*(1-r.Epsilon)), 1e-12) {
					t.Errorf("%s: Z %v, 2√(ε(1−ε)) %v", k.name, r.Z, 2*math.Sqrt(r.Epsilon*(1-r.Epsilon)))
				}
				if r.Epsilon > separated && r.Bound > r.GammaBound*(1+1e-12) {
					t.Errorf("%s: ∏Z %v above exp(−2Σγ²) %v", k.name, r.Bound, r.GammaBound)
				}
			}
			if len(a.log) == 0 {
				t.Errorf("%s: no rounds", k.name)
			}
			real, err := NewRealAdaBoost(d, k.y, RealAdaBoostConfig{Weights: k.weights})
			if err != nil {
				t.Fatal(err)
			}
			for real.Round() {
				if r := real.log[len(real.log)-1]; r.TrainError > r.Bound*(1+1e-12) || !near(r.Bound, real.expCost(), 1e-9) {
					t.Errorf("%s: Real AdaBoost's training error %v, ∏Z %v, mean e^(−yf) %v", k.name, r.TrainError, r.Bound, real.expCost())
				}
			}
			if !d.Quantised() {
				continue
			}
			bh, err := NewBHBoost(d, k.y, BHBoostConfig{Weights: k.weights})
			if err != nil {
				t.Fatal(err)
			}
			for bh.Round() {
				if r := bh.log[len(bh.log)-1]; r.TrainError > r.Bound*(1+1e-12) || !near(r.Bound, bh.expCost(), 1e-9) {
					t.Errorf("%s: BHBoost's training error %v, ∏Z %v, mean e^(−yf) %v", k.name, r.TrainError, r.Bound, bh.expCost())
				}
			}
		}
	}
}

// plainAdaBoost is slide 7 word for word, with every candidate tried on every
// row.
func plainAdaBoost(x [][]float64, y []float64, rounds int) []AdaBoostRound {
	n := len(x)
	d := make([]float64, n)
	for i := range d {
		d[i] = 1 / float64(n)
	}
	fixed := make([]int64, n)
	var log []AdaBoostRound
	f := make([]float64, n)
	bound := 1.0
	for range rounds {
		Fix(fixed, d, y)
		h, edge := slowBest(x, fixed)
		if edge < 0 {
			break
		}
		ε := 0.0
		for i := range x {
			if h.Value(x[i]) != y[i] {
				ε += d[i]
			}
		}
		if ε >= 0.5-1e-12 {
			break
		}
		α := math.Log((1-max(ε, 1e-10))/max(ε, 1e-10)) / 2
		z := 0.0
		for i := range x {
			d[i] *= math.Exp(-α * y[i] * h.Value(x[i]))
			z += d[i]
		}
		wrong := 0
		for i := range x {
			d[i] /= z
			f[i] += α * h.Value(x[i])
			if (f[i] > 0) != (y[i] > 0) {
				wrong++
			}
		}
		bound *= z
		log = append(log, AdaBoostRound{Stump: h, Epsilon: ε, Alpha: α, Z: z, TrainError: float64(wrong) / float64(n), Bound: bound})
		if ε <= 1e-10 {
			break
		}
	}
	return log
}

// Reference: slides, 7.
func TestAdaBoostIsTheAlgorithmOfTheSlides(t *testing.T) {
	for _, k := range tasks() {
		if k.weights != nil {
			continue
		}
		want := plainAdaBoost(k.x, k.y, 30)
		for _, d := range k.both(t) {
			a, err := NewAdaBoost(d, k.y, AdaBoostConfig{Rounds: 30})
			mustTrain(t, a, err)
			if len(a.log) != len(want) {
				t.Fatalf("%s: %d rounds, want %d", k.name, len(a.log), len(want))
			}
			for i, r := range a.log {
				w := want[i]
				if r.Stump != w.Stump || !near(r.Epsilon, w.Epsilon, 1e-10) || !near(r.Alpha, w.Alpha, 1e-9) ||
					!near(r.Z, w.Z, 1e-10) || r.TrainError != w.TrainError || !near(r.Bound, w.Bound, 1e-10) {
					t.Errorf("%s, round %d: %+v, want %+v", k.name, i, r, w)
				}
			}
		}
	}
}

// Reference: slides, 11: α minimises Z; and after the round the hypothesis is no
// better than a coin.
func TestAlphaMinimisesZ(t *testing.T) {
	for _, k := range tasks() {
		a, err := NewAdaBoost(mustData(t, k.x), k.y, AdaBoostConfig{Weights: k.weights})
		if err != nil {
			t.Fatal(err)
		}
		before, after := make([]float64, len(k.x)), make([]float64, len(k.x))
		a.WeightsTo(before)
		for a.Round() {
			r := a.log[len(a.log)-1]
			z := func(α float64) float64 {
				sum := 0.0
				for i, x := range k.x {
					sum += before[i] * math.Exp(-α*k.y[i]*r.Stump.Value(x))
				}
				return sum
			}
			if r.Epsilon > separated && (z(r.Alpha-1e-3) < r.Z || z(r.Alpha+1e-3) < r.Z) || !near(z(r.Alpha), r.Z, 1e-12) {
				t.Errorf("%s: Z(α) = %v, beside it %v and %v", k.name, r.Z, z(r.Alpha-1e-3), z(r.Alpha+1e-3))
			}
			a.WeightsTo(after)
			sum, ε := 0.0, 0.0
			for i, x := range k.x {
				sum += after[i]
				if r.Stump.Value(x) != k.y[i] {
					ε += after[i]
				}
			}
			if !near(sum, 1, 1e-12) || r.Epsilon > separated && !near(ε, 0.5, 1e-12) {
				t.Errorf("%s: weights sum to %v, the hypothesis errs on %v of them", k.name, sum, ε)
			}
			copy(before, after)
		}
	}
}

// Reference: Schapire and Singer 1999, section 4.1: without smoothing
// Z = 2Σ√(W⁺W⁻), the least of all partitions and of all values on it.
func TestRealAdaBoostTakesThePartitionOfLeastZ(t *testing.T) {
	for _, k := range tasks() {
		for _, d := range k.both(t) {
			b, err := NewRealAdaBoost(d, k.y, RealAdaBoostConfig{Weights: k.weights, Smoothing: 1e-280, Rounds: 20})
			if err != nil {
				t.Fatal(err)
			}
			dist := make([]float64, len(k.x))
			for {
				b.WeightsTo(dist)
				if !b.Round() {
					break
				}
				r := b.log[len(b.log)-1]
				best, at := math.Inf(1), Split{}
				for j := range k.x[0] {
					for _, cut := range d.Cuts(j) {
						var w [2][2]float64
						for i, x := range k.x {
							w[Split{j, cut}.above(x)][class(k.y[i])] += dist[i]
						}
						if z := 2 * (math.Sqrt(w[0][0]*w[0][1]) + math.Sqrt(w[1][0]*w[1][1])); z < best-1e-11 {
							best, at = z, Split{j, cut}
						}
					}
				}
				if r.Tree.Root != at || !near(r.Z, best, 1e-9) {
					t.Errorf("%s: %v with Z %v, want %v with %v", k.name, r.Tree.Root, r.Z, at, best)
				}
				if best < 1e-6 {
					break
				}
			}
		}
	}
}

// Boosting estimates the log-odds: on data drawn from known probabilities the
// logistic trees come near them, and beat the base rate by far.
func TestLogitTreesEstimateProbabilities(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	truth := func(x []float64) float64 { return logistic.Sigmoid(2*x[0] - x[1]*x[2]) }
	x := drawRows(r, 4000, 4, 0)
	y := make([]float64, len(x))
	for i := range x {
		y[i] = -1
		if r.Float64() < truth(x[i]) {
			y[i] = 1
		}
	}
	b, err := NewLogitTrees(mustQuantise(t, x, 64), y, LogitTreesConfig{Depth: 2})
	mustTrain(t, b, err)
	e := b.Ensemble()
	loss, best, n := 0.0, 0.0, 4000
	for range n {
		x := []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		p, q := truth(x), e.Prob(x)
		best -= (p*math.Log(p) + (1-p)*math.Log(1-p)) / float64(n)
		loss -= (p*math.Log(q) + (1-p)*math.Log(1-q)) / float64(n)
	}
	if loss > best+0.03 {
		t.Errorf("log loss %.4f nats, of the truth %.4f", loss, best)
	}
}
