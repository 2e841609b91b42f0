// Laboratory: the experiments of one source.

// Package slides computes what the lecture slides on boosting claim: bounds along a run,
// margins, the game of boosting, logistic regression, BHBoost, AnyBoost and entropies.
//
// The slides print few numbers. Their theorems are stated as bounds on what a run
// computes, over every round.
package slides

import (
	"context"
	"math"
	"math/rand/v2"

	"hamlet/algos/boost"
	"hamlet/cmd/internal/lab/experiment"
)

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{adaboostBounds, margins, informationExperiment, play, logistic, bhboost, anyboost}
}

// apart notes how far two numbers lie apart, relative above 1.
func apart(most *float64, a, b float64) {
	*most = max(*most, math.Abs(a-b)/max(1, math.Abs(b)))
}

// A split is rows to learn from and rows to test on.
type split struct {
	x, test [][]float64
	y, told []float64
}

// divide shuffles the rows and takes three quarters to learn from.
func divide(x [][]float64, y []float64, r *rand.Rand) split {
	x, y = experiment.Shuffled(x, y, r)
	part := len(x) * 3 / 4
	return split{x: x[:part], test: x[part:], y: y[:part], told: y[part:]}
}

// trained runs AdaBoost over stumps.
func trained(ctx context.Context, x [][]float64, y []float64, rounds int) (*boost.AdaBoost, error) {
	d, err := boost.NewData(x)
	if err != nil {
		return nil, err
	}
	b, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: rounds})
	if err != nil {
		return nil, err
	}
	return b, b.Train(ctx)
}

// A sum is f of some rows, to which terms are added.
type sum struct {
	x [][]float64
	y []float64
	f []float64
}

func newSum(x [][]float64, y []float64) *sum { return &sum{x, y, make([]float64, len(x))} }

// add adds a hypothesis with real values.
func (s *sum) add(h func(x []float64) float64) {
	for i, row := range s.x {
		s.f[i] += h(row)
	}
}

// errors returns the share of wrong signs; f = 0 counts as −1.
func (s *sum) errors() float64 {
	wrong := 0.0
	for i, f := range s.f {
		if (f > 0) != (s.y[i] > 0) {
			wrong++
		}
	}
	return wrong / float64(len(s.f))
}

// mean returns the mean of cost(yf).
func (s *sum) mean(cost func(margin float64) float64) float64 {
	total := 0.0
	for i, f := range s.f {
		total += cost(s.y[i] * f)
	}
	return total / float64(len(s.f))
}

func exponential(margin float64) float64 { return math.Exp(-margin) }
