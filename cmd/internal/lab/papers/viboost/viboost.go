// Laboratory: the experiments of one source.

// Package viboost computes the figures and claims of VIBoost again: A Bayesian Boosting
// Model, by Lorbert, Blei, Schapire and Ramadge.
//
// The paper's figures are pictures without numbers. What its text says of them is stated
// as bounds on what the run computes.
package viboost

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/lab/viboost"
	"hamlet/cmd/internal/lab/experiment"
)

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{figure5, figure6, figure7, figure8, figure9, figure10, stopping, elbo, channel}
}

// runs is how many runs the paper averages over (section 7).
const runs = 40

// trained runs VIBoost with the paper's prior.
func trained(ctx context.Context, x [][]float64, y []float64, cfg viboost.Config) (*viboost.Booster, error) {
	d, err := boost.NewData(x)
	if err != nil {
		return nil, err
	}
	b, err := viboost.New(d, y, cfg)
	if err != nil {
		return nil, err
	}
	return b, b.Train(ctx)
}

// adaBoost runs AdaBoost and returns its terms.
func adaBoost(ctx context.Context, x [][]float64, y []float64, rounds int) ([]viboost.Term, error) {
	d, err := boost.NewData(x)
	if err != nil {
		return nil, err
	}
	b, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: rounds})
	if err != nil {
		return nil, err
	}
	if err := b.Train(ctx); err != nil {
		return nil, err
	}
	var terms []viboost.Term
	for _, r := range b.Rounds() {
		terms = append(terms, viboost.Term{Stump: r.Stump, Alpha: r.Alpha})
	}
	return terms, nil
}

// errorsAt returns the share of wrong signs after each of the given numbers of terms. A
// sum of 0 counts as −1. If training ended earlier, its last sum stands.
func errorsAt(terms []viboost.Term, x [][]float64, y []float64, at []int) []float64 {
	sum := make([]float64, len(x))
	var shares []float64
	done := 0
	for _, n := range at {
		end := min(n, len(terms))
		for _, term := range terms[done:end] {
			for i, row := range x {
				sum[i] += term.Alpha * term.Stump.Value(row)
			}
		}
		done = end
		wrong := 0
		for i, v := range sum {
			if (v > 0) != (y[i] > 0) {
				wrong++
			}
		}
		shares = append(shares, float64(wrong)/float64(len(x)))
	}
	return shares
}

// DrawStep draws the step data with θ = .8: see drawStep.
func DrawStep(seed uint64) (x [][]float64, y []float64) {
	return drawStep(rand.New(rand.NewPCG(seed, 1)), .8)
}

// drawStep draws the step data of section 7: 100 points −99, −97, …, 99. A label is true,
// the sign of x, with probability theta; else it is +1 with probability ¾, whose log-odds
// are ln 3.
func drawStep(r *rand.Rand, theta float64) (x [][]float64, y []float64) {
	for v := -99; v <= 99; v += 2 {
		x = append(x, []float64{float64(v)})
		label := math.Copysign(1, float64(v))
		if isTrue, plus := r.Float64() < theta, r.Float64() < 0.75; !isTrue {
			if label = -1; plus {
				label = 1
			}
		}
		y = append(y, label)
	}
	return x, y
}

// DrawLongServedio draws 1,200 rows of the Long–Servedio data with the sums of S.7's code.
func DrawLongServedio(seed uint64) (x [][]float64, y []float64) {
	return drawLongServedio(rand.New(rand.NewPCG(seed, 2)), 1200, -1)
}

// drawLongServedio draws rows of 31 signs by S.7 with n = 10. Every label is noise: +1
// with probability .8. sign is −1 for the sums that S.7's code draws, +1 for those that
// its comment and the book have (Schapire and Freund, section 12.3).
func drawLongServedio(r *rand.Rand, rows int, sign float64) (x [][]float64, y []float64) {
	vector := func(n, k int) []float64 {
		v := make([]float64, n)
		for i := range v {
			if v[i] = -sign; i < (k+n)/2 {
				v[i] = sign
			}
		}
		r.Shuffle(n, func(i, j int) { v[i], v[j] = v[j], v[i] })
		return v
	}
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	for range rows {
		var row []float64
		switch u := r.Float64(); {
		case u < 0.25:
			row = append(ones(21), vector(10, 0)...)
		case u < 0.75:
			row = append(vector(21, 1), vector(10, -2)...)
		default:
			row = append(vector(21, 1), ones(10)...)
		}
		label := -1.0
		if r.Float64() < 0.8 {
			label = 1
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y
}
