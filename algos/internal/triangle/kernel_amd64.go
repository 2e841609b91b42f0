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
