package blr

import (
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

const (
	// Λ is no smaller and V no larger than the prior's, and entries off the diagonal lie
	// within what the diagonal allows, up to this rounding.
	boundSlack = 1e-3
	// V times Λ, relative to the sum of the absolute products. Above 1e−5 an error could
	// grow by itself, since u = Vx enters V squared.
	inverseTolerance = 1e-6
	// w against η, in deviations of the weights. Nothing feeds on that error.
	meanTolerance = 1e-3
	// Λ of 2¹⁰⁰ events with inputs up to MaxInput.
	largestPrecision = 0x1p300
)

// Check returns an error, which wraps ErrFormat, if the parts of p contradict one another:
// its bytes were not written by AppendBinary. It checks
//
//	τⱼ ≤ Λⱼⱼ,  Λᵢⱼ² ≤ Λᵢᵢ·Λⱼⱼ,  Vⱼⱼ ≤ 1/τⱼ,  Vᵢⱼ² ≤ Vᵢᵢ·Vⱼⱼ,  VΛx = x,  Λw = η,
//	−Σ ln Λⱼⱼ ≤ ln|V| ≤ Σ ln Vⱼⱼ
//
// for two vectors x with entries ±√Vⱼⱼ, at the cost of ten products of a matrix and a
// vector. Sound posteriors may fail if the inputs' scales differ by many orders of magnitude.
func (p *Posterior) Check() error {
	n := p.dim
	precision, cov := p.precisionNow(), p.covarianceNow()
	bad := func(format string, args ...any) error {
		return fmt.Errorf("check a posterior of %d inputs: %s: %w", n, fmt.Sprintf(format, args...), ErrFormat)
	}

	deviations := make([]float64, n)
	least, most := 0.0, 0.0 // of ln|V|
	for j, τ := range p.precision0 {
		l, v := precision.At(n, j, j), cov.At(n, j, j)
		if !(l >= (1-boundSlack)*τ && l <= largestPrecision) || !(v > 0 && v <= (1+boundSlack)/τ) {
			return bad("precision %v and variance %v of input %d, the prior's precision is %v", l, v, j, τ)
		}
		deviations[j] = math.Sqrt(v)
		least, most = least-logistic.Log(l), most+logistic.Log(v)
	}
	slack := 1 + float64(boundSlack*(math.Abs(least)+math.Abs(most)))
	if !(p.logDetV >= least-slack && p.logDetV <= most+slack) {
		return bad("ln|V| = %v, want %v to %v", p.logDetV, least, most)
	}
	for k, a := range []triangle.Matrix{precision, cov} {
		if i, j, ok := a.Minors(n, 1+boundSlack); !ok {
			return bad("%s %v of the inputs %d and %d, %v and %v of each", []string{"precision", "covariance"}[k],
				a.At(n, i, j), i, j, a.At(n, i, i), a.At(n, j, j))
		}
	}

	got, scale, sum, twice := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for j, d := range deviations {
		sum[j] = math.Abs(p.mean[j]) + d
	}
	precision.MulVec(got, p.mean)
	precision.MulAbs(scale, sum)
	for j, η := range p.eta {
		if !(math.Abs(got[j]-η) <= meanTolerance*min(scale[j], math.MaxFloat64)) {
			return bad("η of input %d is %v, Λw is %v", j, η, got[j])
		}
	}
	x := make([]float64, n)
	for probe := range uint64(2) {
		for j, d := range deviations {
			x[j] = d
			if (uint64(j)+1)*0x9e3779b97f4a7c15>>(62+probe)&1 != 0 { // signs without a pattern
				x[j] = -d
			}
		}
		precision.MulVec(got, x)
		cov.MulVec(twice, got)
		precision.MulAbs(sum, deviations)
		cov.MulAbs(scale, sum)
		for j := range x {
			if !(math.Abs(twice[j]-x[j]) <= inverseTolerance*scale[j]) {
				return bad("V is not the inverse of Λ: x[%d] is %v, VΛx %v", j, x[j], twice[j])
			}
		}
	}
	return nil
}
