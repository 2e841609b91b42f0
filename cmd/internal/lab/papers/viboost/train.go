package viboost

import (
	"context"

	"hamlet/algos/boost"
	"hamlet/algos/viboost"
)

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
