// Laboratory: only tests reach this file.

package blr

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// GroupContributions sums the contributions of groups of inputs: input j is in group[j],
// in [0, G), G = len(mean). It writes to mean the Σ wⱼxⱼ of each group, in nats, and to
// cov, G×G or empty, their covariances
//
//	cov[g, h] = Σ_{i in g} Σ_{j in h} xᵢ Vᵢⱼ xⱼ.
//
// The sum over mean is m to rounding, the sum over cov is a. D² products. It panics as
// Moments does, on a wrong length and on a group out of range.
func (p *Posterior) GroupContributions(mean []float64, cov *mat.SymDense, x []float64, group []int) {
	p.checkLength(len(x))
	p.checkLength(len(group))
	scaleOf(x)
	if cov.IsEmpty() {
		cov.ReuseAsSym(len(mean))
	}
	if cov.SymmetricDim() != len(mean) {
		panic(fmt.Sprintf("blr: a covariance of %d groups for %d", cov.SymmetricDim(), len(mean)))
	}
	for j, g := range group {
		if g < 0 || g >= len(mean) {
			panic(fmt.Sprintf("blr: input %d is in group %d of %d", j, g, len(mean)))
		}
	}
	clear(mean)
	cov.Zero()
	v := p.covarianceNow()
	for i, xi := range x {
		g := group[i]
		mean[g] += float64(p.mean[i] * xi)
		for k, v := range v.row(p.dim, i) {
			j := i + k
			h, c := group[j], float64(float64(xi*v)*x[j])
			if g == h && i != j {
				c *= 2 // (i, j) and (j, i) are the same element
			}
			cov.SetSym(g, h, cov.At(g, h)+c)
		}
	}
}
