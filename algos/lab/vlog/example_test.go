package vlog_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"hamlet/algos/lab/vlog"
)

// A weight z with a logistic prior, and three labels of examples on which a base
// classifier is right twice: each appends a term.
func Example() {
	d := vlog.Density{
		Beta:  []float64{1, -1, -1, -1, 1},
		Gamma: []float64{0, 0, 0, 0, 0},
		Mu:    []float64{1, 1, 1, 1, 1},
	}
	p, err := vlog.New(d)
	if err != nil {
		fmt.Println(err)
		return
	}
	approx, _ := d.ApproxMode(1)
	fmt.Printf("mode %.3f (by τ = 1: %.3f), mean %.3f ± %.3f\n", p.Mode(), approx, p.Mean(), math.Sqrt(p.Variance()))
	fmt.Printf("P(z ≤ 0) = %.3f, ln B = %.3f\n", p.CDF(0), p.LogNorm())

	s, err := vlog.NewSampler(d)
	if err != nil {
		fmt.Println(err)
		return
	}
	src := rand.NewPCG(1, 1)
	below := 0
	for range 10000 {
		if s.Draw(src) <= 0 {
			below++
		}
	}
	fmt.Printf("of 10000 draws %.1f %% are at most 0\n", float64(below)/100)
	// Output:
	// mode 0.405 (by τ = 1: 0.203), mean 0.500 ± 1.020
	// P(z ≤ 0) = 0.312, ln B = -2.485
	// of 10000 draws 31.4 % are at most 0
}
