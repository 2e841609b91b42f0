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

// dot4Go adds the products of four rows with x to s, each from the first column to the last.
func dot4Go(s *[4]float64, r0, r1, r2, r3, x []float64) {
	n := len(x)
	r0, r1, r2, r3 = r0[:n], r1[:n], r2[:n], r3[:n]
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	for j, xj := range x {
		s0 += float64(r0[j] * xj)
		s1 += float64(r1[j] * xj)
		s2 += float64(r2[j] * xj)
		s3 += float64(r3[j] * xj)
	}
	s[0], s[1], s[2], s[3] = s0, s1, s2, s3
}

// both4Go is dot4Go, and adds by[0]·r0 + … + by[3]·r3 to y.
func both4Go(s *[4]float64, y, r0, r1, r2, r3 []float64, by *[4]float64, x []float64) {
	n := len(x)
	r0, r1, r2, r3, y = r0[:n], r1[:n], r2[:n], r3[:n], y[:n]
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	b0, b1, b2, b3 := by[0], by[1], by[2], by[3]
	for j, xj := range x {
		e0, e1, e2, e3 := r0[j], r1[j], r2[j], r3[j]
		s0 += float64(e0 * xj)
		s1 += float64(e1 * xj)
		s2 += float64(e2 * xj)
		s3 += float64(e3 * xj)
		y[j] += (float64(e0*b0) + float64(e1*b1)) + (float64(e2*b2) + float64(e3*b3))
	}
	s[0], s[1], s[2], s[3] = s0, s1, s2, s3
}
