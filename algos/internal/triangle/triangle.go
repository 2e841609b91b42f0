// Package triangle is the linear algebra of symmetric matrices that blr learns with: half of
// a matrix, its products and its inverse, with the same bits on every CPU. Functions panic
// on wrong lengths.
package triangle

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/internal/logistic"
)

// A Matrix is the upper half of a symmetric n×n matrix, row after row without gaps: row
// i holds columns i…n−1. An update touches n(n+1)/2 numbers, and the matrix cannot lose
// its symmetry.
//
//	a₀₀ a₀₁ a₀₂ … a₀ₙ₋₁ a₁₁ a₁₂ … aₙ₋₁ₙ₋₁
//
// The kernels are loops over contiguous rows, four at a time. They round every product
// before it is added and sum in an order that depends on n alone, so that their bits are
// the same on every CPU. MEASURED.md compares them with gonum's.
type Matrix []float64

// New returns the matrix 0 of n rows.
func New(n int) Matrix { return make(Matrix, n*(n+1)/2) }

// Row returns columns i…n−1 of row i.
func (a Matrix) Row(n, i int) []float64 {
	start := i*n - i*(i-1)/2
	return a[start : start+n-i]
}

// four returns the first four rows of a matrix of n rows, and the rows below them.
func (a Matrix) four(n int) (r0, r1, r2, r3, below Matrix) {
	return a[:n], a[n:][:n-1], a[2*n-1:][:n-2], a[3*n-3:][:n-3], a[4*n-6:]
}

// check panics unless the matrix has n rows.
func (a Matrix) check(n int) {
	if len(a) != n*(n+1)/2 {
		panic(fmt.Sprintf("triangle: a matrix of %d entries for %d inputs", len(a), n))
	}
}

// At returns element (i, j), i ≤ j.
func (a Matrix) At(n, i, j int) float64 { return a[i*n-i*(i-1)/2+j-i] }

// MulVec sets dst = A·x for len(x) = n; dst may not alias x.
func (a Matrix) MulVec(dst, x []float64) {
	a.check(len(x))
	dst = dst[:len(x)]
	clear(dst)
	mulVec(dst, a, x)
}

// Quadratic returns xᵀAx in n²/2 products.
func (a Matrix) Quadratic(x []float64) float64 {
	a.check(len(x))
	diagonal, rest := quadratic(a, x)
	return diagonal + float64(2*rest)
}

// AddOuter adds g·xxᵀ to A; each element gets the product (g·xᵢ)·xⱼ, i ≤ j.
func (a Matrix) AddOuter(g float64, x []float64) {
	a.check(len(x))
	outer(a, g, x)
}

// AddOuters takes tile columns at once. A kernel gets at most rankedRows rows of them in one call, because a
// collection of garbage waits for assembly.
const (
	tile       = 32
	rankedRows = 256
)

// OutersScratch returns how long the scratch of AddOuters is, for k vectors of length n.
func OutersScratch(n, k int) int { return (n + tile) * k }

// AddOuters adds Σ gⱼ·vⱼvⱼᵀ to A of n rows, with the bits of AddOuter for each j in turn. The vectors are the
// rows of v. It reads and writes A once: for many columns that is what AddOuter waits for.
func (a Matrix) AddOuters(n int, g, v, scratch []float64) {
	a.check(n)
	k := len(g)
	if k == 0 {
		return
	}
	by, columns := scratch[:n*k], scratch[n*k:][:tile*k]
	for top := 0; top < n; top += 8 { // so that what is written stays in the first cache
		end := min(top+8, n)
		for j, gj := range g {
			for i, x := range v[j*n+top : j*n+end] {
				by[(top+i)*k+j] = float64(gj * x)
			}
		}
	}
	for first := 0; first < n; first += tile {
		end := min(first+tile, n)
		for j := range g {
			clear(columns[j*tile+copy(columns[j*tile:][:tile], v[j*n+first:j*n+end]) : (j+1)*tile])
		}
		i := 0
		if end-first == tile {
			for ; i < first; i += rankedRows {
				rank(a[i*n-i*(i-1)/2+first-i:], by[i*k:], columns, k, n-i-1, min(rankedRows, first-i))
			}
			i = first
		}
		for ; i < end; i++ {
			from := max(i, first)
			row := a.Row(n, i)[from-i : end-i]
			var some [tile]float64
			copy(some[from-first:], row)
			rank(some[:], by[i*k:], columns, k, 0, 1)
			copy(row, some[from-first:])
		}
	}
}

// axpy4 sets y −= (c0·r0 + c1·r1) + (c2·r2 + c3·r3).
func axpy4(y []float64, c0, c1, c2, c3 float64, r0, r1, r2, r3 []float64) {
	r0, r1, r2, r3 = r0[:len(y)], r1[:len(y)], r2[:len(y)], r3[:len(y)]
	for j := range y {
		y[j] -= (float64(c0*r0[j]) + float64(c1*r1[j])) + (float64(c2*r2[j]) + float64(c3*r3[j]))
	}
}

// Axpy sets y −= c·r.
func Axpy(y []float64, c float64, r []float64) {
	r = r[:len(y)]
	for j := range y {
		y[j] -= float64(c * r[j])
	}
}

// Dot sums in four chains that meet at the end.
func Dot(x, y []float64) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	j := 0
	for ; j+4 <= len(x); j += 4 {
		s0 += float64(x[j] * y[j])
		s1 += float64(x[j+1] * y[j+1])
		s2 += float64(x[j+2] * y[j+2])
		s3 += float64(x[j+3] * y[j+3])
	}
	for ; j < len(x); j++ {
		s0 += float64(x[j] * y[j])
	}
	return (s0 + s1) + (s2 + s3)
}

