package report

import "math"

// Wilson returns the 95 % score interval of a fraction of n (Wilson 1927, "Probable
// inference, the law of succession, and statistical inference"). It is 0 to 1 for n = 0.
func Wilson(fraction, n float64) (lo, hi float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	center := (fraction + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(fraction*(1-fraction)/n+z*z/(4*n*n))
	return max(center-half, 0), min(center+half, 1)
}
