package viboost_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"hamlet/algos/lab/viboost"
)

// Two classifiers and five labels by the Gibbs sampler.
func ExampleGibbs() {
	f := [][]float64{{1, 1, -1, -1, 1}, {1, -1, -1, 1, 1}}
	y := []float64{1, 1, -1, -1, -1}
	m, err := viboost.Gibbs(context.Background(), viboost.GibbsConfig{}, f, y, rand.NewPCG(1, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("c = %.1f, θ = %.2f, w = %.2f\n", m.C, m.Theta, m.W)
	// Output:
	// c = [1.2 -0.3], θ = 0.53, w = [0.60 0.63 0.52 0.56 0.40]
}
