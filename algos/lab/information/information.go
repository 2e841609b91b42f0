// Package information measures distributions over finite alphabets in bits:
// entropy, conditional entropy, mutual information, relative entropy and the
// Bhattacharyya coefficient,
//
//	H(X)    = −Σ p(x) log₂ p(x)
//	H(Y|X)  = −Σ p(x,y) log₂ p(y|x)              H(X,Y) = H(X) + H(Y|X)
//	D(p‖q)  =  Σ p(x) log₂ p(x)/q(x)
//	I(X;Y)  =  D(p(x,y) ‖ p(x)p(y))              = H(X) − H(X|Y)
//	BC(p,q) =  Σ √(p(x)q(x))
//
// with 0·log 0 = 0. Source: the boosting slides, section 2, pages 24–29, which
// follow T. M. Cover and J. A. Thomas, Elements of Information Theory (2nd ed.,
// 2006), sections 2.1–2.5; the coefficient is A. Bhattacharyya's (1943), and in
// BHBoost a round's Z is twice it.
//
// # Precision
//
// Every quantity is a sum of terms of one sign. So what a theorem says is not
// negative is not negative in floating point either, and small values keep their
// digits. The entropies are such sums by definition. The divergence becomes one
// when −p + q, which sums to zero, is added to each term:
//
//	D(p‖q)·ln 2 = Σ [p ln(p/q) − p + q],
//
// Each bracket is at least 0, because ln t ≤ t − 1. Where p is near q, the bracket
// is computed as a series in (p−q)/q: a difference would lose digits. Mutual
// information is computed as a divergence, not as a difference of entropies. log₂
// is exact at powers of two.
//
// Sums run in the order given. Logarithms come from logistic, so that the same
// numbers give the same bits on every machine. Functions are safe for concurrent
// use and keep none of their arguments.
package information

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// SumTolerance is how far from 1 the sum of a distribution may be: a million
// roundings of numbers near 1.
const SumTolerance = 1e-9

// Check reports why p is not a distribution: no entries, an entry that is
// negative, NaN or infinite (all of them, by index), or a sum further than
// SumTolerance from 1. It is for numbers from outside; the measures below trust
// their arguments.
func Check(p []float64) error {
	if len(p) == 0 {
		return errors.New("a distribution without entries")
	}
	var errs []error
	sum := 0.0
	for i, v := range p {
		if !(v >= 0 && v <= math.MaxFloat64) {
			errs = append(errs, fmt.Errorf("entry %d is %v: want a probability", i, v))
		}
		sum += v
	}
	if len(errs) == 0 && !(math.Abs(sum-1) <= SumTolerance) {
		errs = append(errs, fmt.Errorf("the entries sum to %v: want 1", sum))
	}
	return errors.Join(errs...)
}

// Entropy returns H(p) in bits, from 0 for a certainty to log₂ of the number of
// entries for the uniform distribution.
func Entropy(p []float64) float64 {
	h := 0.0
	for _, v := range p {
		h += surprise(v, 1)
	}
	return h
}

// surprise returns −p·log₂(p/of), where p is a part of the whole of; 0 for p = 0.
// If rounding has made p larger than of, it returns 0: no entropy is negative.
func surprise(p, of float64) float64 {
	if p <= 0 || p >= of {
		return 0
	}
	return float64(p * -logRatio(p, of))
}

// Divergence returns the relative entropy D(p‖q) in bits: 0 if and only if p = q,
// +Inf where p has mass and q has none. For measures whose sums differ it is
// Σ [p log₂(p/q) + (q−p)/ln 2], which is at least 0 too. It panics if the
// lengths differ.
func Divergence(p, q []float64) float64 {
	checkLengths(p, q)
	var d divergence
	for i, v := range p {
		d.add(v, q[i])
	}
	return d.total()
}

// A divergence is a sum of brackets p log₂(p/q) + (q−p)/ln 2.
type divergence struct {
	bits float64 // Σ p log₂(p/q), exact where the ratios are powers of two
	nats float64 // the rest, times ln 2
}

func (d *divergence) add(p, q float64) {
	switch {
	case p == 0:
		d.nats += q
		return
	case q == 0:
		d.bits = math.Inf(1)
		return
	}
	if r := (p - q) / q; math.Abs(r) < 1.0/16 {
		// q[(1+r) ln(1+r) − r] = q Σ (−r)ᵏ/(k(k−1)) from k = 2. At k = 15 the term
		// is below 2⁻⁵⁶/210 for |r| = 1/16, against a first one of r²/2 > 2⁻¹⁰.
		sum := 0.0
		for k := 14.0; k >= 2; k-- {
			sum = 1/(k*(k-1)) - float64(r*sum)
		}
		d.nats += float64(float64(float64(q*r)*r) * sum)
		return
	}
	d.bits += float64(p * logRatio(p, q))
	d.nats += q - p
}

// total returns the sum in bits. Before rounding it is at least 0. add splits a bracket
// over bits and nats only if it is more than a fiftieth of either part: rounding errors
// are far smaller.
func (d *divergence) total() float64 { return max(0, d.bits+d.nats/math.Ln2) }

// Bhattacharyya returns BC(p, q) = Σ√(pq), between 0 for disjoint and 1 for equal
// distributions. It is not a number of bits. p and q may be any non-negative
// measures, as the weights of a histogram's bins are. It panics if the lengths
// differ.
func Bhattacharyya(p, q []float64) float64 {
	checkLengths(p, q)
	bc := 0.0
	for i, v := range p {
		w := q[i]
		if vw := v * w; vw >= 0x1p-1000 && vw <= math.MaxFloat64 { // then √(v·v) = v
			bc += math.Sqrt(vw)
		} else {
			bc += float64(math.Sqrt(v) * math.Sqrt(w))
		}
	}
	return bc
}

// log2 returns log₂ x of x > 0, exact at powers of two.
func log2(x float64) float64 {
	m, e := math.Frexp(x) // m in [½, 1)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	return float64(e) + logistic.Log(m)/math.Ln2
}

// logRatio returns log₂(p/q) of positive p and q whose ratio may leave the range
// of float64.
func logRatio(p, q float64) float64 {
	if r := p / q; r >= 0x1p-1000 && r <= 0x1p1000 {
		return log2(r)
	}
	return log2(p) - log2(q)
}

func checkLengths(p, q []float64) {
	if len(p) != len(q) {
		panic(fmt.Sprintf("information: distributions over %d and %d symbols", len(p), len(q)))
	}
}
