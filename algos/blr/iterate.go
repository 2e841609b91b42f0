package blr

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// iterateJJ follows the paper's script for y = +1: from ξ = 0 it iterates (31)
// until the bound (60) changes relatively by less than tolerance, at most 100
// times. ηw = ηᵀw and logDet = ln|V| are those of the belief before the event.
// Multiplied out, (60) at ξ is
//
//	½(ηᵀw + r·m + (φ/2)(m + r·a)) + ½(ln|V| − ln q) + φ(ln σ(ξ) − ξ/2 + λξ²).
func iterateJJ(m, a, phi, ηw, logDet, tolerance float64) Step {
	const maxIterations = 100
	bound := func(ξ float64, st Step) float64 {
		λ, _ := lambda(ξ)
		quad := ηw + float64(st.R*m) + float64(st.Eta*(m+float64(st.R*a)))
		det := logDet - logistic.Log1p(float64(st.H*a))
		local := logistic.LogSigmoid(ξ) - float64(0.5*ξ) + float64(λ*float64(ξ*ξ))
		return float64(0.5*(quad+det)) + float64(phi*local)
	}
	st := touchAt(0, m, a, phi)
	last := bound(0, st)
	for range maxIterations {
		mean := m + float64(st.R*a)
		ξ := math.Sqrt(a/(1+float64(st.H*a)) + float64(mean*mean))
		st = touchAt(ξ, m, a, phi)
		b := bound(ξ, st)
		if math.Abs(last-b) < float64(tolerance*math.Abs(b)) {
			break
		}
		last = b
	}
	return st
}

func validTolerance(x float64) bool { return x > 0 && x <= math.MaxFloat64 }

// Lambda returns λ(ξ) = tanh(ξ/2)/(4ξ), half the curvature of the bound that
// touches at ±ξ, ξ ≥ 0. It falls from 1/8 at 0, and tends to 1/(4ξ).
func Lambda(ξ float64) float64 {
	λ, _ := lambda(ξ)
	return λ
}
