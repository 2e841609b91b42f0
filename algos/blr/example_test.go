package blr_test

import (
	"fmt"
	"math"

	"hamlet/algos/blr"
)

// Three inputs: the constant 1, and two numbers of which the first decides.
func Example() {
	p, err := blr.New(blr.Config{Dim: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	events := []struct {
		x []float64
		y float64
	}{
		{[]float64{1, 2, 0.5}, 1}, {[]float64{1, -1, 0.4}, -1},
		{[]float64{1, 1.5, -1}, 1}, {[]float64{1, -2, -0.3}, -1},
	}
	for _, e := range events {
		p.Update(e.x, e.y, 1) // 1: the label is trusted in full
	}

	x := []float64{1, 1, -0.5}
	m, a := p.Moments(x)
	fmt.Printf("p = %.2f, log-odds %.2f ± %.2f\n", p.Prob(x), m, math.Sqrt(a))
	for j, c := range p.Contributions(nil, x) {
		fmt.Printf("input %d: %+.2f ± %.2f\n", j, c.Mean, c.SD)
	}
	// Output:
	// p = 0.73, log-odds 1.24 ± 1.11
	// input 0: -0.05 ± 0.81
	// input 1: +1.20 ± 0.65
	// input 2: +0.09 ± 0.46
}
