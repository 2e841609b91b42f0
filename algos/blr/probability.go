// Laboratory: only hamlet fit, hamlet bench and tests reach this file.

package blr

import (
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// The functions below answer about one x with log-odds z ~ N(m, a), m in nats and a ≥ 0
// in nats². They are pure.

// Probit returns σ(Moderate(m, a)), the probability that Prob serves: within
// .017 of Exact for a ≤ 50, and over ½ exactly where Exact is.
func Probit(m, a float64) float64 { return logistic.Sigmoid(Moderate(m, a)) }

// Bounds returns the paper's "predictive density" (35) of label +1 and of label −1: e to
// the best bound of Jaakkola and Jordan, E[σ(±z)] ≥ e^{bound}, each with its own ξ. They
// do not add up to 1 (both are .4365 at m = 0, a = 10), so do not compare them with ½.
func Bounds(m, a float64) (plus, minus float64) {
	p, q := logBounds(m, a)
	return logistic.Exp(p), logistic.Exp(q)
}

func logBounds(m, a float64) (plus, minus float64) {
	return JaakkolaJordan.Solve(m, a, 1, 1).Evidence, JaakkolaJordan.Solve(m, a, -1, 1).Evidence
}

// Normalised returns plus/(plus+minus) of the two Bounds: a probability, within .037 of
// Exact for a ≤ 50. It is accurate also where both underflow.
func Normalised(m, a float64) float64 {
	plus, minus := logBounds(m, a)
	return logistic.Sigmoid(plus - minus)
}

// Interval returns the central credible interval of the probability p = σ(z) at a level
// in (0, 1): σ(m ± q√a) with q the normal quantile at (1+level)/2. It is exact for the
// belief, because σ is monotone. It panics on another level.
func Interval(m, a, level float64) (lo, hi float64) {
	if !(level > 0 && level < 1) {
		panic(fmt.Sprintf("blr: interval of level %v: want a number in (0, 1)", level))
	}
	reach := float64(upperQuantile(0.5*(1-level)) * math.Sqrt(a))
	return logistic.Sigmoid(m - reach), logistic.Sigmoid(m + reach)
}

// A Prediction holds every answer about one x.
type Prediction struct {
	Mean, Variance        float64 // m and a, of the log-odds
	BoundPlus, BoundMinus float64 // (35) for y = +1 and y = −1
	Normalised            float64 // the first over their sum
	Probit, Exact         float64
	Lo, Hi                float64 // the interval of p
}

// Predict returns every answer about log-odds N(m, a), with the interval of the
// given level. It panics as Interval does.
func Predict(m, a, level float64) Prediction {
	plus, minus := logBounds(m, a)
	lo, hi := Interval(m, a, level)
	return Prediction{
		Mean: m, Variance: a,
		BoundPlus: logistic.Exp(plus), BoundMinus: logistic.Exp(minus),
		Normalised: logistic.Sigmoid(plus - minus),
		Probit:     Probit(m, a), Exact: Exact(m, a),
		Lo: lo, Hi: hi,
	}
}

// upperQuantile returns z ≥ 0 with Φ(−z) = q, 0 < q ≤ ½. Φ is concave above 0,
// so that Newton's method from 0 climbs to the root and never passes it.
func upperQuantile(q float64) float64 {
	z := 0.0
	for range maxSteps {
		next := z + (normalCDF(-z)-q)/normalPDF(z)
		if !(next > z) || next-z <= 1e-15*z {
			return next
		}
		z = next
	}
	return z
}
