// Package normal is the normal distribution: density, distribution function and quantile,
// with the same bits on every CPU.
package normal

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// PDF returns the density at x.
func PDF(x float64) float64 {
	return float64(1 / math.Sqrt(2*math.Pi) * logistic.Exp(float64(-0.5*float64(x*x))))
}

// CDF returns Φ(x) = ½ erfc(−x/√2). The rounding of x makes the relative error
// in the lower tail (4+x²)·2e−16.
func CDF(x float64) float64 {
	if x > 0 {
		return 1 - CDF(-x)
	}
	return 0.5 * erfc(-x/math.Sqrt2)
}

// erfc returns erfc(x), x ≥ 0. Below ½ it is 1 minus erf's Taylor series; above,
// the trapezoidal rule with step h = ½ for
//
//	erfc(x) = (x/π)·e^{−x²} ∫ e^{−t²}/(t²+x²) dt
//
// plus the part of the poles at ±ix, 2/(1−e^{2πx/h}), for x < π/h (C.
// Chiarella and A. Reichel, On the evaluation of integrals related to the error
// function, 1968). The rest is below e^{−π²/h²} = 7e−18, relative.
func erfc(x float64) float64 {
	if x > 40 {
		return 0 // it is below 10⁻⁶⁹⁴
	}
	if x < 0.5 {
		return 1 - Erf(x)
	}
	// e^{−x²} with the digits that squaring x rounds away.
	head := math.Float64frombits(math.Float64bits(x) &^ (1<<27 - 1))
	e := float64(logistic.Exp(-float64(head*head)) * logistic.Exp(-float64((x-head)*(x+head))))
	r := float64(float64(erfcStep/math.Pi*x) * float64(e*erfcSum(x)))
	if x < math.Pi/erfcStep {
		r += 2 / (1 - logistic.Exp(2*math.Pi/erfcStep*x))
	}
	return r
}

const erfcStep = 0.5

// erfcSum returns Σ e^{−t²}/(t²+x²) over t = kh for all integers k.
func erfcSum(x float64) float64 {
	x2, sum := float64(x*x), 0.0
	for k := len(gaussTable) - 1; k >= 0; k-- {
		t := erfcStep * float64(k+1)
		sum += gaussTable[k] / (float64(t*t) + x2)
	}
	return 1/x2 + 2*sum
}

// Erfcx returns e^{x²}·erfc(x), x ≥ 0, which never underflows: it tends to 1/(√π·x). Its
// relative error is some 1e−15.
func Erfcx(x float64) float64 {
	switch {
	case x < 0.5:
		return float64(logistic.Exp(float64(x*x)) * (1 - Erf(x)))
	case x > 1e8: // x² may overflow, and the next term, 1/(2x²), is below rounding
		return 1 / math.Sqrt(math.Pi) / x
	}
	r := float64(float64(erfcStep/math.Pi*x) * erfcSum(x))
	if x < math.Pi/erfcStep {
		r += 2 * logistic.Exp(float64(x*x)) / (1 - logistic.Exp(2*math.Pi/erfcStep*x))
	}
	return r
}

// Erf returns erf(x) for 0 ≤ x < ½ by its Taylor series.
func Erf(x float64) float64 {
	x2, term, sum := float64(x*x), x, x
	for k := 1; k < 16; k++ {
		term *= -x2 / float64(k)
		sum += term / float64(2*k+1)
	}
	return float64(2 / math.Sqrt(math.Pi) * sum)
}

// gaussTable holds e^{−k²/4} for k = 1 … 13, where it is 4e−19.
var gaussTable = func() (t [13]float64) {
	for k := range t {
		t[k] = logistic.Exp(-0.25 * float64((k+1)*(k+1)))
	}
	return t
}()

// UpperQuantile returns z ≥ 0 with Φ(−z) = q, 0 < q ≤ ½. Φ is concave above 0. So
// Newton's method from 0 increases towards the root and never passes it.
func UpperQuantile(q float64) float64 {
	z := 0.0
	for range 400 {
		next := z + (CDF(-z)-q)/PDF(z)
		if !(next > z) || next-z <= 1e-15*z {
			return next
		}
		z = next
	}
	return z
}
