package trust_test

import (
	"fmt"

	"hamlet/algos/trust"
)

// The model is sure of a label that a source then reverses.
func Example() {
	labels := trust.New()
	policy := trust.Policy{Heads: true, Experts: true, BySource: true}
	for range 500 {
		labels.Observe("desk", labels.Weigh(0.99, "desk", policy).Phi, true)
		labels.Observe("trap", labels.Weigh(0.99, "trap", policy).Phi, false)
	}
	right, wrong := labels.Weigh(0.99, "desk", policy), labels.Weigh(0.01, "desk", policy)
	fmt.Printf("flip rate %.4f, trust %.2f and %.2f\n", labels.FlipRate(), right.Phi, wrong.Phi)
	// Output:
	// flip rate 0.0003, trust 1.00 and 0.97
}
