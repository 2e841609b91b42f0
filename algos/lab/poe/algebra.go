package poe

import "fmt"

// ConfidenceError returns ε_c of (32), the confidence-weighted error of the
// hypothesis,
//
//	ε_c = Σ_{p ≤ ½} D(1−2p) / Σ D|1−2p|,   p = pCorrect.
//
// For p in {0, 1} it is the weighted error ε. If p = ½ everywhere, it is 0/0 and returned
// as ½. (The paper's form of the denominator needs weights that sum to 1; this does not.)
func ConfidenceError(d, pCorrect []float64) float64 {
	sameLength(len(d), len(pCorrect))
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

// Bound returns the right side of (30), an upper bound of Constraint for the same expert.
// 1/P is convex in p = pCorrect; the bound is its two chords over [0, ½] and [½, 1],
//
//	Σ_{p ≤ ½} D[2(2 − 1/P_e)p + 1/P_e] + Σ_{p > ½} D[2(1/(1−P_e) − 2)p + 4 − 1/(1−P_e)].
//
// If the weights sum to 1, it is at most 2 exactly for ε_c ≤ P_e ≤ ½ (31).
func Bound(d, pCorrect []float64, pE float64) float64 {
	sameLength(len(d), len(pCorrect))
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

// WeightsTo writes (7) to dst: Dᵢ ∝ 1 − prevᵢ, the ensemble's probability of the wrong
// label. It returns false, and dst is undefined, if 1 − prev is 0 for every example.
func WeightsTo(dst, prev []float64) bool {
	sameLength(len(dst), len(prev))
	for i, p := range prev {
		dst[i] = 1 - p
	}
	return normalised(dst)
}

// NextWeightsTo writes (8) to dst, the weights after an expert was added,
//
//	Dᵢ ← P(ȳᵢ | xᵢ, h)·Dᵢ/Qᵢ,   Qᵢ = P(yᵢ | xᵢ, h)·prevᵢ + P(ȳᵢ | xᵢ, h)·(1 − prevᵢ),
//
// normalised. (Algorithms 2 and 3 omit Qᵢ (9), which makes POEBoost.DS AdaBoost.) It
// returns false if no weight is positive.
func NextWeightsTo(dst, d, expert, prev []float64) bool {
	sameLength(len(dst), len(d))
	sameLength(len(d), len(expert))
	sameLength(len(d), len(prev))
	for i, p := range expert {
		w := d[i]
		if w > 0 { // else Qᵢ may be 0
			q := float64(p*prev[i]) + float64((1-p)*(1-prev[i]))
			w = float64((1-p)*w) / q
		}
		dst[i] = w
	}
	return normalised(dst)
}

// normalised divides d by its sum, and returns false if that is not positive.
func normalised(d []float64) bool {
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

func sameLength(a, b int) {
	if a != b {
		panic(fmt.Sprintf("poeboost: vectors of %d and %d examples", a, b))
	}
}
