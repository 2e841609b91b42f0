//go:build !purego

package triangle

import "golang.org/x/sys/cpu"

// hasAVX chooses the kernels of kernel_amd64.s. They give the bits of kernel_generic.go.
var hasAVX = cpu.X86.HasAVX

//go:noescape
func mulVecAVX(y, a, x *float64, n int)

// mulVec is mulVecGo.
func mulVec(y []float64, a Matrix, x []float64) {
	n := len(x)
	if !hasAVX || n < 4 {
		mulVecGo(y, a, x)
		return
	}
	_, _ = y[n-1], a[n*(n+1)/2-1]
	mulVecAVX(&y[0], &a[0], &x[0], n)
	last := n & 3
	mulVecGo(y[n-last:], a[len(a)-last*(last+1)/2:], x[n-last:])
}

//go:noescape
func outerAVX(a *float64, by float64, x *float64, n int)

// outer is outerGo.
func outer(a Matrix, g float64, x []float64) {
	n := len(x)
	if !hasAVX || n == 0 {
		outerGo(a, g, x)
		return
	}
	_ = a[n*(n+1)/2-1]
	outerAVX(&a[0], g, &x[0], n)
}

//go:noescape
func quadraticAVX(parts *[2]float64, a, x *float64, n int)

// quadratic is quadraticGo.
func quadratic(a Matrix, x []float64) (diagonal, rest float64) {
	n := len(x)
	if !hasAVX || n < 4 {
		return quadraticGo(0, 0, a, x)
	}
	_ = a[n*(n+1)/2-1]
	var parts [2]float64
	quadraticAVX(&parts, &a[0], &x[0], n)
	last := n & 3
	return quadraticGo(parts[0], parts[1], a[len(a)-last*(last+1)/2:], x[n-last:])
}

//go:noescape
func rankAVX(row, by, v *float64, k int)

// rank is rankGo.
func rank(row *[tile]float64, by, v []float64) {
	if !hasAVX || len(by) == 0 {
		rankGo(row, by, v)
		return
	}
	_ = v[tile*len(by)-1]
	rankAVX(&row[0], &by[0], &v[0], len(by))
}
