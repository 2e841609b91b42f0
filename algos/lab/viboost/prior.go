package viboost

import (
	"errors"
	"fmt"
)

// A Prior is the belief before any label. The weight c of a base classifier and the
// noise grade ξ are v-Log([1,−1], 0, [μ, μ]) with μ = Mu0 and Mu0Prime. The probability
// θ that a label is true is Beta(Zeta[0], Zeta[1]). A field that is 0 means 1, the
// paper's choice.
type Prior struct {
	Mu0      float64    // μ₀: 2μ₀ phantom examples; h errs on half of them
	Mu0Prime float64    // μ₀′: phantom noisy labels of each sign
	Zeta     [2]float64 // ζ: phantom true labels, phantom noisy ones
}

// The parameters of a prior lie between 1/widest and widest.
const widest = 1e90

// fill sets the defaults and checks the other fields.
func (p *Prior) fill() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value *float64
	}{{"mu0", &p.Mu0}, {"mu0_prime", &p.Mu0Prime}, {"zeta[0]", &p.Zeta[0]}, {"zeta[1]", &p.Zeta[1]}} {
		if *f.value == 0 {
			*f.value = 1
		}
		if !(*f.value >= 1/widest && *f.value <= widest) {
			errs = append(errs, fmt.Errorf("viboost: %s is %v: want a number from %g to %g, or 0 for 1",
				f.name, *f.value, 1/widest, widest))
		}
	}
	return errors.Join(errs...)
}