// InOrder is xᵀy summed from the first entry to the last.
func InOrder(x, y []float64) float64 {
	y = y[:len(x)]
	s := 0.0
	for j := range x {
		s += float64(x[j] * y[j])
	}
	return s
}

// Cholesky overwrites r, a copy of the positive definite A, with the upper factor R of
// A = RᵀR, in n³/6 products. It raises a pivot rᵢᵢ² that rounding has taken below
// floor[i] > 0 to floor[i], and returns how many it raised.
func (r Matrix) Cholesky(floor []float64) (raised int) {
	n := len(floor)
	for i := range n {
		ri := r.Row(n, i)
		k := 0
		for ; k+4 <= i; k += 4 {
			r0, r1, r2, r3 := r.Row(n, k)[i-k:], r.Row(n, k+1)[i-k-1:], r.Row(n, k+2)[i-k-2:], r.Row(n, k+3)[i-k-3:]
			axpy4(ri, r0[0], r1[0], r2[0], r3[0], r0, r1, r2, r3)
		}
		for ; k < i; k++ {
			rk := r.Row(n, k)[i-k:]
			Axpy(ri, rk[0], rk)
		}
		if !(ri[0] >= floor[i]) {
			ri[0] = floor[i]
			raised++
		}
		d := math.Sqrt(ri[0])
		ri[0] = d
		for j := range ri[1:] {
			ri[1+j] /= d
		}
	}
	return raised
}

// invertFactor overwrites an upper triangular R with R⁻¹, from the last row up:
// row i of R⁻¹ is (eᵢ − Σ_{k>i} rᵢₖ·row k of R⁻¹)/rᵢᵢ. tmp has length n.
func (r Matrix) invertFactor(tmp []float64) {
	n := len(tmp)
	for i := n - 1; i >= 0; i-- {
		ri, t := r.Row(n, i), tmp[:n-i]
		clear(t)
		t[0] = 1
		for k := i + 1; k < n; k++ {
			Axpy(t[k-i:], ri[k-i], r.Row(n, k))
		}
		d := ri[0]
		for j := range t {
			ri[j] = t[j] / d
		}
	}
}

// squareOf sets A = T·Tᵀ for an upper triangular T of n rows.
func (a Matrix) squareOf(t Matrix, n int) {
	for i := range n {
		ai, ti := a.Row(n, i), t.Row(n, i)
		for j := range ai {
			ai[j] = Dot(t.Row(n, i+j), ti[j:])
		}
	}
}

// Invert sets cov = V, mean = Vη and returns ln|V| for the precision Λ = V⁻¹: Λ = RᵀR,
// T = R⁻¹, V = TTᵀ, w = T(Tᵀη), ln|V| = −2 Σ ln rᵢᵢ. About n³/2 products.
//
// Each squared pivot of R is the precision of one weight given those after it, at least
// floor. A pivot that rounding has taken below floor is raised to it, which happens if the
// inputs' scales differ much. factor and tmp are scratch.
func Invert(precision Matrix, eta, floor []float64, factor, cov Matrix,
	mean, tmp []float64) (logDet float64, raised int) {
	n := len(eta)
	copy(factor, precision)
	raised = factor.Cholesky(floor)
	for i := range n {
		logDet -= float64(2 * logistic.Log(factor.Row(n, i)[0]))
	}
	factor.invertFactor(tmp)
	cov.squareOf(factor, n)

	clear(tmp) // Tᵀη
	for i := range n {
		for j, t := range factor.Row(n, i) {
			tmp[i+j] += float64(t * eta[i])
		}
	}
	for i := range n {
		mean[i] = Dot(factor.Row(n, i), tmp[i:])
	}
	return logDet, raised
}

// CopyTo writes A to dst, which is n×n or empty.
func (a Matrix) CopyTo(dst *mat.SymDense, n int) {
	if dst.IsEmpty() {
		dst.ReuseAsSym(n)
	}
	if dst.SymmetricDim() != n {
		panic(fmt.Sprintf("triangle: a %d×%d matrix for %d inputs", dst.SymmetricDim(), dst.SymmetricDim(), n))
	}
	for i := range n {
		for j, v := range a.Row(n, i) {
			dst.SetSym(i, i+j, v)
		}
	}
}

// Minors reports whether |aᵢⱼ| ≤ √(aᵢᵢ·aⱼⱼ), up to the factor slack, for all i and j of a
// matrix with a positive diagonal. If not, it returns the first i and j that fail.
func (a Matrix) Minors(n int, slack float64) (i, j int, ok bool) {
	roots := make([]float64, n)
	for i := range roots {
		roots[i] = math.Sqrt(a.At(n, i, i))
	}
	for i := range n {
		most := slack * roots[i]
		for k, v := range a.Row(n, i) {
			if !(math.Abs(v) <= most*roots[i+k]) {
				return i, i + k, false
			}
		}
	}
	return 0, 0, true
}

// MulAbs sets dst = |A|·x.
func (a Matrix) MulAbs(dst, x []float64) {
	n := len(x)
	clear(dst)
	for i := range n {
		s := 0.0
		for k, v := range a.Row(n, i) {
			v = math.Abs(v)
			s += float64(v * x[i+k])
			if k > 0 {
				dst[i+k] += float64(v * x[i])
			}
		}
		dst[i] += s
	}
}
