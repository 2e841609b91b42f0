package vlog

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// A Density is f(z) = Π (1 + exp[βₖ(z−γₖ)])^−μₖ, not normalised. The caller owns the
// slices. Terms with slope or multiplicity 0 are allowed and constant.
type Density struct {
	Beta  []float64 // slopes β
	Gamma []float64 // knots γ
	Mu    []float64 // multiplicities μ ≥ 0
}

// largest bounds knots; slopes and multiplicities are 0 or have magnitudes in
// [1/largest, largest]. Products of three stay finite.
const largest = 1e90

// ErrImproper is the cause of Check's error when f has no finite integral: a
// positive and a negative slope, each with a positive multiplicity, are needed
// (Lemma S.1.1). Give the variable a prior with both.
var ErrImproper = errors.New("the density cannot be normalised: " +
	"it needs a positive and a negative slope with positive multiplicities")

// Check returns an error that names each wrong parameter, joined, or nil. It
// panics if the three lengths differ.
func (d Density) Check() error {
	d.checkLengths()
	var errs []error
	rises, falls := false, false
	for k, b := range d.Beta {
		switch m := d.Mu[k]; {
		case !(math.Abs(b) <= largest) || b != 0 && math.Abs(b) < 1/largest:
			errs = append(errs, fmt.Errorf("beta[%d] is %v: want 0 or a magnitude from %g to %g",
				k, b, 1/largest, float64(largest)))
		case !(m >= 0 && m <= largest) || m != 0 && m < 1/largest:
			errs = append(errs, fmt.Errorf("mu[%d] is %v: want 0 or a number from %g to %g", k, m, 1/largest, float64(largest)))
		case m > 0 && b > 0:
			rises = true
		case m > 0 && b < 0:
			falls = true
		}
		if g := d.Gamma[k]; !(math.Abs(g) <= largest) {
			errs = append(errs, fmt.Errorf("gamma[%d] is %v: want a magnitude up to %g", k, g, float64(largest)))
		}
	}
	if len(errs) == 0 && !(rises && falls) {
		errs = append(errs, ErrImproper)
	}
	return errors.Join(errs...)
}

func (d Density) checkLengths() {
	if len(d.Gamma) != len(d.Beta) || len(d.Mu) != len(d.Beta) {
		panic(fmt.Sprintf("vlog: %d slopes, %d knots, %d multiplicities", len(d.Beta), len(d.Gamma), len(d.Mu)))
	}
}

// LogAt returns ln f(z) in nats, at most 0. It is finite for every finite z that
// is no further out than the parameters may be. O(K).
func (d Density) LogAt(z float64) float64 {
	d.checkLengths()
	var s sum
	for k, m := range d.Mu {
		if m != 0 {
			s.add(-float64(m * Softplus(d.Beta[k]*(z-d.Gamma[k]))))
		}
	}
	return s.value()
}

// Softplus returns ln(1+eᵃ), the sufficient statistic (34) at a = β(z−γ): a to
// rounding above 37, eᵃ to rounding below −37.
func Softplus(a float64) float64 {
	if a > 0 {
		return a + logistic.Log1p(logistic.Exp(-a))
	}
	return logistic.Log1p(logistic.Exp(a))
}

// A sum compensates the rounding error of each addition (Neumaier 1974).
type sum struct{ total, lost float64 }

func (s *sum) add(x float64) {
	t := s.total + x
	if math.Abs(s.total) >= math.Abs(x) {
		s.lost += (s.total - t) + x
	} else {
		s.lost += (x - t) + s.total
	}
	s.total = t
}

func (s *sum) value() float64 { return s.total + s.lost }
