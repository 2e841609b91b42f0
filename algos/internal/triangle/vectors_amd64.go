//go:build !purego

package triangle

import "hamlet/algos/internal/cpu"

//go:noescape
func cornerQuadsAVX(s, c, x *[16]float64)

// cornerQuads is cornerQuadsGo.
func cornerQuads(s, c, x *[16]float64) {
	if !cpu.AVX2 {
		cornerQuadsGo(s, c, x)
		return
	}
	cornerQuadsAVX(s, c, x)
}

//go:noescape
func bothQuadsAVX(s *[16]float64, y, x *float64, by *[16]float64, r0, r1, r2, r3 *float64, n int)

// bothQuads is bothQuadsGo.
func bothQuads(s *[16]float64, y, x []float64, by *[16]float64, r0, r1, r2, r3 []float64) {
	if !cpu.AVX2 {
		bothQuadsGo(s, y, x, by, r0, r1, r2, r3)
		return
	}
	n := len(x) / 4
	_, _, _, _, _ = y[4*n-1], r0[n-1], r1[n-1], r2[n-1], r3[n-1]
	bothQuadsAVX(s, &y[0], &x[0], by, &r0[0], &r1[0], &r2[0], &r3[0], n)
}

//go:noescape
func dots4AVX(dst *[4]float64, v, x *float64, n int)

// dots4 is dots4Go.
func dots4(dst *[4]float64, v, x []float64) {
	if !cpu.AVX2 || len(x) == 0 {
		dots4Go(dst, v, x)
		return
	}
	dots4AVX(dst, &v[0], &x[0], len(x))
}

//go:noescape
func addRowsAVX(y, by, v *float64, n, k int)

// addRows is addRowsGo.
func addRows(y, by, v []float64) {
	if !cpu.AVX2 {
		addRowsGo(y, by, v)
		return
	}
	addRowsAVX(&y[0], &by[0], &v[0], len(y), len(by))
}
