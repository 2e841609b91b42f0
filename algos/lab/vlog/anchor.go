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
// none of them negative, so nothing cancels: D(a, δ) = D(−a, −δ), and with
// e₂(x) = eˣ−1−x, D = ln(1 + σ(−a)e₂(−σ(a)δ) + σ(a)e₂(σ(−a)δ)).
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
		δ, p := float64(c.rate[k]*t), c.sig[k]
		var D float64
		switch {
		case δ < 1 && δ > -1:
			x := float64(p * δ)
			D = logistic.Log1p(float64((1-p)*exp2nd(-x)) + float64(p*exp2nd(δ-x)))
		case math.IsInf(δ, 0):
			return math.Inf(1)
		default:
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
		δ, p := float64(c.rate[k]*t), c.sig[k]
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

// exp2nd returns eˣ−1−x for |x| < 1, within 4 ulp: x²·Σ xʲ/(j+2)!, j = 0…16, of
// which the first term left out is below 1/19! = 8·10⁻¹⁸ where the sum is at least
// 0.36. It runs in pairs and pairs of pairs (Estrin), a shorter chain than Horner's.
func exp2nd(x float64) float64 {
	const (
		c0, c1, c2, c3     = 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120
		c4, c5, c6, c7     = 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880
		c8, c9, c10, c11   = 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800
		c12, c13, c14, c15 = 1.0 / 87178291200, 1.0 / 1307674368000, 1.0 / 20922789888000, 1.0 / 355687428096000
		c16                = 1.0 / 6402373705728000
	)
	x2 := float64(x * x)
	x4 := float64(x2 * x2)
	x8 := float64(x4 * x4)
	q0 := (c0 + float64(c1*x)) + float64((c2+float64(c3*x))*x2)
	q1 := (c4 + float64(c5*x)) + float64((c6+float64(c7*x))*x2)
	q2 := (c8 + float64(c9*x)) + float64((c10+float64(c11*x))*x2)
	q3 := (c12 + float64(c13*x)) + float64((c14+float64(c15*x))*x2)
	low := q0 + float64(q1*x4)
	high := (q2 + float64(q3*x4)) + float64(c16*x8)
	return float64(x2 * (low + float64(high*x8)))
}

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
