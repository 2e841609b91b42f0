//go:build !purego

package triangle

// hasAVX chooses the kernels of kernel_amd64.s. They give the bits of kernel_generic.go.
var hasAVX = supportsAVX()

//go:noescape
func supportsAVX() bool

//go:noescape
func symm4AVX(r0, r1, r2, r3, x, y *float64, xi, s *[16]float64, n int)

//go:noescape
func rank4x8AVX(r0, r1, r2, r3, gu, u *float64, k int)

//go:noescape
func outer4AVX(r0, r1, r2, r3 *float64, by *[4]float64, x *float64, n int)

func symm4(r0, r1, r2, r3, x, y []float64, xi, s *[16]float64) {
	n := len(r0)
	if !hasAVX || n == 0 {
		symm4Go(r0, r1, r2, r3, x, y, xi, s)
		return
	}
	_, _, _, _, _ = r1[n-1], r2[n-1], r3[n-1], x[4*n-1], y[4*n-1]
	symm4AVX(&r0[0], &r1[0], &r2[0], &r3[0], &x[0], &y[0], xi, s, n)
}

func rank4x8(r0, r1, r2, r3, gu, u []float64) {
	k := len(gu) / 4
	if !hasAVX || k == 0 {
		rank4x8Go(r0, r1, r2, r3, gu, u)
		return
	}
	_, _, _, _, _ = r0[7], r1[7], r2[7], r3[7], u[8*k-1]
	rank4x8AVX(&r0[0], &r1[0], &r2[0], &r3[0], &gu[0], &u[0], k)
}

func outer4(r0, r1, r2, r3 []float64, g *[4]float64, x []float64) {
	n := len(x)
	if !hasAVX || n == 0 {
		outer4Go(r0, r1, r2, r3, g, x)
		return
	}
	_, _, _, _ = r0[n-1], r1[n-1], r2[n-1], r3[n-1]
	outer4AVX(&r0[0], &r1[0], &r2[0], &r3[0], g, &x[0], n)
}
