package vblr

import (
	"fmt"
	"math"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/normal"
)

// The functions below take the moments of one input x: its log-odds are z ~ N(m, a), m in
// nats and a ≥ 0 in nats². They are pure.

// Probit returns σ(Moderate(m, a)), the probability that [Posterior.Prob] returns. It is
// within .017 of Exact for a ≤ 50. It is above ½ if and only if Exact is.
func Probit(m, a float64) float64 { return logistic.Sigmoid(blr.Moderate(m, a)) }

// Bounds returns the paper's "predictive density" (35) of label +1 and of label −1: the
// largest lower bounds on E[σ(z)] and E[σ(−z)] by Jaakkola and Jordan. Each has its own ξ.
// They do not add up to 1 (both are .4365 at m = 0, a = 10), so do not compare them with ½.
func Bounds(m, a float64) (plus, minus float64) {
	p, q := logBounds(m, a)
	return logistic.Exp(p), logistic.Exp(q)
}

func logBounds(m, a float64) (plus, minus float64) {
	return blr.JaakkolaJordan.Solve(m, a, 1, 1).Evidence, blr.JaakkolaJordan.Solve(m, a, -1, 1).Evidence
}

// Interval returns the central credible interval of the probability p = σ(z), σ(m ± q√a)
// with q the normal quantile at (1+level)/2. It is exact for z ~ N(m, a), because σ is
// monotone. It panics if level is not in (0, 1).
func Interval(m, a, level float64) (lo, hi float64) {
	if !(level > 0 && level < 1) {
		panic(fmt.Sprintf("blr: interval of level %v: want a number in (0, 1)", level))
	}
	reach := float64(normal.UpperQuantile(0.5*(1-level)) * math.Sqrt(a))
	return logistic.Sigmoid(m - reach), logistic.Sigmoid(m + reach)
}

// A Prediction holds the results of all the functions above for one x.
type Prediction struct {
	Mean, Variance        float64 // m and a, of the log-odds
	BoundPlus, BoundMinus float64 // (35) for y = +1 and y = −1
	Normalised            float64 // BoundPlus/(BoundPlus+BoundMinus)
	Probit, Exact         float64
	Lo, Hi                float64 // credible interval of p
}

// Predict returns the Prediction for log-odds z ~ N(m, a), with the Interval of the given
// level. It panics if level is not in (0, 1).
func Predict(m, a, level float64) Prediction {
	plus, minus := logBounds(m, a)
	lo, hi := Interval(m, a, level)
	return Prediction{
		Mean: m, Variance: a,
		BoundPlus: logistic.Exp(plus), BoundMinus: logistic.Exp(minus),
		Normalised: logistic.Sigmoid(plus - minus),
		Probit:     Probit(m, a), Exact: blr.Exact(m, a),
		Lo: lo, Hi: hi,
	}
}
