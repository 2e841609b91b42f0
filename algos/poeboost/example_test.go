package poeboost_test

import (
	"context"
	"fmt"

	"hamlet/algos/boost"
	"hamlet/algos/poeboost"
)

// Seven mails, by their share of capitals and their number of links.
func Example() {
	x := [][]float64{{.05, 0}, {.10, 1}, {.08, 4}, {.40, 3}, {.55, 1}, {.30, 6}, {.35, 0}}
	y := []float64{-1, -1, -1, 1, 1, 1, -1}
	d, err := boost.NewData(x) // once per data set
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := poeboost.NewContinuous(d, y, poeboost.ContinuousConfig{Rounds: 3, Learner: poeboost.Step})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := b.Train(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range b.Rounds() {
		fmt.Printf("feature %d: ε_c %.3f, (6) %.3f, mean log likelihood %.3f\n",
			r.Hypothesis.Feature, r.ConfidenceError, r.Constraint, r.MeanLogLikelihood)
	}
	fmt.Printf("P(spam) = %.2f\n", b.Ensemble().Prob([]float64{.45, 2}))
	// Output:
	// feature 0: ε_c 0.052, (6) 1.786, mean log likelihood -0.575
	// feature 0: ε_c 0.068, (6) 1.829, mean log likelihood -0.496
	// feature 0: ε_c 0.087, (6) 1.870, mean log likelihood -0.443
	// P(spam) = 0.69
}
