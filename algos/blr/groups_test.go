package blr

import (
	"fmt"
	"math"
	"testing"

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
	Shortened(x)
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
		for k, v := range v.Row(p.dim, i) {
			j := i + k
			h, c := group[j], float64(float64(xi*v)*x[j])
			if g == h && i != j {
				c *= 2 // (i, j) and (j, i) are the same element
			}
			cov.SetSym(g, h, cov.At(g, h)+c)
		}
	}
}

// Groups of inputs: their means add up to m, their covariance to a, and a group
// of one is a Contribution.
func TestGroupContributions(t *testing.T) {
	const dim = 9
	p := mustNew(t, Config{Dim: dim})
	s := newStream(22, dim)
	for range 200 {
		p.Update(s.next())
	}
	x, _, _ := s.next()
	m, a := p.Moments(x)
	v := &mat.SymDense{}
	p.CovarianceTo(v)
	group := []int{2, 0, 2, 1, 3, 0, 2, 1, 2}
	mean, cov := make([]float64, 4), &mat.SymDense{}
	p.GroupContributions(mean, cov, x, group)
	total := 0.0
	for g := range mean {
		total += mean[g]
		for h := range mean {
			want := 0.0
			for i := range dim {
				for j := range dim {
					if group[i] == g && group[j] == h {
						want += x[i] * v.At(i, j) * x[j]
					}
				}
			}
			if math.Abs(cov.At(g, h)-want) > 1e-14 {
				t.Errorf("covariance of groups %d and %d is %v, want %v", g, h, cov.At(g, h), want)
			}
		}
	}
	if math.Abs(total-m) > 1e-14 || math.Abs(mat.Sum(cov)-a) > 1e-14 {
		t.Errorf("groups sum to N(%v, %v), x is N(%v, %v)", total, mat.Sum(cov), m, a)
	}
	c := p.Contributions(nil, x)[4]
	if math.Abs(mean[3]-c.Mean) > 1e-15 || math.Abs(math.Sqrt(cov.At(3, 3))-c.SD) > 1e-15 {
		t.Errorf("a group of one is %v ± %v, as an input %+v", mean[3], math.Sqrt(cov.At(3, 3)), c)
	}
}
