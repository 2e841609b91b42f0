package viboost

import (
	"math"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// chooseExact returns the stump whose exact mode has the largest magnitude, the
// first of equals. −g′ of q(c) for the stump h at c,
//
//	G(c) = −μ₀ tanh(c/2) + Σ mₙyₙhₙσ(−yₙ(Hₙ+chₙ)),  m = wφ,
//
// falls and is 0 at the mode. With aₙ(c) = mₙyₙσ(−yₙ(Hₙ+c)), h is +1 above the cut and
// −1 below it, which turns aₙ(c) into aₙ(−c). So the sum is Σaₙ(c) − S(c), S(c) the sum
// of aₙ(c) + aₙ(−c) below the cut, and
//
//	mode > z  ⟺  Σa(z) − S(z) > μ₀ tanh(z/2),
//	mode < −z ⟺  S(z) − Σa(−z) > μ₀ tanh(z/2).
//
// One search with the weights a(z) + a(−z) tells for every stump whether its |mode|
// exceeds z, and by how much in G. From z = 0 the stump that exceeds z by the most
// gives the next z, its |mode|, until none exceeds it: Newton's method on an upper
// envelope, a handful of searches.
func (b *Booster) chooseExact() (boost.Candidate, bool) {
	s := &b.stage
	z := 0.0
	var best boost.Candidate
	for range mostSearches {
		up, down := 0.0, 0.0 // Σa(z), Σa(−z)
		total := 0.0
		for i, y := range s.Y {
			m := float64(s.Weight[i] * s.Phi[i])
			v := float64(m * logistic.Sigmoid(-y*(s.Before[i]+z)))
			w := float64(m * logistic.Sigmoid(-y*(s.Before[i]-z)))
			up += float64(y * v)
			down += float64(y * w)
			s.Scaled[i] = v + w
			total += v + w
		}
		unit := boost.Fix(s.Signed, s.Scaled, s.Y)
		pull := float64(s.Mu0 * (logistic.Sigmoid(z) - logistic.Sigmoid(-z)))
		// Fixed point and z are good to 10⁻¹² of the total: a smaller excess is none.
		equal := float64(0x1p-40 * total)
		most := math.Inf(-1)
		first, found := boost.Candidate{}, false
		for j := range b.data.Dim() {
			for cut, below := range b.search.Below(j, s.Signed) {
				sum := float64(float64(below) * unit)
				excess := max(up-sum, sum-down) - pull
				if !found && excess >= -equal {
					first, found = boost.Candidate{Feature: j, Cut: cut}, true
				}
				if excess > most+equal {
					most, best = excess, boost.Candidate{Feature: j, Cut: cut}
				}
			}
		}
		if math.IsInf(most, -1) {
			return best, false
		}
		if most <= equal && found {
			return first, true
		}
		if most <= equal {
			return best, true
		}
		b.data.SignsTo(s.H, best)
		s.place()
		s.count()
		next := math.Abs(s.density.Mode())
		if !(next > z) {
			return best, true
		}
		z = next
	}
	return best, true
}

// mostSearches is far beyond the handful that are needed.
const mostSearches = 1000
