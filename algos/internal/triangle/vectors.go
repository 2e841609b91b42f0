package triangle

// MulVecs and its kernels take several vectors at once, so that a matrix is read once for all of them. A quad is the
// same entry of four vectors. Each of its numbers sums in the order of mulVecGo.

// MulVecs goes through a matrix in tiles of so many rows and columns. A tile stays in the second cache, and the
// columns of four vectors in the first.
const (
	tileRows    = 64
	tileColumns = 256
)

// VectorsScratch returns how long the scratch of MulVecs is, for k vectors of length n.
func VectorsScratch(n, k int) int { return 4 * (2*n + tileRows) * ((k + 3) / 4) }

// MulVecs sets row j of dst = A·(row j of x) for k rows of n entries, with the bits of MulVec. It reads A once.
func (a Matrix) MulVecs(dst, x []float64, n, k int, scratch []float64) {
	a.check(n)
	if k == 1 {
		a.MulVec(dst[:n], x[:n])
		return
	}
	quads := make([]quadVectors, 0, 16)
	for j := 0; j < k; j += 4 {
		var q quadVectors
		for _, v := range []*[]float64{&q.x, &q.y} {
			*v, scratch = scratch[:4*n], scratch[4*n:]
		}
		q.s, scratch = scratch[:4*tileRows], scratch[4*tileRows:]
		clear(q.y)
		clear(q.x)
		for l := range min(4, k-j) {
			for i, v := range x[(j+l)*n:][:n] {
				q.x[4*i+l] = v
			}
		}
		quads = append(quads, q)
	}

	whole := n &^ 3 // rows in fours
	var corners [tileRows / 4][16]float64
	for top := 0; top < whole; top += tileRows {
		end := min(top+tileRows, whole)
		for i := top; i < end; i += 4 {
			a.corner(&corners[(i-top)/4], n, i)
		}
		for first := top; first < n; first += tileColumns {
			last := min(first+tileColumns, n)
			for _, q := range quads {
				for i := top; i < min(end, last); i += 4 {
					s := (*[16]float64)(q.s[4*(i-top):])
					by := (*[16]float64)(q.x[4*i:])
					if first <= i {
						cornerQuads(s, &corners[(i-top)/4], by)
					}
					from := max(first, i+4)
					if from == last {
						continue
					}
					bothQuads(s, q.y[4*from:4*last], q.x[4*from:4*last], by,
						a.Row(n, i)[from-i:], a.Row(n, i+1)[from-i-1:], a.Row(n, i+2)[from-i-2:], a.Row(n, i+3)[from-i-3:])
				}
			}
		}
		for _, q := range quads {
			for i, s := range q.s[:4*(end-top)] {
				q.y[4*top+i] += s
			}
		}
	}
	for i := whole; i < n; i++ {
		row := a.Row(n, i)
		for _, q := range quads {
			for l := range 4 {
				s := float64(row[0] * q.x[4*i+l])
				for j := 1; j < len(row); j++ {
					s += float64(row[j] * q.x[4*(i+j)+l])
					q.y[4*(i+j)+l] += float64(row[j] * q.x[4*i+l])
				}
				q.y[4*i+l] += s
			}
		}
	}
	for j := range k {
		y := quads[j/4].y[j%4:]
		for i := range dst[j*n:][:n] {
			dst[j*n+i] = y[4*i]
		}
	}
}

// quadVectors are four vectors x, what is summed of y = Ax, and the sums of a tile's rows.
type quadVectors struct{ x, y, s []float64 }

// corner sets c to the whole 4×4 corner on the diagonal at row i.
func (a Matrix) corner(c *[16]float64, n, i int) {
	for r := range 4 {
		for k, v := range a.Row(n, i+r)[:4-r] {
			c[4*r+r+k], c[4*(r+k)+r] = v, v
		}
	}
}

// cornerQuadsGo sets s to the products of a 4×4 corner with four quads of x.
func cornerQuadsGo(s, c, x *[16]float64) {
	for r := range 4 {
		for l := range 4 {
			s[4*r+l] = float64(c[4*r]*x[l]) + float64(c[4*r+1]*x[4+l]) + float64(c[4*r+2]*x[8+l]) + float64(c[4*r+3]*x[12+l])
		}
	}
}

// bothQuadsGo is both4Go for quads: the products of four rows with x add to s, those with by to y.
func bothQuadsGo(s *[16]float64, y, x []float64, by *[16]float64, r0, r1, r2, r3 []float64) {
	n := len(x) / 4
	r0, r1, r2, r3 = r0[:n], r1[:n], r2[:n], r3[:n]
	for l := range 4 {
		s0, s1, s2, s3 := s[l], s[4+l], s[8+l], s[12+l]
		b0, b1, b2, b3 := by[l], by[4+l], by[8+l], by[12+l]
		x, y := x[l:], y[l:]
		for j, e0 := range r0 {
			e1, e2, e3, xj := r1[j], r2[j], r3[j], x[4*j]
			s0 += float64(e0 * xj)
			s1 += float64(e1 * xj)
			s2 += float64(e2 * xj)
			s3 += float64(e3 * xj)
			y[4*j] += (float64(e0*b0) + float64(e1*b1)) + (float64(e2*b2) + float64(e3*b3))
		}
		s[l], s[4+l], s[8+l], s[12+l] = s0, s1, s2, s3
	}
}

// Dots sets dst[j] = Dot(row j of v, x), for rows of len(x) entries.
func Dots(dst, v, x []float64) {
	n, j := len(x), 0
	for ; j+4 <= len(dst); j += 4 {
		dots4((*[4]float64)(dst[j:]), v[j*n:][:4*n], x)
	}
	for ; j < len(dst); j++ {
		dst[j] = Dot(v[j*n:][:n], x)
	}
}

func dots4Go(dst *[4]float64, v, x []float64) {
	n := len(x)
	for j := range dst {
		dst[j] = Dot(v[j*n:][:n], x)
	}
}

// AddRows adds by[j] times row j of v to y, from the first j to the last, for rows of len(y) entries.
func AddRows(y, by, v []float64) {
	if len(by) > 0 && len(y) > 0 {
		addRows(y, by, v[:len(by)*len(y)])
	}
}

func addRowsGo(y, by, v []float64) {
	n := len(y)
	for j, b := range by {
		row := v[j*n:][:n]
		for i := range y {
			y[i] += float64(b * row[i])
		}
	}
}
