package blr

import (
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/normal"
)

// Expectations of σ, σ′ and ln σ under z ~ N(m, s²) by the trapezoidal rule, to
// some 1e−15 for any m and s, with the same bits on every CPU.
//
// For an analytic integrand the rule converges geometrically: with step h its
// error is about the integrand's size at distance d above the real axis times
// exp(−2πd/h). The nearest poles of σ are ±iπ, where the Gaussian has grown to
// exp(π²/2s²); the Gaussian alone costs exp(−2π²s²/h²). The step
//
//	h = min(0.4, 0.6·s)
//
// keeps both below 5e−17: exp(−2π²/0.4) = 4e−22, times exp(π²/2s²) = 7e4 at
// s = 2/3; exp(−2π²/0.36) = 2e−24.
//
// A Gaussian is negligible beyond 9 s. e^{±z} shifts the mass of σ·Gaussian by up to s²
// towards 0, so the range is wider by that. It has 30 nodes for s ≤ 2/3 and 45·s above.
// For large s the sum is over the difference of σ and its probit twin Φ(z/c), c = √(8/π),
// which is negligible for |z| > 40: 201 nodes. The twin has closed forms,
//
//	E[Φ(z/c)] = Φ(m/τ),   E[(z+cε)₊] = m·Φ(m/τ) + τ·ϕ(m/τ),   τ = √(c²+s²),
//
// ε ~ N(0, 1); the second, E over z of z·Φ(z/c) + c·ϕ(z/c), is the twin of
// ln(1+eᶻ).
const (
	widestStep = 0.4
	gaussStep  = 0.6
	reach      = 9.0 // standard deviations
	window     = 40.0
	wideS      = 6.0  // above it the twin is cheaper
	wildS      = 40.0 // where |m| > s²/2 leaves a result below e^−200
)

// twinScale2 is c² = 8/π: Φ(z/c) has the slope of σ at 0.
const twinScale2 = 8 / math.Pi

// nodes is a trapezoidal grid z = start + k·step, k = lo … hi, for N(m, s²).
type nodes struct {
	start, step float64
	lo, hi      int
}

// direct covers the Gaussian and where e^{±z} shifts it.
func direct(m, s float64) nodes {
	h := min(widestStep, float64(gaussStep*s))
	shift := min(float64(s*s), math.Abs(m))
	up, down := float64(reach*s), float64(reach*s)
	if m < 0 {
		up += shift
	} else {
		down += shift
	}
	return nodes{start: m, step: h, lo: -int(down / h), hi: int(up / h)}
}

// centred covers |z| ≤ 40, as far as the Gaussian reaches.
func centred(m, s float64) nodes {
	const n = window / widestStep
	lo, hi := (m-float64(reach*s))/widestStep, (m+float64(reach*s))/widestStep
	return nodes{step: widestStep, lo: int(min(max(lo, -n), n)), hi: int(max(min(hi, n), -n))}
}

// wide reports whether to sum the difference from the twin.
func wide(m, s float64) bool {
	return s > wildS || s > wideS && math.Abs(m) <= float64(0.5*float64(s*s))
}

// weight returns step·N(z; m, s²) for z = m + s·u.
func (n nodes) weight(u, s float64) float64 {
	return float64(n.step/s*(1/math.Sqrt(2*math.Pi))) * logistic.Exp(float64(-0.5*float64(u*u)))
}

// Exact returns E[σ(z)], z ~ N(m, a), the probability of label +1, by
// quadrature: its error is below 1e−14, and relative to the result below 1e−12
// down to e^−200. a ≥ 0; at a = 0 it is σ(m). Exact(−m, a) is the complement to
// full precision. It costs 30 exponentials for a ≤ ½, at most about 400 for
// a ≤ 36 and 200 beyond.
func Exact(m, a float64) float64 {
	if m > 0 {
		return 1 - Exact(-m, a)
	}
	s := math.Sqrt(a)
	if s == 0 || m == math.Inf(-1) {
		return logistic.Sigmoid(m)
	}
	if !wide(m, s) {
		n, sum := direct(m, s), 0.0
		for k := n.lo; k <= n.hi; k++ {
			z := m + float64(float64(k)*n.step)
			sum += float64(n.weight(float64(k)*n.step/s, s) * logistic.Sigmoid(z))
		}
		return min(sum, 1)
	}
	τ := math.Sqrt(twinScale2 + float64(s*s))
	n, sum := centred(m, s), 0.0
	for k := n.lo; k <= n.hi; k++ {
		z := float64(float64(k) * n.step)
		sum += float64(n.weight((z-m)/s, s) * (logistic.Sigmoid(z) - normal.CDF(z/math.Sqrt(twinScale2))))
	}
	return min(max(normal.CDF(m/τ)+sum, 0), 0.5)
}

// meanLogSigmoid returns E[ln σ(z)], z ~ N(m, s²).
func meanLogSigmoid(m, s float64) float64 {
	if s == 0 {
		return logistic.LogSigmoid(m)
	}
	if !wide(m, s) {
		n, sum := direct(m, s), 0.0
		for k := n.lo; k <= n.hi; k++ {
			z := m + float64(float64(k)*n.step)
			sum += float64(n.weight(float64(k)*n.step/s, s) * logistic.LogSigmoid(z))
		}
		return sum
	}
	c, τ := math.Sqrt(twinScale2), math.Sqrt(twinScale2+float64(s*s))
	n, sum := centred(m, s), 0.0
	for k := n.lo; k <= n.hi; k++ {
		z := float64(float64(k) * n.step)
		twin := float64(c*normal.PDF(z/c)) - float64(z*normal.CDF(-z/c))
		sum += float64(n.weight((z-m)/s, s) * (-logistic.LogSigmoid(z) - twin))
	}
	return -(float64(τ*normal.PDF(m/τ)) - float64(m*normal.CDF(-m/τ)) + sum)
}

// slopes are expectations under z = m + s·ε, ε ~ N(0, 1), of the likelihood of
// y = +1 and its derivatives.
type slopes struct {
	tail                  float64 // E σ(−z) = E[(ln σ)′]
	curve, curve1, curve2 float64 // E σσ̄, E ε·σσ̄, E ε²·σσ̄, σσ̄ = σ(z)σ(−z) = −(ln σ)″
}

func slopesAt(m, s float64) slopes {
	if s == 0 {
		p, q := logistic.Sigmoid(m), logistic.Sigmoid(-m)
		return slopes{tail: q, curve: float64(p * q), curve2: float64(p * q)}
	}
	var e slopes
	var n nodes
	twin := wide(m, s)
	if twin {
		n = centred(m, s)
	} else {
		n = direct(m, s)
	}
	for k := n.lo; k <= n.hi; k++ {
		z := n.start + float64(float64(k)*n.step)
		u := (z - m) / s
		if !twin {
			u = float64(k) * n.step / s
		}
		w := n.weight(u, s)
		t := logistic.Exp(-math.Abs(z))
		q, curve := t/(1+t), t/float64((1+t)*(1+t))
		if z < 0 {
			q = 1 / (1 + t)
		}
		curve = float64(w * curve)
		e.tail += float64(w * q)
		e.curve += curve
		e.curve1 += float64(curve * u)
		e.curve2 += float64(curve * float64(u*u))
	}
	if twin {
		e.tail = Exact(-m, float64(s*s))
	}
	return e
}
