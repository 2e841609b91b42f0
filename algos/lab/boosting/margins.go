package boosting

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// Margins are the normalised margins of the training examples,
//
//	y f(x)/Σ|α|  ∈ [−1, 1],
//
// positive where the vote is right, and larger where it is clearer (slides, 21;
// Schapire, Freund, Bartlett and Lee, Boosting the margin, Annals of Statistics 26,
// 1998). Without rounds all are 0.
type Margins struct {
	values []float64 // by row
	sorted []float64
	share  []float64 // share[k]: the fraction of sample weight of sorted[:k+1]
	alphas float64   // Σ|α|
	logZ   float64   // Σ ln Z
	dim    int
}

// MarginsOf returns the margins of b so far, which boosts with the labels y and these
// sample weights, 1 each if nil.
func MarginsOf(b *boost.AdaBoost, y, weights []float64) *Margins {
	n := len(y)
	if weights == nil {
		weights = slices.Repeat([]float64{1}, n)
	}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	f := make([]float64, n)
	b.FTo(f)
	m := &Margins{
		values: make([]float64, n), sorted: make([]float64, n), share: make([]float64, n),
		dim: b.Ensemble().Dim(),
	}
	for _, r := range b.Rounds() {
		m.alphas += r.Alpha
		m.logZ += logistic.Log(r.Z)
	}
	order := make([]int, n)
	for i, f := range f {
		order[i] = i
		if m.alphas > 0 {
			m.values[i] = min(max(y[i]*f/m.alphas, -1), 1)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(m.values[i], m.values[j]) })
	sum := 0.0
	for k, i := range order {
		sum += weights[i]
		m.sorted[k], m.share[k] = m.values[i], sum/total
	}
	return m
}

// To writes the margins in the order of the rows to dst, of length N.
func (m *Margins) To(dst []float64) { copyTo(dst, m.values) }

// Min returns the least margin.
func (m *Margins) Min() float64 { return m.sorted[0] }

// Share returns the fraction, by sample weight, of the examples whose margin is at
// most θ: the cumulative distribution of the margins.
func (m *Margins) Share(θ float64) float64 {
	k := sort.Search(len(m.sorted), func(k int) bool { return m.sorted[k] > θ })
	if k == 0 {
		return 0
	}
	return m.share[k-1]
}

// Bound returns e^(θΣα)·∏Z ≥ Share(θ) (Schapire et al. 1998, theorem 5: ∏
// 2√(ε^(1−θ)(1−ε)^(1+θ))). It falls exponentially with the rounds while θ is less
// than about half their edges.
func (m *Margins) Bound(θ float64) float64 {
	return logistic.Exp(float64(θ*m.alphas) + m.logZ)
}

// ErrorBound returns a bound that the error on new examples exceeds with
// probability at most δ. θ in (0, 1] must be chosen beforehand and sample weights
// be 1. It is (slides, 21, with the constants that their Õ hides)
//
//	Share(θ) + (2/θ)√(2 ln(2ND)/N) + √(ln(1/δ)/2N)
//
// (Koltchinskii and Panchenko, Empirical margin distributions, Annals of
// Statistics 30, 2002, theorem 2, and Massart's lemma: stumps over D features
// divide N points in at most 2ND ways.) It does not depend on the number of rounds.
// A bound above 1, usual for small N, says nothing. ErrorBound panics if θ or δ is
// outside (0, 1].
func (m *Margins) ErrorBound(θ, δ float64) float64 {
	if !(θ > 0 && θ <= 1 && δ > 0 && δ <= 1) {
		panic(fmt.Sprintf("boost: margin %v, probability %v: want both in (0, 1]", θ, δ))
	}
	n := float64(len(m.values))
	return m.Share(θ) + float64(2/θ*math.Sqrt(2*logistic.Log(2*n*float64(m.dim))/n)) + math.Sqrt(-logistic.Log(δ)/(2*n))
}

// VCBound returns a bound that the error on new examples exceeds with probability at most
// δ, for the sign of any vote of T stumps over D features that errs on the share
// trainError of N examples (slides, 20, with the constants that their Õ hides):
//
//	trainError + √(8 ln(4 S/δ)/N),   ln S ≤ T ln(4ND) + T ln(2eN/T)
//
// (V. Vapnik and A. Chervonenkis, On the uniform convergence of relative frequencies,
// 1971). S is the number of ways in which votes divide 2N points. A stump divides them
// in at most 4ND ways, and a sign of T weighted answers in at most (2eN/T)^T ways for T ≤ 2N
// (Sauer's lemma). S is never above 2^2N. Sample weights must be 1. The bound grows with T.
// VCBound panics if rounds is not positive or δ is outside (0, 1].
func VCBound(trainError float64, rounds, rows, dim int, δ float64) float64 {
	if rounds < 1 || rows < 1 || dim < 1 || !(δ > 0 && δ <= 1) {
		panic(fmt.Sprintf("boost: %d rounds, %d rows of %d features, probability %v", rounds, rows, dim, δ))
	}
	t, n := float64(rounds), float64(rows)
	logS := 2 * n * math.Ln2
	if t <= 2*n {
		logS = min(logS, float64(t*logistic.Log(4*n*float64(dim)))+float64(t*(1+logistic.Log(2*n/t))))
	}
	return trainError + math.Sqrt(8*(logS+logistic.Log(4/δ))/n)
}
