package poeboost

import (
	"math"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// A Univariate is the hypothesis of POEBoost.CS, logistic regression on one
// feature,
//
//	P(Z = +1 | x, h) = σ(w·u + b),   u = (x_feature − mean)/sd,
//
// with the mean and the population standard deviation of the training data. u is 0 for
// a feature that was constant there.
type Univariate struct {
	Feature      int
	Mean, SD     float64 // SD is 0 for a constant feature
	Weight, Bias float64 // w and b, on the standardised scale
}

// standard returns u of a value: 0 for NaN, ±Inf where the quotient overflows.
func (h *Univariate) standard(v float64) float64 {
	if h.SD == 0 || v != v {
		return 0
	}
	d := v - h.Mean
	if math.IsInf(d, 0) { // both near the end of the range
		return (v/2 - h.Mean/2) / h.SD * 2
	}
	return d / h.SD
}

// LogOdds returns w·u + b, the hypothesis's log-odds of +1 in nats. It is never
// NaN: a feature that is NaN counts as its mean.
func (h *Univariate) LogOdds(x []float64) float64 {
	if h.Weight == 0 {
		return h.Bias
	}
	return float64(h.Weight*h.standard(x[h.Feature])) + h.Bias
}

// Standardise returns a hypothesis for each feature, weight and bias 0, and the
// standardised columns one after the other. If raw, mean 0 and deviation 1 stand for those
// of the data.
func Standardise(d *boost.Data, raw bool) ([]Univariate, []float64) {
	n := d.Rows()
	hs, u := make([]Univariate, d.Dim()), make([]float64, n*d.Dim())
	for j := range hs {
		hs[j].Feature = j
		column := d.Column(j)
		if hs[j].SD = 1; !raw {
			hs[j].Mean, hs[j].SD = moments(column)
		}
		for i, v := range column {
			u[j*n+i] = hs[j].standard(v)
		}
	}
	return hs, u
}

// moments returns the mean and the population standard deviation of a column;
// exactly its value and 0 if it is constant. Its unit is a power of two near the largest
// value, so that no sum or square overflows.
func moments(column []float64) (mean, sd float64) {
	largest, constant := 0.0, true
	for _, v := range column {
		largest = max(largest, math.Abs(v))
		constant = constant && v == column[0]
	}
	if constant {
		return column[0], 0
	}
	_, exp := math.Frexp(largest)
	sum := 0.0
	for _, v := range column {
		sum += math.Ldexp(v, -exp)
	}
	n := float64(len(column))
	scaled := sum / n
	sum = 0
	for _, v := range column {
		v = math.Ldexp(v, -exp) - scaled
		sum += float64(v * v)
	}
	return math.Ldexp(scaled, exp), math.Ldexp(math.Sqrt(sum/n), exp)
}

// FitStep sets w and b to one gradient step of Σ D ln p from 0, where each p is ½:
// rate·½ΣDyu and rate·½ΣDy. u is the feature's standardised column.
func (h *Univariate) FitStep(u, y, d []float64, rate float64) {
	w, b := 0.0, 0.0
	for i, v := range u {
		c := d[i] * y[i]
		w += float64(c * v)
		b += c
	}
	h.Weight, h.Bias = float64(rate/2*w), float64(rate/2*b)
}

const (
	penalty  = 1e-6 // λ: a maximum exists even if a feature separates the classes
	lastStep = 1e-9 // relative step after which Newton stops: the error is about its square
	longStep = 1.5  // up to this change of log-odds, F is sure to rise
	passes   = 200  // the most passes over the data; usually three
)

// FitNewton moves w and b to the maximum of F = Σ D ln σ(y(wu+b)) − λ/2·(w² + b²).
// largest is max|u|.
//
// F is concave. Where a step changes no log-odds by more than r, its second derivative
// along the step is at most e^{tr} times that at t = 0 (F. Bach, Self-concordant
// analysis for logistic regression, 2010). So a Newton step with slope a = F′(0) has
// F(1) − F(0) ≥ a(1 − (e^r − r − 1)/r²), more than a/10 for r ≤ 1.5. A longer one is
// halved until r ≤ 1.5 or F still rises at its end: F never falls.
func (h *Univariate) FitNewton(u, y, d []float64, largest float64) {
	w, b := h.Weight, h.Bias
	at := slopesAt(u, y, d, w, b)
	for n := 1; n < passes; {
		// H·s = g by Cramer; H is positive definite, by λ at least.
		det := float64(at.ww*at.bb) - float64(at.wb*at.wb)
		sw := (float64(at.bb*at.w) - float64(at.wb*at.b)) / det
		sb := (float64(at.ww*at.b) - float64(at.wb*at.w)) / det
		if math.Abs(sw) <= lastStep*(1+math.Abs(w)) && math.Abs(sb) <= lastStep*(1+math.Abs(b)) {
			w, b = w+sw, b+sb
			break
		}
		for ; ; n++ {
			reach := float64(math.Abs(sw)*largest) + math.Abs(sb)
			next := slopesAt(u, y, d, w+sw, b+sb)
			if reach <= longStep || float64(next.w*sw)+float64(next.b*sb) >= 0 {
				w, b, at = w+sw, b+sb, next
				n++
				break
			}
			sw, sb = sw/2, sb/2
		}
	}
	h.Weight, h.Bias = w, b
}

// slopes are the gradient of the Newton learner's objective and minus its Hessian.
type slopes struct {
	w, b, ww, wb, bb float64
}

func slopesAt(u, y, d []float64, w, b float64) slopes {
	s := slopes{w: -float64(penalty * w), b: -float64(penalty * b), ww: penalty, bb: penalty}
	y, d = y[:len(u)], d[:len(u)]
	for i, v := range u {
		z := y[i] * (float64(w*v) + b)
		e := logistic.Exp(-math.Abs(z))
		q := 1 / (1 + e)
		c := float64(float64(d[i]*e) * float64(q*q)) // Dσ(z)σ(−z)
		g := float64(d[i] * q)                       // Dσ(−z), for z ≤ 0
		if z > 0 {
			g = float64(g * e)
		}
		g *= y[i] // exact
		s.w += float64(g * v)
		s.b += g
		cv := float64(c * v)
		s.ww += float64(cv * v)
		s.wb += cv
		s.bb += c
	}
	return s
}

// confidenceError returns ε_c of (32), Σ_{p ≤ ½} D(1−2p) / Σ D|1−2p|, from log-odds:
// |1−2p| = tanh(|z|/2).
func (h *Univariate) confidenceError(u, y, d []float64) float64 {
	wrong, all := 0.0, 0.0
	y, d = y[:len(u)], d[:len(u)]
	for i, v := range u {
		z := y[i] * (float64(h.Weight*v) + h.Bias)
		e := logistic.Exp(-math.Abs(z))
		c := float64(d[i]*(1-e)) / (1 + e)
		all += c
		if z <= 0 {
			wrong += c
		}
	}
	if all == 0 {
		return 0.5
	}
	return wrong / all
}

// expertLogOdds returns the log-odds of +1 of an expert (13) whose hypothesis has
// the log-odds z, in nats:
//
//	ln [(1−P_e)s + P_e(1−s)] − ln [(1−P_e)(1−s) + P_e·s],   s = σ(z).
//
// They have the sign of z and are at most ln((1−P_e)/P_e) in size, also at ±Inf.
func expertLogOdds(z, pE float64) float64 {
	// With e = e^−|z| both brackets are a multiple of 1−P_e+P_e·e and P_e+(1−P_e)e.
	e := logistic.Exp(-math.Abs(z))
	small := pE + float64((1-pE)*e)
	return math.Copysign(logistic.Log1p(float64((1-2*pE)*(1-e))/small), z)
}
