// Package logistic holds σ, its logarithm and its inverse, and the exponential
// and logarithm under them, for code that changes a model.
//
// The standard library's Exp and Log are written in assembly on some
// architectures and use fused multiply-add where the CPU has it, so their last
// bit depends on the machine. The functions here are plain Go: a product that
// feeds a sum is rounded by float64(), the order of every sum is written down,
// and scaling by a power of two is done on the exponent's bits. They return the
// same bits on every CPU and architecture.
//
//	eˣ     = 2ᵏ·eʳ        x = k·ln 2 + r, |r| ≤ ½ ln 2, eʳ by its Taylor series
//	ln x   = k·ln 2 + ln m   x = 2ᵏ·m, m in [√½, √2), ln m = 2 atanh((m−1)/(m+1))
//	ln σ(z) = min(z, 0) − ln(1 + e^−|z|)
//
// Exp and Log are within 1 unit in the last place (ulp) of the true value,
// Log1p, Sigmoid, LogSigmoid and Logit within 2 (logistic_test.go measures them
// against math/big). Logarithms are natural, log-odds are in nats.
package logistic

import "math"

// ln 2 in two parts. The first has 32 significant bits, so that its product
// with an exponent (11 bits) is exact; the second is the rest, rounded. Their
// sum is ln 2 to 2⁻⁸⁶; logistic_test.go checks it with math/big.
const (
	ln2Hi = 0x1.62e42feep-1
	ln2Lo = 0x1.a39ef35793c76p-33
	log2E = 1.44269504088896340735992468100189214 // 1/ln 2
)

const (
	// Adding and subtracting 1.5·2⁵² rounds a number below 2⁵¹ to the nearest
	// integer, which then stands in the low bits of the sum.
	roundToInt = 0x1.8p52

	expOverflow  = 709.78271289338397  // above it eˣ > MaxFloat64
	expUnderflow = -745.13321910194122 // below it eˣ rounds to 0
)

// Exp returns eˣ. Above 709.78… it is +Inf, below −745.13… 0; between −745.13…
// and −708.39… the result is subnormal, with as many correct bits as fit.
func Exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > expOverflow:
		return math.Inf(1)
	case x < expUnderflow:
		return 0
	}
	t := float64(x*log2E) + roundToInt
	n := int(int32(math.Float64bits(t)))
	k := t - roundToInt
	hi := x - float64(k*ln2Hi) // exact: both are multiples of ulp(ln2Hi·k)
	lo := float64(k * ln2Lo)
	r := hi - lo

	// eʳ = 1 + r + r²·q(r), q(r) = Σ rʲ/(j+2)!, j = 0…11. The first term left
	// out is below 0.3466¹⁴/14! = 4·10⁻¹⁸, 0.04 ulp. The sum runs in pairs, then
	// pairs of pairs (Estrin), because that is a shorter chain than Horner's.
	const (
		c0, c1, c2, c3   = 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120
		c4, c5, c6, c7   = 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880
		c8, c9, c10, c11 = 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800
	)
	r2 := float64(r * r)
	r4 := float64(r2 * r2)
	q0 := (c0 + float64(c1*r)) + float64((c2+float64(c3*r))*r2)
	q1 := (c4 + float64(c5*r)) + float64((c6+float64(c7*r))*r2)
	q2 := (c8 + float64(c9*r)) + float64((c10+float64(c11*r))*r2)
	q := q0 + float64((q1+float64(q2*r4))*r4)
	y := 1 + (hi + (float64(r2*q) - lo)) // in [0.707, 1.415]

	if n >= -1020 && n <= 1022 {
		return math.Float64frombits(math.Float64bits(y) + uint64(n)<<52)
	}
	// At the ends 2ⁿ or the result would leave the normal numbers: scale in two
	// steps, of which only the last can round.
	if n > 0 {
		return float64(float64(y*0x1p1000) * pow2(n-1000))
	}
	return float64(float64(y*pow2(n+200)) * 0x1p-200)
}

// pow2 returns 2ⁿ for −1022 ≤ n ≤ 1023.
func pow2(n int) float64 { return math.Float64frombits(uint64(n+1023) << 52) }

