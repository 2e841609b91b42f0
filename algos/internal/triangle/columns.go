package triangle

// The kernels here take the columns of K events at once, so that a tile of the matrix
// serves all of them from the cache. The sums keep the order of one column, so the bits
// do not depend on the number of columns.

const (
	// A tile of rowTile × colTile numbers takes 64 KB of the second-level cache;
	// the columns that go with it, 8 KB for four, stay in the first.
	rowTile = 64
	colTile = 128
	// rankTile columns of 64 vectors take 128 KB.
	rankTile = 256
)

// Interleave writes vectors of length n to dst four by four, side by side: entry
// 4j+c of group q is entry j of vector 4q+c, 0 beyond the last vector.
func Interleave(dst []float64, vectors [][]float64, n int) {
	for q := 0; 4*q < len(vectors); q++ {
		group := dst[4*n*q:][:4*n]
		for c := range 4 {
			if 4*q+c >= len(vectors) {
				for j := range n {
					group[4*j+c] = 0
				}
				continue
			}
			for j, v := range vectors[4*q+c][:n] {
				group[4*j+c] = v
			}
		}
	}
}

// MulColumns sets y = A·x for len(x)/4n groups of four interleaved columns. s is
// scratch of the size of x. They may not alias each other. Each column has the bits that
// MulVec gives it. n² products a column, four at a time.
func (a Matrix) MulColumns(y, x, s []float64, n int) {
	size, whole := 4*n, n&^3
	clear(y[:len(x)])
	for j0 := 0; j0 < n; j0 += colTile {
		j1 := min(j0+colTile, n)
		for i0 := 0; i0 < min(j1, whole); i0 += rowTile {
			for q := 0; q < len(x); q += size {
				xq, yq, sq := x[q:q+size], y[q:q+size], s[q:q+size]
				for i := i0; i < min(i0+rowTile, j1, whole); i += 4 {
					r0, r1, r2, r3 := a.Row(n, i), a.Row(n, i+1), a.Row(n, i+2), a.Row(n, i+3)
					xi, si := (*[16]float64)(xq[4*i:]), (*[16]float64)(sq[4*i:])
					if i >= j0 {
						corner(r0, r1, r2, r3, xi, si)
					}
					if j := max(j0, i+4); j < j1 {
						symm4(r0[j-i:j1-i], r1[j-i-1:j1-i-1], r2[j-i-2:j1-i-2], r3[j-i-3:j1-i-3], xq[4*j:4*j1], yq[4*j:4*j1], xi, si)
					}
				}
			}
		}
	}
	for q := 0; q < len(x); q += size {
		xq, yq, sq := x[q:q+size], y[q:q+size], s[q:q+size]
		for j, v := range sq[:4*whole] {
			yq[j] += v
		}
		for i := whole; i < n; i++ {
			row := a.Row(n, i)
			for c := range 4 {
				xi := xq[4*i+c]
				sum := float64(row[0] * xi)
				for j := 1; j < len(row); j++ {
					sum += float64(row[j] * xq[4*(i+j)+c])
					yq[4*(i+j)+c] += float64(row[j] * xi)
				}
				yq[4*i+c] += sum
			}
		}
	}
}

// corner sets s to the product of the 4×4 corner on the diagonal with x.
func corner(r0, r1, r2, r3 []float64, x, s *[16]float64) {
	for c := range 4 {
		x0, x1, x2, x3 := x[c], x[4+c], x[8+c], x[12+c]
		s[c] = float64(r0[0]*x0) + float64(r0[1]*x1) + float64(r0[2]*x2) + float64(r0[3]*x3)
		s[4+c] = float64(r0[1]*x0) + float64(r1[0]*x1) + float64(r1[1]*x2) + float64(r1[2]*x3)
		s[8+c] = float64(r0[2]*x0) + float64(r1[1]*x1) + float64(r2[0]*x2) + float64(r2[1]*x3)
		s[12+c] = float64(r0[3]*x0) + float64(r1[2]*x1) + float64(r2[1]*x2) + float64(r3[0]*x3)
	}
}

// AddRank adds Σₖ g[k]·uₖuₖᵀ, where uₖ is u[k·n : (k+1)·n], with the bits of as
// many calls of AddOuter, in n²/2 products each, rounded and summed in order. pu
// and pg are scratch of len(g)·(n+8) and len(g)·n numbers.
func (a Matrix) AddRank(g, u, pu, pg []float64, n int) {
	k, whole, wide := len(g), n&^3, n&^7
	// uₖ in panels of eight columns, g·uₖ in panels of four rows, k by k.
	for i, gi := range g {
		ui := u[i*n : (i+1)*n]
		for j := 0; j < wide; j += 8 {
			*(*[8]float64)(pu[j*k+8*i:]) = [8]float64(ui[j:])
		}
		for j := 0; j < whole; j += 4 {
			v := [4]float64(ui[j:])
			*(*[4]float64)(pg[j*k+4*i:]) = [4]float64{float64(gi * v[0]), float64(gi * v[1]), float64(gi * v[2]), float64(gi * v[3])}
		}
	}
	for j0 := 0; j0 < wide; j0 += rankTile {
		j1 := min(j0+rankTile, wide)
		for i := 0; i < min(j1, whole); i += 4 {
			r0, r1, r2, r3 := a.Row(n, i), a.Row(n, i+1), a.Row(n, i+2), a.Row(n, i+3)
			gi := pg[i*k : (i+4)*k]
			for j := max(j0, (i+4+7)&^7); j < j1; j += 8 {
				rank4x8(r0[j-i:], r1[j-i-1:], r2[j-i-2:], r3[j-i-3:], gi, pu[j*k:(j+8)*k])
			}
		}
	}
	// What the panels leave out: next to the diagonal, and the last columns.
	for i := range n {
		row := a.Row(n, i)
		from, to := n, n
		if i < whole {
			from, to = min((i&^3+4+7)&^7, wide), wide
		}
		for l, gl := range g {
			ul := u[l*n : (l+1)*n]
			gu := float64(gl * ul[i])
			for j := i; j < from; j++ {
				row[j-i] += float64(gu * ul[j])
			}
			for j := max(to, from, i); j < n; j++ {
				row[j-i] += float64(gu * ul[j])
			}
		}
	}
}
