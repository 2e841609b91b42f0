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
		for _, label := range []trust.Label{
			{Source: "desk", Spam: true, Q: 0.99, Prob: 0.99},
			{Source: "trap", Spam: false, Q: 0.99, Prob: 0.01},
		} {
			labels.Observe(label, labels.Weigh(label, policy))
		}
	}
	right := labels.Weigh(trust.Label{Source: "desk", Spam: true, Q: 0.99, Prob: 0.99}, policy)
	wrong := labels.Weigh(trust.Label{Source: "desk", Spam: false, Q: 0.01, Prob: 0.99}, policy)
	fmt.Printf("flip rate %.4f, trust %.2f and %.2f\n", labels.FlipRate(), right.Phi, wrong.Phi)
	// Output:
	// flip rate 0.0003, trust 1.00 and 0.97
}
