package vblr_test

import (
	"context"
	"fmt"

	"hamlet/algos/lab/vblr"
)

// All events at once, and every answer about one x.
func ExampleFit() {
	x := [][]float64{{1, 2}, {1, -1}, {1, 1.5}, {1, -2}, {1, 0.2}}
	y := []float64{1, -1, 1, -1, -1}
	b, err := vblr.Fit(context.Background(), x, y, vblr.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ln p(Y|X) ≥ %.2f after %d iterations\n", b.Bound, b.Iterations)
	m, a := b.Moments([]float64{1, 1})
	p := vblr.Predict(m, a, 0.9)
	fmt.Printf("p = %.3f (probit %.3f), 90 %% in [%.2f, %.2f]\n", p.Exact, p.Probit, p.Lo, p.Hi)
	fmt.Printf("bounds %.3f + %.3f < 1\n", p.BoundPlus, p.BoundMinus)
	// Output:
	// ln p(Y|X) ≥ -6.57 after 241 iterations
	// p = 0.656 (probit 0.659), 90 % in [0.32, 0.91]
	// bounds 0.647 + 0.342 < 1
}
