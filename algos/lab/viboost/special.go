package viboost

import (
	"hamlet/algos/internal/logistic"
)

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
