package blr

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// solveExactRVGA solves, for y = +1, R-VGA's stationary point with exact
// expectations. In the units of the belief before, m′ = m + √a·δ, s′ = a·κ², it
// is the minimum of
//
//	J(δ, κ) = −φ·E[ln σ(m′ + √s′·ε)] + ½δ² + ½κ² − ln κ,   ε ~ N(0, 1),
//
// up to a constant the KL divergence from the Gaussian to belief times likelihood. J is
// strictly convex, because −ln σ is convex: it has one minimum, where
//
//	∂J/∂δ = δ − φ√a·E[σ(−z)]               = 0:  δ√a = r·a
//	∂J/∂κ = κ − 1/κ + φaκ·E[σ(z)σ(−z)]     = 0:  s′ = a/(1 + a·h)
//
// (E[ε·σ(−z)] = −√s′·E[σσ̄] by Stein). Newton's method starts at the probit site and
// halves a step that passes the minimum along its line. −J there is the bound of the log
// evidence.
func solveExactRVGA(m, a, phi float64) Step {
	if a == 0 {
		e := slopesAt(m, 0)
		h, r := curvature(phi, e), float64(phi*e.tail)
		return Step{H: h, R: r, Eta: r + float64(h*m), Evidence: float64(phi * meanLogSigmoid(m, 0))}
	}
	root, aφ := math.Sqrt(a), float64(a*phi)
	start := solveRVGA(m, a, phi)
	δ, κ := float64(start.R*root), 1/math.Sqrt(1+float64(start.H*a))

	var e slopes
	gradient := func(δ, κ float64) (gδ, gκ float64) {
		e = slopesAt(m+float64(root*δ), float64(root*κ))
		return δ - float64(float64(root*phi)*e.tail), κ - 1/κ + float64(float64(aφ*κ)*e.curve)
	}
	gδ, gκ := gradient(δ, κ)
	for range maxSteps {
		// Newton's direction; the Hessian is positive definite.
		hδδ, hδκ := 1+float64(aφ*e.curve), float64(aφ*e.curve1)
		hκκ := 1 + 1/float64(κ*κ) + float64(aφ*e.curve2)
		det := float64(hδδ*hκκ) - float64(hδκ*hδκ)
		dδ := (float64(hδκ*gκ) - float64(hκκ*gδ)) / det
		dκ := (float64(hδκ*gδ) - float64(hδδ*gκ)) / det
		last := math.Abs(dδ) <= exactTolerance*(1+math.Abs(δ)) && math.Abs(dκ) <= exactTolerance*κ
		slope := float64(gδ*dδ) + float64(gκ*dκ) // < 0
		t := 1.0
		if dκ < -0.5*κ {
			t = -0.5 * κ / dκ // κ stays positive
		}
		for {
			gδ, gκ = gradient(δ+float64(t*dδ), κ+float64(t*dκ))
			// J is convex along the line: its slope there rises through 0 at the
			// minimum, and a step that has not passed it by much is good.
			if last || t < 1e-6 || float64(gδ*dδ)+float64(gκ*dκ) <= -0.9*slope {
				break
			}
			t *= 0.5
		}
		δ, κ = δ+float64(t*dδ), κ+float64(t*dκ)
		if last {
			break
		}
	}

	h, r := curvature(phi, e), float64(phi*e.tail)
	mean, s := m+float64(root*δ), float64(root*κ)
	lnκ := -0.5 * logistic.Log1p(float64(h*a)) // κ² = 1/(1+ha)
	kl := float64(0.5*(float64(δ*δ)+float64(κ*κ)-1)) - lnκ
	return Step{H: h, R: r, Eta: r + float64(h*mean), Evidence: float64(phi*meanLogSigmoid(mean, s)) - kl}
}

// curvature returns φ·E[σσ̄], which is φ/4 at most; the weights of a quadrature may
// add up to a few 1e−16 more than 1.
func curvature(phi float64, e slopes) float64 { return min(float64(phi*e.curve), 0.25*phi) }

// exactTolerance is the relative size of the last step of Newton's method. It
// converges quadratically, so only rounding errors remain.
const exactTolerance = 1e-10
