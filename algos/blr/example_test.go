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

// What has been learnt is withdrawn by its record, as it stands now.
func ExamplePosterior_Unlearn() {
	p, err := blr.New(blr.Config{Dim: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Update([]float64{1, 2}, 1, 1)
	wrong := p.Update([]float64{1, 1.5}, -1, 1)
	p.Update([]float64{1, -1}, -1, 1)
	x := []float64{1, 2}
	fmt.Printf("p = %.2f with the wrong label\n", p.Prob(x))

	receipt, err := p.Unlearn(wrong)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("p = %.2f without it: KL %.2f nats\n", p.Prob(x), receipt.KL)
	_, err = p.Unlearn(blr.Site{X: []float64{100, 100}, Y: 1, Phi: 1, Step: blr.Step{H: 0.2, Eta: 1}})
	fmt.Println(err)
	// Output:
	// p = 0.56 with the wrong label
	// p = 0.75 without it: KL 0.30 nats
	// blr: withdraw a site without which the precision is not positive definite: the site is not in the belief
}
