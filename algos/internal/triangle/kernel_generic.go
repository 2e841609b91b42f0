package triangle

// The innermost loops of the triangle's kernels, in Go. On amd64 with AVX kernel_amd64.s
// replaces them, with the same bits, except with `-tags purego`.

// outer4Go adds g[r]·x to each of four rows.
func outer4Go(r0, r1, r2, r3 []float64, g *[4]float64, x []float64) {
	n := len(x)
	r0, r1, r2, r3 = r0[:n], r1[:n], r2[:n], r3[:n]
	g0, g1, g2, g3 := g[0], g[1], g[2], g[3]
	for j, xj := range x {
		r0[j] += float64(g0 * xj)
		r1[j] += float64(g1 * xj)
		r2[j] += float64(g2 * xj)
		r3[j] += float64(g3 * xj)
	}
}
