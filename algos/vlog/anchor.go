package vlog

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// An anchor evaluates g̃(t) = g(at+t) − g(at) − g′(at)·t, which at the mode, where
// g′ = 0, is what the density falls by. It is a sum of terms μ·D,
//
//	D(a, δ) = ln(1+e^(a+δ)) − ln(1+eᵃ) − σ(a)δ = ln(σ(−a)e^(−σ(a)δ) + σ(a)e^(σ(−a)δ)),
//
// none of them negative and D(a, δ) = D(−a, −δ), so that whatever the multiplicities
// nothing cancels: with e₂(x) = eˣ−1−x, D = ln(1 + σ(−a)e₂(−σ(a)δ) + σ(a)e₂(σ(−a)δ)).
type anchor struct {
	d    Density
	at   float64
	base []float64 // −|aₖ|, aₖ = βₖ(at−γₖ)
	sig  []float64 // σ(−|aₖ|)
	soft []float64 // ln(1+exp(−|aₖ|))
	rate []float64 // βₖ, negated where aₖ > 0
}

func (c *anchor) reset(d Density, at float64) {
	c.d, c.at = d, at
	n := len(d.Beta)
	for _, v := range []*[]float64{&c.base, &c.sig, &c.soft, &c.rate} {
		if cap(*v) < n {
			*v = make([]float64, n)
		}
		*v = (*v)[:n]
	}
	for k, b := range d.Beta {
		a := b * (at - d.Gamma[k])
		c.rate[k] = b
		if a > 0 {
			a, c.rate[k] = -a, -b
		}
		c.base[k] = a
		e := logistic.Exp(a)
		c.sig[k] = e / (1 + e)
		c.soft[k] = logistic.Log1p(e)
	}
}

// rise returns g̃(t) to a few units in the last place: 0 at 0, positive elsewhere.
func (c *anchor) rise(t float64) float64 {
	s := 0.0
	for k, m := range c.d.Mu {
		if m == 0 {
			continue
		}
		δ, p := c.rate[k]*t, c.sig[k]
		var D float64
		if δ < 1 && δ > -1 {
			x := float64(p * δ)
			D = logistic.Log1p(float64((1-p)*exp2nd(-x)) + float64(p*exp2nd(δ-x)))
		} else {
			D = Softplus(c.base[k]+δ) - c.soft[k] - float64(p*δ)
		}
		s += float64(m * D)
	}
	return s
}

// slope returns g̃′(t) = Σ μβ(σ(a+δ) − σ(a)), a sum of terms of t's sign.
func (c *anchor) slope(t float64) float64 {
	s := 0.0
	for k, m := range c.d.Mu {
		if m == 0 {
			continue
		}
		δ, p := c.rate[k]*t, c.sig[k]
		q := c.base[k] + δ
		var change float64
		if δ < 1 && δ > -1 {
			change = float64(float64(p*(δ+exp2nd(δ))) * logistic.Sigmoid(-q))
		} else {
			change = logistic.Sigmoid(q) - p
		}
		s += float64(float64(m*c.rate[k]) * change)
	}
	return s
}

// exp2nd returns eˣ−1−x for |x| < 1, within 4 ulp: Σ xʲ/j! from j = 2.
func exp2nd(x float64) float64 {
	// The first term left out is below 1/19! = 8·10⁻¹⁸, and at x = ±1 the sum
	// is at least 0.36. Below 1/8 ten terms fewer do.
	first := 18
	if x < 0.125 && x > -0.125 {
		first = 10
	}
	s := 0.0
	for j := first; j > 2; j-- {
		s = float64((1 + s) * float64(x*reciprocal[j]))
	}
	return float64(float64(x*x) * float64(0.5*(1+s)))
}

// reciprocal[j] is 1/j.
var reciprocal = [...]float64{0, 1, 1. / 2, 1. / 3, 1. / 4, 1. / 5, 1. / 6, 1. / 7, 1. / 8, 1. / 9, 1. / 10,
	1. / 11, 1. / 12, 1. / 13, 1. / 14, 1. / 15, 1. / 16, 1. / 17, 1. / 18}

// statistic returns ln(1 + exp(βₖ(at+t−γₖ))).
func (c *anchor) statistic(k int, t float64) float64 {
	a := -c.base[k]
	if c.rate[k] == c.d.Beta[k] {
		a = c.base[k]
	}
	return Softplus(a + float64(c.d.Beta[k]*t))
}

// curvature returns g″(at).
func (c *anchor) curvature() float64 {
	s := 0.0
	for k, m := range c.d.Mu {
		b := c.d.Beta[k]
		s += float64(float64(m*float64(b*b)) * float64(c.sig[k]*(1-c.sig[k])))
	}
	return s
}

// reach returns a t of the sign of side where g̃ lies between level and 1.5·level,
// as far as the numbers t can tell, and g̃ there.
func (c *anchor) reach(side, level float64) (t, height float64) {
	steepest := 0.0
	for k, b := range c.d.Beta {
		if c.d.Mu[k] > 0 {
			steepest = max(steepest, math.Abs(b))
		}
	}
	t = 1 / steepest
	if q := c.curvature(); q > 0 {
		t = min(t, math.Sqrt(2.4*level/q)) // g̃ = 1.2·level where g is a parabola
	}
	lo, hi := 0.0, math.Inf(1) // g̃(lo) < level, g̃(hi) > 1.5·level
	for {
		height = c.rise(side * t)
		switch {
		case height < level:
			lo = t
		case height > 1.5*level:
			hi = t
		default:
			return side * t, height
		}
		next := 2 * t
		if hi < math.Inf(1) {
			next = lo + (hi-lo)/2
			if next <= lo || next >= hi {
				return side * hi, c.rise(side * hi)
			}
		}
		t = next
	}
}