// Log returns the natural logarithm of x: −Inf at 0, NaN below 0, +Inf at +Inf.
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	k := 0
	if x < 0x1p-1022 { // subnormal
		x *= 0x1p54
		k = -54
	}
	// Taking √½'s mantissa off the bits puts the cut between exponents at √½,
	// so that m lies in [√½, √2).
	const sqrtHalf = 0x3fe6a09e667f3bcd
	bits := math.Float64bits(x) - sqrtHalf
	e := int64(bits) >> 52
	k += int(e)
	m := math.Float64frombits(math.Float64bits(x) - uint64(e)<<52)
	return logSum(float64(k), m-1)
}

// logSum returns k·ln 2 + ln(1+f) for f in [√½−1, √2−1].
//
// With s = f/(2+f), ln(1+f) = 2 atanh s = 2s + s·R, R = Σ 2z^j/(2j+1) from
// j = 1, z = s². As s(2+f) = f, 2s = f − s·f, and one more step of the same
// kind, s·f = f²/2 − s·f²/2, leaves f as the exact leading term:
//
//	ln(1+f) = f − (f²/2 − s·(f²/2 + R))
//
// z ≤ 0.0295: the first term of R left out, j = 11, is below 1.3·10⁻¹⁸.
func logSum(k, f float64) float64 {
	const (
		d1, d2, d3, d4, d5  = 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11
		d6, d7, d8, d9, d10 = 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21
	)
	s := f / (2 + f)
	z := float64(s * s)
	z2 := float64(z * z)
	z4 := float64(z2 * z2)
	p0 := (d1 + float64(d2*z)) + float64((d3+float64(d4*z))*z2)
	p1 := (d5 + float64(d6*z)) + float64((d7+float64(d8*z))*z2)
	p2 := d9 + float64(d10*z)
	R := float64(z * (p0 + float64((p1+float64(p2*z4))*z4)))
	h := float64(0.5 * float64(f*f))
	return float64(k*ln2Hi) - ((h - (float64(s*(h+R)) + float64(k*ln2Lo))) - f)
}

// Log1p returns ln(1+x), accurate also where 1+x would lose x: Log1p(x) = x to
// rounding for |x| < 2⁻⁵⁴. It is −Inf at −1 and NaN below.
func Log1p(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case math.Abs(x) < 0x1p-54:
		return x
	case x > -0.29 && x < 0.41:
		return logSum(0, x)
	case x <= -1:
		if x == -1 {
			return math.Inf(-1)
		}
		return math.NaN()
	}
	u := 1 + x
	// What rounding took from u: ln(1+x) = ln u + (1+x−u)/u to second order in
	// 2⁻⁵³. One of the two differences is exact in each range.
	c := x - (u - 1)
	if x > 1 {
		c = 1 - (u - x)
	}
	return Log(u) + c/u
}

// Sigmoid returns σ(z) = 1/(1+e⁻ᶻ), the probability whose log-odds are z. Its
// relative precision holds in the lower tail down to e^−745. In the upper tail it is 1
// from z = 37 on; use Sigmoid(−z) for a precise complement.
func Sigmoid(z float64) float64 {
	if z >= 0 {
		return 1 / (1 + Exp(-z))
	}
	e := Exp(z)
	return e / (1 + e)
}

// LogSigmoid returns ln σ(z) = −ln(1+e⁻ᶻ): z to rounding for z < −37, and
// −e⁻ᶻ for z > 37. At −Inf it is −Inf, at +Inf 0.
func LogSigmoid(z float64) float64 {
	if z < 0 {
		return z - Log1p(Exp(z))
	}
	return -Log1p(Exp(-z))
}

// Logit returns the log-odds ln p/(1−p) of a probability: −Inf at 0, +Inf at 1,
// NaN outside. It inverts Sigmoid and keeps its relative precision at p = ½,
// where it is 0.
func Logit(p float64) float64 {
	if p > 0.25 && p < 0.75 {
		// 2p−1 is exact here, and ln p/(1−p) = ln(1 + (2p−1)/(1−p)).
		return Log1p((2*p - 1) / (1 - p))
	}
	return Log(p) - Log1p(-p)
}
