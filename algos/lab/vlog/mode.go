package vlog

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// Mode returns the one maximum of f: the root of (2) in the package's text, to
// rounding. It panics where Check would report ErrImproper. A handful of passes
// over the K terms, and no allocation.
func (d Density) Mode() float64 { return d.ModeFrom(0) }

// ModeFrom is Mode with a first guess. The guess changes the last bit at most.
func (d Density) ModeFrom(guess float64) float64 {
	lo, hi, steepest := d.bracket()
	z := min(max(guess, lo), hi)
	before := math.Inf(1) // the step before the last
	last := hi - lo
	for range 300 {
		l, slope := d.balance(z)
		switch {
		case l == 0:
			return z
		case l > 0:
			hi = z
		default:
			lo = z
		}
		next := z - l/slope
		newton := next >= lo && next <= hi && math.Abs(next-z) <= before/2
		if !newton {
			next = lo + (hi-lo)/2
		}
		step := math.Abs(next - z)
		// Newton's next error is about max|β|·step²/2, and below 2⁻⁵² of z
		// there is nothing left to move.
		if newton && float64(step*steepest) <= 1e-9 || step <= 0x1p-52*math.Abs(z) || next == lo && next == hi {
			return next
		}
		before, last = last, step
		z = next
	}
	return z
}

// bracket returns bounds of the mode and max|β|. Let p be Σ μβ over the positive
// slopes and n that of |β| over the negative ones. To the right of every knot by t
// the former pull with at least p/2 and the latter with at most n·e^(−t·min|β|), so
// that g′ > 0 from t = ln(2n/p)/min|β| on. The left is the mirror image.
func (d Density) bracket() (lo, hi, steepest float64) {
	d.checkLengths()
	lo, hi = math.Inf(1), math.Inf(-1)
	var p, n float64
	gentleP, gentleN := math.Inf(1), math.Inf(1)
	for k, b := range d.Beta {
		w := float64(d.Mu[k] * math.Abs(b))
		switch {
		case w == 0:
			continue
		case b > 0:
			p += w
			gentleP = min(gentleP, b)
		default:
			n += w
			gentleN = min(gentleN, -b)
		}
		lo, hi = min(lo, d.Gamma[k]), max(hi, d.Gamma[k])
		steepest = max(steepest, math.Abs(b))
	}
	if p == 0 || n == 0 {
		panic("vlog: " + ErrImproper.Error())
	}
	tilt := logistic.Log(p) - logistic.Log(n)
	lo -= max(0, math.Ln2+tilt) / gentleP
	hi += max(0, math.Ln2-tilt) / gentleN
	return lo, hi, steepest
}

// balance returns L(z) and its derivative. A term with a = β(z−γ) > 0 pulls with
// μβσ(a) = μβ − μβσ(−a); the first parts are summed apart, and where they cancel,
// as between knots that lie far apart, the small second parts still decide:
//
//	g′ = ℓ + Σ ±μ|β|σ(−|a|),   ℓ = Σ_{a>0} μβ                            (3)
//
// P is what is positive in (3), N the magnitude of what is negative.
func (d Density) balance(z float64) (l, slope float64) {
	var p, n, dp, dn float64
	var linear sum
	for k, m := range d.Mu {
		b := d.Beta[k]
		if m == 0 || b == 0 {
			continue
		}
		a := b * (z - d.Gamma[k])
		if a > 0 {
			linear.add(float64(m * b))
		}
		e := logistic.Exp(-math.Abs(a))
		c := 1 / (1 + e) // σ(|a|)
		w := float64(float64(m*math.Abs(b)) * float64(e*c))
		dw := float64(w * float64(math.Abs(b)*c))
		if rises(b, a) {
			p += w
			dp += dw
		} else {
			n += w
			dn += dw
		}
	}
	ℓ := linear.value()
	p += max(ℓ, 0)
	n += max(-ℓ, 0)
	const tiny = 1e-200 // below it digits may have been lost to underflow
	if p < tiny || n < tiny || p/n < tiny || n/p < tiny {
		return d.balanceInLogs(z, ℓ)
	}
	return logistic.Log(p / n), dp/p + dn/n
}

