package blr

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// Information returns the mutual information, in nats, of an event's label and the weights,
// if the log-odds are z ~ N(m, a), a ≥ 0 in nats²:
//
//	I = H(p̄) − E[H(σ(z))] = E[KL(σ(z) ‖ p̄)],   p̄ = E[σ(z)],   H(p) = −p·ln p − (1−p)·ln(1−p).
//
// It is what the uncertainty about the weights is expected to add to the log loss of p̄, and
// the score of BALD (Houlsby et al. 2011, Bayesian active learning for classification and
// preference learning). It is in [0, ln 2], 0 at a = 0, and even in m to the last bit. Its
// error is below 1e−8, and for a ≤ 36 below 1e−11.
//
// For a ≤ 36 it is the mean of the divergence by the trapezoidal rule about m, with f the
// log-odds of p̄ and
//
//	KL(σ(z) ‖ p̄) = σ(z)·(z − f) + ln σ(−z) − ln σ(−f),   z = m ± kg.
//
// For a > 36 it is H(p̄) less the mean of H(σ(z)) by the rule about 0, because H(σ(z)) is
// below 1e−15 for |z| > 40. The nearest poles of σ, at ±iπ, and the Gaussian bound the error
// of a step g ≤ ¾, g ≤ .6√a, by e⁻²⁶ and e⁻⁵⁴. It costs 30 to 140 exponentials and logarithms.
func Information(m, a float64) float64 {
	if m != m || a != a {
		return math.NaN()
	}
	m, a = -min(math.Abs(m), farthest), min(a, farthest)
	if !(a > 0) {
		return 0
	}
	f := Predictive(m, a)
	if a > widestDirect {
		return max(entropy(f)-meanEntropy(m, a), 0)
	}
	s := math.Sqrt(a)
	g := min(informationStep, float64(0.6*s))
	base := logistic.LogSigmoid(-f)
	sum, total := 0.0, 0.0
	for k := range int(float64(informationReach*s)/g) + 1 {
		d := float64(float64(k) * g)
		w := logistic.Exp(-float64(float64(d*d) / float64(2*a)))
		for _, z := range [2]float64{m - d, m + d} {
			sum += float64(w * (float64(logistic.Sigmoid(z)*(z-f)) + (logistic.LogSigmoid(-z) - base)))
			total += w
			if k == 0 {
				break
			}
		}
	}
	return max(sum/total, 0)
}

const (
	informationStep  = 0.75
	informationReach = 8.3 // Φ(−8.3) = 5e−17
	entropyNodes     = 54  // on each side of 0: H(σ(z)) is below 1e−15 beyond
)

// entropy returns H(σ(z)) = ln(1+eᶻ) − zσ(z), taken at −|z|, where both terms are positive.
func entropy(z float64) float64 {
	z = -math.Abs(z)
	return -float64(z*logistic.Sigmoid(z)) - logistic.LogSigmoid(-z)
}

// meanEntropy returns E[H(σ(z))] for z ~ N(m, a), a > 36.
func meanEntropy(m, a float64) float64 {
	sum := 0.0
	for k := -entropyNodes; k <= entropyNodes; k++ {
		z := float64(informationStep * float64(k))
		d := z - m
		sum += float64(entropy(z) * logistic.Exp(-float64(d/float64(2*a))*d))
	}
	return sum * informationStep / math.Sqrt(float64(2*math.Pi)*a)
}
