package poeboost

import (
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// What follows is the algebra of one expert joining an ensemble, a function for
// each formula. d are the weights of the examples, which sum to 1; pCorrect is
// P(Z = yᵢ | xᵢ, h), what the hypothesis gives the label that is true; pE is P_e
// in (0, 1); expert is P(yᵢ | xᵢ, h), and prev is P(yᵢ | xᵢ, h₁…h_{j−1}), of the
// ensemble before. All vectors have the length of the first, or the function
// panics. dst may be any of the arguments.

// ConfidenceError returns ε_c of (32), the confidence-weighted error of the
// hypothesis,
//
//	ε_c = Σ_{p ≤ ½} D(1−2p) / Σ D|1−2p|,   p = pCorrect.
//
// For a hypothesis of certainties, p in {0, 1}, it is the weighted error ε. A
// hypothesis that leaves everything open, p = ½, is 0/0 there and gets ½: it is
// of no use. (The print has the same denominator in another form, for weights
// that sum to 1; here they need not.)
func ConfidenceError(d, pCorrect []float64) float64 {
	checkLengths(len(d), len(pCorrect))
	wrong, all := 0.0, 0.0
	for i, p := range pCorrect {
		c := float64(d[i] * (1 - 2*p))
		if p <= 0.5 {
			wrong += c
			all += c
		} else {
			all -= c
		}
	}
	if all == 0 {
		return 0.5
	}
	return wrong / all
}

// ExpertTo writes (13) to dst: a hypothesis whose answer is distorted with
// probability P_e, whatever x is, gives the true label
//
//	P(y | x, h) = (1 − P_e)·P(Z=y | x, h) + P_e·P(Z=ȳ | x, h).
func ExpertTo(dst, pCorrect []float64, pE float64) {
	checkLengths(len(dst), len(pCorrect))
	for i, p := range pCorrect {
		dst[i] = float64((1-pE)*p) + float64(pE*(1-p))
	}
}

// Constraint returns the left side of (6), Σ Dᵢ/P(yᵢ | xᵢ, h). Where it is at most
// 2, the likelihood of the training data does not fall when the expert joins.
// Examples without weight do not count; +Inf if the expert gives one with weight
// no chance.
func Constraint(d, expert []float64) float64 {
	checkLengths(len(d), len(expert))
	sum := 0.0
	for i, p := range expert {
		if d[i] > 0 {
			sum += d[i] / p
		}
	}
	return sum
}

// Bound returns the right side of (30), which is at least Constraint of the same
// expert: 1/P is convex in p = pCorrect, and the bound is the two chords over
// [0, ½] and [½, 1],
//
//	Σ_{p ≤ ½} D[2(2 − 1/P_e)p + 1/P_e] + Σ_{p > ½} D[2(1/(1−P_e) − 2)p + 4 − 1/(1−P_e)].
//
// It is at most 2 exactly for ε_c ≤ P_e ≤ ½ (31). That needs weights which sum
// to 1.
func Bound(d, pCorrect []float64, pE float64) float64 {
	checkLengths(len(d), len(pCorrect))
	wrong, right := 1/pE, 1/(1-pE)
	sum := 0.0
	for i, p := range pCorrect {
		var chord float64
		if p <= 0.5 {
			chord = float64(2*(2-wrong)*p) + wrong
		} else {
			chord = float64(2*(right-2)*p) + (4 - right)
		}
		sum += float64(d[i] * chord)
	}
	return sum
}

// MinimisingError returns the P_e that makes (6) least for a hypothesis of
// certainties with the weighted error ε,
//
//	√ε/(√ε + √(1−ε)),
//
// where (6) is 1 + 2√(ε(1−ε)), against exactly 2 at P_e = ε. Its α is half of
// that of P_e = ε.
func MinimisingError(ε float64) float64 {
	wrong, right := math.Sqrt(ε), math.Sqrt(1-ε)
	return wrong / (wrong + right)
}

// WeightsTo writes (7) to dst: Dᵢ is proportional to the probability 1 − prev
// with which the ensemble is mistaken about example i. It returns false, and dst
// is of no use, if the ensemble is certain of every label.
func WeightsTo(dst, prev []float64) bool {
	checkLengths(len(dst), len(prev))
	for i, p := range prev {
		dst[i] = 1 - p
	}
	return normalise(dst)
}

// NextWeightsTo writes (8) to dst: the weights after an expert has joined,
//
//	Dᵢ ← P(ȳᵢ | xᵢ, h)·Dᵢ/Qᵢ,   Qᵢ = P(yᵢ | xᵢ, h)·prevᵢ + P(ȳᵢ | xᵢ, h)·(1 − prevᵢ),
//
// normalised. Algorithms 2 and 3 are printed without Qᵢ (9), which takes (7) from
// one ensemble to the next; without it, POEBoost.DS is AdaBoost. It returns false
// if no weight is left.
func NextWeightsTo(dst, d, expert, prev []float64) bool {
	checkLengths(len(dst), len(d))
	checkLengths(len(d), len(expert))
	checkLengths(len(d), len(prev))
	for i, p := range expert {
		w := d[i]
		if w > 0 { // else Qᵢ may be 0
			q := float64(p*prev[i]) + float64((1-p)*(1-prev[i]))
			w = float64((1-p)*w) / q
		}
		dst[i] = w
	}
	return normalise(dst)
}

// normalise divides d by its sum, and returns false if that is not positive.
func normalise(d []float64) bool {
	sum := 0.0
	for _, w := range d {
		sum += w
	}
	if !(sum > 0) {
		return false
	}
	for i := range d {
		d[i] /= sum
	}
	return true
}

// ClosedWeightsTo writes (7) to dst from the ensemble's log-odds of y = +1:
//
//	Dᵢ ∝ ωᵢ·σ(−yᵢFᵢ),
//
// the recursion (8) multiplied out, with sample weights ω (nil is 1 each). F may
// be so large that every σ underflows: only the differences between the margins
// yF matter then. It returns false, and dst is of no use, if no weight is left: no
// ω is positive, or a margin is infinite.
func ClosedWeightsTo(dst, y, logOdds, ω []float64) bool {
	return closedWeights(dst, y, logOdds, ω, false)
}

// closedWeights is ClosedWeightsTo; with printed, Qᵢ is left out as in algorithm
// 3 and Dᵢ ∝ ωᵢ·e^{−yᵢFᵢ/2}.
func closedWeights(dst, y, logOdds, ω []float64, printed bool) bool {
	checkLengths(len(dst), len(y))
	checkLengths(len(y), len(logOdds))
	least := math.Inf(1)
	for i, f := range logOdds {
		if ω == nil || ω[i] > 0 {
			least = min(least, y[i]*f)
		}
	}
	if math.IsInf(least, 0) {
		return false
	}
	for i, f := range logOdds {
		z := y[i] * f
		var w float64
		switch {
		case ω != nil && ω[i] == 0:
		case printed:
			w = logistic.Exp((least - z) / 2)
		case least <= 0:
			w = logistic.Sigmoid(-z)
		default: // σ(−z) = e⁻ᶻ·σ(z), scaled by e^least
			w = float64(logistic.Exp(least-z) * logistic.Sigmoid(z))
		}
		if ω != nil {
			w = float64(ω[i] * w)
		}
		dst[i] = w
	}
	return normalise(dst)
}

func checkLengths(a, b int) {
	if a != b {
		panic(fmt.Sprintf("poeboost: vectors of %d and %d examples", a, b))
	}
}
