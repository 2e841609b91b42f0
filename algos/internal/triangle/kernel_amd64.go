//go:build !purego

package triangle

import "hamlet/algos/internal/cpu"

// Assembly is not preempted, and a collection of garbage waits for it. So a kernel gets rows of some strip entries
// at once, which takes it some 50 µs.
const strip = 1 << 17

// strips calls a kernel for the first n−(n mod 4) rows: for as many of the first ones of those that are left as a
// strip has. It calls it with their number, where they begin in the matrix, and with how many rows stay.
func strips(n int, kernel func(n, at, least int)) {
	for at := 0; n >= 4; {
		rows := n
		if n*(n+1)/2 > strip {
			rows = max(strip/n&^7, 8)
		}
		least := max(n-rows, n&3)
		kernel(n, at, max(least, 3))
		at += (n*(n+1) - least*(least+1)) / 2
		n = least
	}
}

//go:noescape
func mulVecAVX(y, a, x *float64, n, least int)

// mulVec is mulVecGo.
func mulVec(y []float64, a Matrix, x []float64) {
	n := len(x)
	if !cpu.AVX2 {
		mulVecGo(y, a, x)
		return
	}
	strips(n, func(left, at, least int) { mulVecAVX(&y[n-left], &a[at], &x[n-left], left, least) })
	last := n & 3
	mulVecGo(y[n-last:], a[len(a)-last*(last+1)/2:], x[n-last:])
}

//go:noescape
func outerAVX(a *float64, by float64, x *float64, n, least int)

// outer is outerGo.
func outer(a Matrix, g float64, x []float64) {
	n := len(x)
	if !cpu.AVX2 {
		outerGo(a, g, x)
		return
	}
	strips(n, func(left, at, least int) {
		if least == 3 { // the last ones too
			least = 0
		}
		outerAVX(&a[at], g, &x[n-left], left, least)
	})
	if n < 4 {
		outerGo(a, g, x)
	}
}

//go:noescape
func quadraticAVX(parts *[2]float64, a, x *float64, n, least int)

// quadratic is quadraticGo.
func quadratic(a Matrix, x []float64) (diagonal, rest float64) {
	n := len(x)
	if !cpu.AVX2 {
		return quadraticGo(0, 0, a, x)
	}
	var parts [2]float64
	strips(n, func(left, at, least int) { quadraticAVX(&parts, &a[at], &x[n-left], left, least) })
	last := n & 3
	return quadraticGo(parts[0], parts[1], a[len(a)-last*(last+1)/2:], x[n-last:])
}

//go:noescape
func rankAVX(a, by, v *float64, k, next, rows int)

// rank is rankGo.
func rank(a, by, v []float64, k, next, rows int) {
	if !cpu.AVX2 {
		rankGo(a, by, v, k, next, rows)
		return
	}
	_, _, _ = a[(rows-1)*next-(rows-1)*(rows-2)/2+tile-1], by[rows*k-1], v[tile*k-1]
	rankAVX(&a[0], &by[0], &v[0], k, next, rows)
}
