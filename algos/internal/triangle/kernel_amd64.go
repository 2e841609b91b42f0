//go:build !purego

package triangle

// hasAVX chooses the kernels of kernel_amd64.s. They give the bits of kernel_generic.go.
var hasAVX = supportsAVX()

//go:noescape
func supportsAVX() bool

//go:noescape
func outer4AVX(r0, r1, r2, r3 *float64, by *[4]float64, x *float64, n int)

func outer4(r0, r1, r2, r3 []float64, g *[4]float64, x []float64) {
	n := len(x)
	if !hasAVX || n == 0 {
		outer4Go(r0, r1, r2, r3, g, x)
		return
	}
	_, _, _, _ = r0[n-1], r1[n-1], r2[n-1], r3[n-1]
	outer4AVX(&r0[0], &r1[0], &r2[0], &r3[0], g, &x[0], n)
}

//go:noescape
func dot4AVX(s *[4]float64, r0, r1, r2, r3, x *float64, n int)

func dot4(s *[4]float64, r0, r1, r2, r3, x []float64) {
	n := len(x) &^ 3
	if !hasAVX || n == 0 {
		dot4Go(s, r0, r1, r2, r3, x)
		return
	}
	_, _, _, _ = r0[n-1], r1[n-1], r2[n-1], r3[n-1]
	dot4AVX(s, &r0[0], &r1[0], &r2[0], &r3[0], &x[0], n)
	dot4Go(s, r0[n:], r1[n:], r2[n:], r3[n:], x[n:])
}

//go:noescape
func both4AVX(s *[4]float64, y, r0, r1, r2, r3 *float64, by *[4]float64, x *float64, n int)

func both4(s *[4]float64, y, r0, r1, r2, r3 []float64, by *[4]float64, x []float64) {
	n := len(x) &^ 3
	if !hasAVX || n == 0 {
		both4Go(s, y, r0, r1, r2, r3, by, x)
		return
	}
	_, _, _, _, _ = y[n-1], r0[n-1], r1[n-1], r2[n-1], r3[n-1]
	both4AVX(s, &y[0], &r0[0], &r1[0], &r2[0], &r3[0], by, &x[0], n)
	both4Go(s, y[n:], r0[n:], r1[n:], r2[n:], r3[n:], by, x[n:])
}
