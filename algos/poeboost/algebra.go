package poeboost

import (
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// The formulas for adding one expert to an ensemble, one function each. d are the weights
// of the examples and sum to 1. pCorrect is P(Z = yᵢ | xᵢ, h). pE is P_e in (0, 1). expert
// is P(yᵢ | xᵢ, h). prev is P(yᵢ | xᵢ, h₁…h_{j−1}), of the ensemble before. The functions
// panic if the lengths differ. dst may be any of the arguments.

// ExpertTo writes (13) to dst, the probability of the true label by a hypothesis whose
// answer is flipped with probability P_e for every x:
//
//	P(y | x, h) = (1 − P_e)·P(Z=y | x, h) + P_e·P(Z=ȳ | x, h).
func ExpertTo(dst, pCorrect []float64, pE float64) {
	checkLengths(len(dst), len(pCorrect))
	for i, p := range pCorrect {
		dst[i] = float64((1-pE)*p) + float64(pE*(1-p))
	}
}

// Constraint returns the left side of (6), Σ Dᵢ/P(yᵢ | xᵢ, h), over the examples with
// D > 0. If it is at most 2, adding the expert does not lower the likelihood of the
// training data. It is +Inf if P = 0 for one of these examples.
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

// MinimisingError returns the P_e that minimises (6) for a hypothesis that answers ±1 with
// the weighted error ε,
//
//	√ε/(√ε + √(1−ε)),
//
// where (6) is 1 + 2√(ε(1−ε)). At P_e = ε it is 2, and α twice as large.
func MinimisingError(ε float64) float64 {
	wrong, right := math.Sqrt(ε), math.Sqrt(1-ε)
	return wrong / (wrong + right)
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
// the closed form of (8), with sample weights ω (nil is 1 each). It works even if every σ
// underflows. It returns false, and dst is undefined, if no ω is positive or a margin is
// infinite. printed omits Qᵢ as in algorithm 3: Dᵢ ∝ ωᵢ·e^{−yᵢFᵢ/2}.
func ClosedWeightsTo(dst, y, logOdds, ω []float64, printed bool) bool {
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
