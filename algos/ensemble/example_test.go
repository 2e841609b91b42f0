package ensemble_test

import (
	"context"
	"fmt"

	"hamlet/algos/ensemble"
)

// A window of 200 events with two inputs, of which the first tells spam. Every
// tenth label is wrong, and its trust says so.
func Example() {
	w := &ensemble.Window{Dim: 2}
	for i := range 200 {
		x, y, trust := float32(i%20), -1.0, 1.0
		if x > 12 {
			y = 1
		}
		if i%10 == 3 {
			y, trust = -y, 0.1
		}
		w.Inputs = append(w.Inputs, x, float32(i%7))
		w.Labels, w.Weights = append(w.Labels, y), append(w.Weights, trust)
	}
	r := ensemble.Build(context.Background(), []ensemble.Kind{ensemble.LogitTrees}, w)[0]
	if r.Err != nil {
		fmt.Println(r.Err)
		return
	}
	e := r.Ensemble
	fmt.Printf("%s: P(spam) = %.2f at 10 and %.2f at 15\n", e.Kind(), e.Prob([]float64{10, 3}), e.Prob([]float64{15, 3}))
	// Output:
	// logit-trees: P(spam) = 0.00 at 10 and 0.99 at 15
}
