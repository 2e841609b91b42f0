package triangle

// The innermost loops of the triangle's kernels, in Go. On amd64 with AVX kernel_amd64.s
// replaces them, with the same bits, except with `-tags purego`.

// symm4Go multiplies four rows of a triangle, columns j, by four interleaved columns of
// x (x[4j+c] is x_j of column c). As columns it multiplies them by the rows' inputs xi:
//
//	s[4r+c] += Σ_j rᵣ[j]·x_j[c],   y_j[c] += (r₀[j]·xi₀[c] + r₁[j]·xi₁[c]) + (r₂[j]·xi₂[c] + r₃[j]·xi₃[c])
//
// with the sums in s one term after the other: the order of MulVec.
func symm4Go(r0, r1, r2, r3, x, y []float64, xi, s *[16]float64) {
	n := len(r0)
	r1, r2, r3, x, y = r1[:n], r2[:n], r3[:n], x[:4*n], y[:4*n]
	for c := range 4 {
		x0, x1, x2, x3 := xi[c], xi[4+c], xi[8+c], xi[12+c]
		s0, s1, s2, s3 := s[c], s[4+c], s[8+c], s[12+c]
		for j := range n {
			e0, e1, e2, e3, xj := r0[j], r1[j], r2[j], r3[j], x[4*j+c]
			s0 += float64(e0 * xj)
			s1 += float64(e1 * xj)
			s2 += float64(e2 * xj)
			s3 += float64(e3 * xj)
			y[4*j+c] += (float64(e0*x0) + float64(e1*x1)) + (float64(e2*x2) + float64(e3*x3))
		}
		s[c], s[4+c], s[8+c], s[12+c] = s0, s1, s2, s3
	}
}

// rank4x8Go adds to eight numbers of each of four rows the products of k pairs of
// vectors, gu[4i+r] for the rows and u[8i+c] for the columns, i = 0 … k−1, one
// product after the other: the order of k calls of AddOuter.
func rank4x8Go(r0, r1, r2, r3, gu, u []float64) {
	k := len(gu) / 4
	u = u[:8*k]
	for c := 0; c < 8; c += 2 {
		a0, a1, b0, b1 := r0[c], r0[c+1], r1[c], r1[c+1]
		c0, c1, d0, d1 := r2[c], r2[c+1], r3[c], r3[c+1]
		for i := range k {
			u0, u1 := u[8*i+c], u[8*i+c+1]
			g := gu[4*i : 4*i+4 : 4*i+4]
			a0 += float64(g[0] * u0)
			a1 += float64(g[0] * u1)
			b0 += float64(g[1] * u0)
			b1 += float64(g[1] * u1)
			c0 += float64(g[2] * u0)
			c1 += float64(g[2] * u1)
			d0 += float64(g[3] * u0)
			d1 += float64(g[3] * u1)
		}
		r0[c], r0[c+1], r1[c], r1[c+1] = a0, a1, b0, b1
		r2[c], r2[c+1], r3[c], r3[c+1] = c0, c1, d0, d1
	}
}

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
