package viboost

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// digamma returns ψ(x) = d ln Γ(x)/dx for x > 0, with an error below 4 ulp of the
// larger of |ψ(x)| and 1: ψ(x) = ψ(x+1) − 1/x up to 10, then
// ln x − 1/2x − Σ B₂ₖ/(2k x²ᵏ), of which the first term left out is 4·10⁻¹⁷.
func digamma(x float64) float64 {
	s := 0.0
	if x < 10 {
		// From the largest x down, so that the small terms are added first.
		n := math.Ceil(10 - x)
		for i := n - 1; i >= 0; i-- {
			s -= 1 / (x + i)
		}
		x += n
	}
	u := 1 / float64(x*x)
	t := 1.0 / 12
	for _, c := range [...]float64{-691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12} {
		t = c + float64(u*t)
	}
	return s + ((logistic.Log(x) - 0.5/x) - float64(u*t))
}

// logBeta returns ln B(a, b) for positive a and b, with a relative error of some
// ulp also where both are large and the three lnΓ would cancel:
// B(a, b) = B(a+1, b)·(a+b)/a up to 10 in both, then Stirling's series with
//
//	ln B = ½ ln 2π + (a−½) ln a/(a+b) + b ln b/(a+b) − ½ ln b + δ(a) + δ(b) − δ(a+b).
func logBeta(a, b float64) float64 {
	s := 0.0
	for ; a < 10; a++ {
		s += logistic.Log1p(b / a)
	}
	for ; b < 10; b++ {
		s += logistic.Log1p(a / b)
	}
	const halfLog2Pi = 0.918938533204672741780329736405617639861
	s += halfLog2Pi - logistic.Log(b)/2
	s -= float64((a - 0.5) * logistic.Log1p(b/a))
	s -= float64(b * logistic.Log1p(a/b))
	return s + ((stirling(a) + stirling(b)) - stirling(a+b))
}

// stirling returns ln Γ(x) less (x−½) ln x − x + ½ ln 2π for x ≥ 10, to 10⁻¹⁷.
func stirling(x float64) float64 {
	u := 1 / float64(x*x)
	t := 1.0 / 156
	for _, c := range [...]float64{-691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12} {
		t = c + float64(u*t)
	}
	return t / x
}
