package boost_test

import (
	"context"
	"fmt"

	"hamlet/algos/boost"
)

// Two numbers of each message: the percentage of capital letters, and how often it
// says "free".
func Example() {
	x := [][]float64{{10, 0}, {20, 0}, {10, 1}, {30, 0}, {70, 0}, {60, 3}, {20, 2}, {80, 1}}
	y := []float64{-1, -1, -1, -1, 1, 1, 1, 1}
	d, err := boost.NewData(x)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := b.Train(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range b.Rounds() {
		fmt.Printf("%-8v ε %.3f  α %.3f  training error %.3f ≤ ∏Z %.3f\n", r.Stump, r.Epsilon, r.Alpha, r.TrainError, r.Bound)
	}
	e := b.Ensemble()
	fmt.Printf("p = %.2f and %.2f\n", e.Prob([]float64{10, 0}), e.Prob([]float64{70, 4}))
	// Output:
	// x0 > 45  ε 0.125  α 0.973  training error 0.125 ≤ ∏Z 0.661
	// x0 > 15  ε 0.143  α 0.896  training error 0.125 ≤ ∏Z 0.463
	// x1 > 0.5 ε 0.083  α 1.199  training error 0.000 ≤ ∏Z 0.256
	// p = 0.00 and 1.00
}
