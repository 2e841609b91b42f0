package bblr

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// A GaussLaplace is the prior of the sparse kernel fit (section 5.4 and appendix
// B): each coefficient is drawn from a mixture of a Gaussian and a Laplace
// distribution about 0,
//
//	π_g·N(a; 0, σ_g²) + π_l·(1/2b_l)·e^{−|a|/b_l}.
//
// The second argument of N is the standard deviation, as in equation 43; equation 41
// prints the variance.
type GaussLaplace struct {
	GaussShare   float64 // π_g ≥ 0
	GaussSD      float64 // σ_g > 0
	LaplaceShare float64 // π_l ≥ 0; the shares sum to 1
	LaplaceScale float64 // b_l > 0, the mean of |a|
}

// Check reports every invalid field of p.
func (p GaussLaplace) Check() error {
	var errs []error
	for _, f := range []struct {
		name   string
		v      float64
		lo, hi float64
	}{
		{"GaussShare", p.GaussShare, 0, 1}, {"LaplaceShare", p.LaplaceShare, 0, 1},
		{"GaussSD", p.GaussSD, math.SmallestNonzeroFloat64, math.MaxFloat64},
		{"LaplaceScale", p.LaplaceScale, math.SmallestNonzeroFloat64, math.MaxFloat64},
	} {
		if !(f.v >= f.lo && f.v <= f.hi) {
			errs = append(errs, badField(f.name, "%v: want %v to %v", f.v, f.lo, f.hi))
		}
	}
	if s := p.GaussShare + p.LaplaceShare; !(math.Abs(s-1) <= 1e-9) {
		errs = append(errs, badField("LaplaceShare", "%v sums to %v with the share of the Gaussian: want 1",
			p.LaplaceShare, s))
	}
	return errors.Join(errs...)
}

// parts returns the logarithms of the two parts of the density at a.
func (p GaussLaplace) parts(a float64) (gauss, laplace float64) {
	const halfLog2Pi = 0.91893853320467274178 // ½ ln 2π
	t := a / p.GaussSD
	gauss = logistic.Log(p.GaussShare) - logistic.Log(p.GaussSD) - halfLog2Pi - float64(0.5*float64(t*t))
	laplace = logistic.Log(p.LaplaceShare) - logistic.Log(p.LaplaceScale) - math.Ln2 - math.Abs(a)/p.LaplaceScale
	return gauss, laplace
}

// LogDensity returns Σ ln(π_g·N + π_l·L) over the coefficients (the second sum of
// equation 41). It adds logarithms, so that neither part underflows.
func (p GaussLaplace) LogDensity(coef []float64) float64 {
	sum := 0.0
	for _, a := range coef {
		sum += p.LogDensityOf(a)
	}
	return sum
}

func (p GaussLaplace) LogDensityOf(a float64) float64 {
	gauss, laplace := p.parts(a)
	most, least := max(gauss, laplace), min(gauss, laplace)
	if math.IsInf(least, -1) {
		return most
	}
	return most + logistic.Log1p(logistic.Exp(least-most))
}

// Responsibility returns the Gaussian part of the density at a, divided by the density.
func (p GaussLaplace) Responsibility(a float64) float64 {
	gauss, laplace := p.parts(a)
	if gauss == laplace {
		return 0.5 // both may be −∞, and −∞ − (−∞) is NaN
	}
	return logistic.Sigmoid(gauss - laplace)
}

// GradientTo sets dst, as long as coef, to the gradient of LogDensity (equations
// 42 to 44): each entry −r·a/σ_g² − (1−r)·sign(a)/b_l with the responsibility r,
// where sign(0) is 0. dst may be coef.
func (p GaussLaplace) GradientTo(dst, coef []float64) {
	if len(dst) != len(coef) {
		panic(fmt.Sprintf("bblr: a gradient of %d entries for %d coefficients", len(dst), len(coef)))
	}
	for j, a := range coef {
		r := p.Responsibility(a)
		g := 0 - r*(a/p.GaussSD)/p.GaussSD
		switch {
		case a > 0:
			g -= (1 - r) / p.LaplaceScale
		case a < 0:
			g += (1 - r) / p.LaplaceScale
		}
		dst[j] = g
	}
}
