package boost

import (
	"fmt"
	"math"
)

const (
	// The absolute weights of a vector in fixed point sum to less than 2^fixedBits
	// units. So any sum of them, and twice that, fits an int64. A unit is less than
	// 1.8e−18 of the total.
	fixedBits = 60

	// Two candidates whose edges differ by less than 2^tieBits units, 2⁻⁴⁶
	// (1.4e−14) of the total weight, are equal, and the first wins. Equal weights
	// seldom have equal sums, in float64 or in units, if they are products in
	// different order.
	tieBits = fixedBits - 46
	tie     = 1 << tieBits
)

// Fix writes the signed weights wᵢ·yᵢ to dst in fixed point, rounded towards zero.
// It returns the unit, a power of two below 2⁻⁵⁹ of their total. Sums in fixed
// point are exact in any order, so the exact search and the histograms find the
// same candidates.
//
// w are weights ≥ 0 with a total up to 2⁹⁰⁰; y are ±1. If the total is below 2⁻⁹⁰⁰,
// the unit and dst are 0. Fix panics if a weight is NaN or negative, the total too
// large, or the lengths differ.
func Fix(dst []int64, w, y []float64) (unit float64) {
	if len(w) != len(dst) || len(y) != len(dst) {
		panic(fmt.Sprintf("boost: %d weights and %d labels for %d rows", len(w), len(y), len(dst)))
	}
	sum := 0.0
	for i, v := range w {
		if !(v >= 0) {
			panic(fmt.Sprintf("boost: weight %d is %v", i, v))
		}
		sum += v
	}
	if sum > 0x1p900 {
		panic(fmt.Sprintf("boost: weights add up to %v: scale them down", sum))
	}
	if sum < 0x1p-900 {
		clear(dst)
		return 0
	}
	_, exp := math.Frexp(sum) // sum < 2^exp
	scale := math.Ldexp(1, fixedBits-exp)
	for i, v := range w {
		dst[i] = int64(v * y[i] * scale)
	}
	return math.Ldexp(1, exp-fixedBits)
}