// rises reports whether a term's small part in (3) is positive.
func rises(b, a float64) bool { return (b > 0) == (a <= 0) }

// balanceInLogs is balance where σ underflows.
func (d Density) balanceInLogs(z, ℓ float64) (l, slope float64) {
	pMax, nMax := math.Inf(-1), math.Inf(-1)
	if ℓ > 0 {
		pMax = logistic.Log(ℓ)
	} else if ℓ < 0 {
		nMax = logistic.Log(-ℓ)
	}
	var p, n, dp, dn float64
	if ℓ > 0 {
		p = 1
	} else if ℓ < 0 {
		n = 1
	}
	for k, b := range d.Beta {
		m := d.Mu[k]
		if m == 0 || b == 0 {
			continue
		}
		a := b * (z - d.Gamma[k])
		w := logistic.Log(m) + logistic.Log(math.Abs(b)) + logistic.LogSigmoid(-math.Abs(a))
		pull := float64(math.Abs(b) * logistic.Sigmoid(math.Abs(a)))
		if rises(b, a) {
			p, dp, pMax = addLog(p, dp, pMax, w, pull)
		} else {
			n, dn, nMax = addLog(n, dn, nMax, w, pull)
		}
	}
	return (pMax - nMax) + logistic.Log(p/n), dp/p + dn/n
}

// addLog adds eʷ to a sum s·eᵐ, and eʷ·pull to a sum ds·eᵐ, and returns them with
// m the largest exponent so far.
func addLog(s, ds, m, w, pull float64) (float64, float64, float64) {
	if w > m {
		shrink := logistic.Exp(m - w)
		return float64(s*shrink) + 1, float64(ds*shrink) + pull, w
	}
	e := logistic.Exp(w - m)
	return s + e, ds + float64(e*pull), m
}

// ApproxMode returns the mode (17) of the tail approximation with τ > 0,
//
//	1/(2τβ) · ln( Σ_{βₖ<0} μₖe^{τβγₖ} / Σ_{βₖ>0} μₖe^{−τβγₖ} ),
//
// by log-sum-exp, and whether there is one: the slopes must be of one magnitude β.
// With all knots equal it is exact for τ = ½ and half of the way from the knot to
// the mode for τ = 1. It panics where Check would report ErrImproper and for a τ
// that is not positive.
func (d Density) ApproxMode(τ float64) (float64, bool) {
	d.checkLengths()
	if !(τ > 0) {
		panic("vlog: tau is not positive")
	}
	β := 0.0
	pMax, nMax := math.Inf(-1), math.Inf(-1)
	for k, b := range d.Beta {
		if k == 0 {
			β = math.Abs(b)
		}
		if math.Abs(b) != β || b == 0 {
			return 0, false
		}
		if m := d.Mu[k]; m > 0 {
			// b·γ is βγ with the sign that either sum needs, negated.
			if w := logistic.Log(m) - float64(float64(τ*b)*d.Gamma[k]); b > 0 {
				pMax = max(pMax, w)
			} else {
				nMax = max(nMax, w)
			}
		}
	}
	if math.IsInf(pMax, -1) || math.IsInf(nMax, -1) {
		panic("vlog: " + ErrImproper.Error())
	}
	var p, n float64
	for k, b := range d.Beta {
		m := d.Mu[k]
		if m == 0 {
			continue
		}
		if w := logistic.Log(m) - float64(float64(τ*b)*d.Gamma[k]); b > 0 {
			p += logistic.Exp(w - pMax)
		} else {
			n += logistic.Exp(w - nMax)
		}
	}
	return ((nMax - pMax) + logistic.Log(n/p)) / (2 * τ * β), true
}
