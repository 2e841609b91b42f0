package vblr

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/blr"
	"hamlet/algos/internal/triangle"
)

// A Gaussian is a belief β ~ N(w, V) that never changes: the result of a batch fit, or
// parameters from elsewhere. Its methods may run concurrently.
type Gaussian struct {
	mean []float64       // w
	cov  triangle.Matrix // V, positive semidefinite
}

// NewGaussian returns N(w, V). V is len(w)×len(w) and positive semidefinite up to
// rounding: with its diagonal multiplied by 1 + 1e−10 it must have a Cholesky factor. If
// the variance of an input is 0, its covariances must be 0. The error joins all faults.
func NewGaussian(w []float64, v *mat.SymDense) (*Gaussian, error) {
	n := len(w)
	if n < 1 || n > blr.MaxDim || v.IsEmpty() || v.SymmetricDim() != n {
		return nil, fmt.Errorf("blr: %d weights with a covariance of %d inputs: want the same number, 1 to %d",
			n, v.SymmetricDim(), blr.MaxDim)
	}
	var errs []error
	for j, m := range w {
		if !(math.Abs(m) <= blr.MaxInput) {
			errs = append(errs, fmt.Errorf("blr: weight %d is %v: want a finite number up to %g", j, m, float64(blr.MaxInput)))
		}
	}
	g := &Gaussian{mean: slices.Clone(w), cov: triangle.New(n)}
	padded, floor := triangle.New(n), make([]float64, n)
	for i := range n {
		for k := range g.cov.Row(n, i) {
			c := v.At(i, i+k)
			if !(math.Abs(c) <= blr.MaxInput) {
				errs = append(errs, fmt.Errorf("blr: covariance of inputs %d and %d is %v: want a finite number up to %g",
					i, i+k, c, float64(blr.MaxInput)))
			}
			g.cov.Row(n, i)[k], padded.Row(n, i)[k] = c, c
		}
		d := v.At(i, i)
		if d < 0 {
			errs = append(errs, fmt.Errorf("blr: variance of input %d is %v", i, d))
		}
		padded.Row(n, i)[0] += float64(1e-10 * d)
		if d == 0 {
			padded.Row(n, i)[0] = math.SmallestNonzeroFloat64
		}
	}
	if len(errs) == 0 {
		for i := range floor {
			floor[i] = math.SmallestNonzeroFloat64
		}
		for i := range n {
			for k, c := range g.cov.Row(n, i) {
				if c != 0 && (v.At(i, i) == 0 || v.At(i+k, i+k) == 0) {
					errs = append(errs, fmt.Errorf("blr: inputs %d and %d have a covariance but no variance", i, i+k))
				}
			}
		}
		if padded.Cholesky(floor) != 0 {
			errs = append(errs, errors.New("blr: the covariance is not positive semidefinite"))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return g, nil
}

// Dim returns the number of inputs D.
func (g *Gaussian) Dim() int { return len(g.mean) }

// MeanTo writes w to dst, of length D.
func (g *Gaussian) MeanTo(dst []float64) {
	g.checkLength(len(dst))
	copy(dst, g.mean)
}

// CovarianceTo writes V to dst, which is D×D or empty.
func (g *Gaussian) CovarianceTo(dst *mat.SymDense) { g.cov.CopyTo(dst, len(g.mean)) }

// Moments returns the mean m = wᵀx and the variance a = xᵀVx of the log-odds, in
// nats and nats². It panics if len(x) ≠ D or an entry is not finite.
//
// If |m| or a would exceed 2¹⁰⁰⁰, Moments returns those of x divided by a power of two, so
// that both are finite. For an x this long a probability depends only on m/√a, and the
// division does not change m/√a.
func (g *Gaussian) Moments(x []float64) (m, a float64) {
	g.checkLength(len(x))
	x, scale := blr.Shortened(x)
	m, a = g.moments(x)
	for ; scale < 1; scale *= 2 { // doubling is exact, except for subnormal numbers
		m2, a2 := 2*m, 4*a
		if !(math.Abs(m2) <= farthestMoment && a2 <= farthestMoment) {
			break
		}
		m, a = m2, a2
	}
	return m, a
}

func (g *Gaussian) moments(x []float64) (m, a float64) {
	return triangle.InOrder(g.mean, x), max(g.cov.Quadratic(x), 0)
}

// farthestMoment is the largest |m| or a that Moments returns.
const farthestMoment = 0x1p1000

// Prob returns the probability that x has label +1: Exact of its Moments.
func (g *Gaussian) Prob(x []float64) float64 { return blr.Exact(g.Moments(x)) }

func (g *Gaussian) checkLength(n int) {
	if n != len(g.mean) {
		panic(fmt.Sprintf("blr: a vector of length %d for %d inputs", n, len(g.mean)))
	}
}
