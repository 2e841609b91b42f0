package triangle

// The kernels in Go. On amd64 with AVX kernel_amd64.s replaces them, with the same bits, except with
// `-tags purego`.

// mulVecGo adds A·x to y. A row's sum begins with the 4×4 corner on the diagonal, and goes on from column to
// column. What is below the diagonal adds to y, four rows at a time.
func mulVecGo(y []float64, a Matrix, x []float64) {
	n := len(x)
	i := 0
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3, below := a.four(n - i)
		a = below
		x0, x1, x2, x3 := x[i], x[i+1], x[i+2], x[i+3]
		s := [4]float64{
			float64(r0[0]*x0) + float64(r0[1]*x1) + float64(r0[2]*x2) + float64(r0[3]*x3),
			float64(r0[1]*x0) + float64(r1[0]*x1) + float64(r1[1]*x2) + float64(r1[2]*x3),
			float64(r0[2]*x0) + float64(r1[1]*x1) + float64(r2[0]*x2) + float64(r2[1]*x3),
			float64(r0[3]*x0) + float64(r1[2]*x1) + float64(r2[1]*x2) + float64(r3[0]*x3),
		}
		both4Go(&s, y[i+4:], r0[4:], r1[3:], r2[2:], r3[1:], (*[4]float64)(x[i:]), x[i+4:])
		y[i] += s[0]
		y[i+1] += s[1]
		y[i+2] += s[2]
		y[i+3] += s[3]
	}
	for ; i < n; i++ {
		row := a[:n-i]
		a = a[n-i:]
		s := float64(row[0] * x[i])
		for j := 1; j < len(row); j++ {
			s += float64(row[j] * x[i+j])
			y[i+j] += float64(row[j] * x[i])
		}
		y[i] += s
	}
}

// outerGo adds g·xxᵀ to A.
func outerGo(a Matrix, g float64, x []float64) {
	for i := range x {
		row := a[:len(x)-i]
		a = a[len(row):]
		gi := float64(g * x[i])
		for j, xj := range x[i:] {
			row[j] += float64(gi * xj)
		}
	}
}

// quadraticGo adds Σ aᵢᵢxᵢ² to diagonal, and Σ aᵢⱼxᵢxⱼ of i < j to rest.
func quadraticGo(diagonal, rest float64, a Matrix, x []float64) (float64, float64) {
	n := len(x)
	i := 0
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3, below := a.four(n - i)
		a = below
		x0, x1, x2, x3 := x[i], x[i+1], x[i+2], x[i+3]
		diagonal += float64(r0[0]*float64(x0*x0)) + float64(r1[0]*float64(x1*x1)) +
			float64(r2[0]*float64(x2*x2)) + float64(r3[0]*float64(x3*x3))
		s := [4]float64{
			float64(r0[1]*x1) + float64(r0[2]*x2) + float64(r0[3]*x3),
			float64(r1[1]*x2) + float64(r1[2]*x3),
			float64(r2[1] * x3),
		}
		dot4Go(&s, r0[4:], r1[3:], r2[2:], r3[1:], x[i+4:])
		rest += (float64(s[0]*x0) + float64(s[1]*x1)) + (float64(s[2]*x2) + float64(s[3]*x3))
	}
	for ; i < n; i++ {
		row := a[:n-i]
		a = a[n-i:]
		diagonal += float64(row[0] * float64(x[i]*x[i]))
		s := 0.0
		for j := 1; j < len(row); j++ {
			s += float64(row[j] * x[i+j])
		}
		rest += float64(s * x[i])
	}
	return diagonal, rest
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

// rankGo adds to tile entries of each of some rows. Row i gets by[ik+j] times row j of v, from the first j below k to
// the last. The entries of row 0 begin at a[0], and those of row 1 at a[next]. Each row is shorter than the one before it
// by one, so from there it is one less to the next.
func rankGo(a, by, v []float64, k, next, rows int) {
	at := 0
	for i := range rows {
		row := a[at:][:tile]
		for j, b := range by[i*k:][:k] {
			for c, x := range v[tile*j:][:tile] {
				row[c] += float64(b * x)
			}
		}
		at += next - i
	}
}
