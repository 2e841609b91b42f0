package game

import (
	"context"
	"math"
	"math/big"
	"math/bits"
)

// integers is a game in whole numbers, s_ij = (a_ij − least)/unit + 1 ≥ 1, each
// made when asked for.
type integers struct {
	a        [][]float64
	exponent int      // unit = 2^exponent, of which all entries are multiples
	least    *big.Int // the smallest a_ij, in units
}

func newIntegers(a [][]float64) *integers {
	g := &integers{a: a, exponent: math.MaxInt}
	least := math.Inf(1)
	for _, row := range a {
		for _, v := range row {
			least = min(least, v)
			if v != 0 {
				_, e := wholePart(v)
				g.exponent = min(g.exponent, e)
			}
		}
	}
	if g.exponent == math.MaxInt { // all entries are 0
		g.exponent = 0
	}
	g.least = g.units(new(big.Int), least)
	return g
}

// wholePart returns m and e with v = m·2ᵉ, m odd, of v ≠ 0.
func wholePart(v float64) (m int64, e int) {
	f, e := math.Frexp(v)
	m = int64(f * (1 << 53))
	shift := bits.TrailingZeros64(uint64(m))
	return m >> shift, e - 53 + shift
}

// units sets dst to v/unit.
func (g *integers) units(dst *big.Int, v float64) *big.Int {
	if v == 0 {
		return dst.SetInt64(0)
	}
	m, e := wholePart(v)
	return dst.Lsh(dst.SetInt64(m), uint(e-g.exponent))
}

var one = big.NewInt(1)

// at sets dst to s_ij.
func (g *integers) at(dst *big.Int, i, j int) *big.Int {
	return dst.Add(dst.Sub(g.units(dst, g.a[i][j]), g.least), one)
}

func (g *integers) dims() (m, n int) { return len(g.a), len(g.a[0]) }

// weights are strategies before division by their common sum: p_i/Σp and q_j/Σq
// with Σp = Σq. They are optimal where Sq ≤ det ≤ Sᵀp, and the value of S is then
// det/Σp.
type weights struct {
	p, q []*big.Int // none negative
	det  *big.Int   // > 0
}

// solution divides, and returns to the units of a.
func (g *integers) solution(w weights) Exact {
	sum := new(big.Int)
	for _, n := range w.p {
		sum.Add(sum, n)
	}
	var e Exact
	for _, n := range w.p {
		e.P = append(e.P, new(big.Rat).SetFrac(n, sum))
	}
	for _, n := range w.q {
		e.Q = append(e.Q, new(big.Rat).SetFrac(n, sum))
	}
	e.Value = new(big.Rat).SetFrac(w.det, sum)
	e.Value.Add(e.Value, new(big.Rat).SetInt(new(big.Int).Sub(g.least, one)))
	unit := new(big.Rat)
	if g.exponent < 0 {
		unit.SetFrac(one, new(big.Int).Lsh(one, uint(-g.exponent)))
	} else {
		unit.SetInt(new(big.Int).Lsh(one, uint(g.exponent)))
	}
	e.Value.Mul(e.Value, unit)
	return e
}

// kernel solves the game as if only the given rows and columns were in play, and
// returns true if that is optimal in the whole game and ctx not done.
func (g *integers) kernel(ctx context.Context, rows, columns []int) (weights, bool) {
	k := len(rows)
	if k == 0 || k != len(columns) {
		return weights{}, false
	}
	u, det, ok := bareiss(ctx, k, func(i, j int) *big.Int { return g.at(new(big.Int), rows[i], columns[j]) })
	if !ok {
		return weights{}, false
	}
	v, detT, ok := bareiss(ctx, k, func(i, j int) *big.Int { return g.at(new(big.Int), rows[j], columns[i]) })
	if !ok {
		return weights{}, false
	}
	if det.Cmp(detT) != 0 { // the pivots may leave the two of different sign
		for _, n := range v {
			n.Neg(n)
		}
	}
	if det.Sign() < 0 {
		det.Neg(det)
		for i := range k {
			u[i].Neg(u[i])
			v[i].Neg(v[i])
		}
	}
	m, n := g.dims()
	w := weights{p: zeros(m), q: zeros(n), det: det}
	for i := range k {
		if u[i].Sign() < 0 || v[i].Sign() < 0 {
			return weights{}, false
		}
		w.q[columns[i]], w.p[rows[i]] = u[i], v[i]
	}
	return w, g.optimal(w, rows, columns)
}

// optimal reports whether Sq ≤ det and Sᵀp ≥ det in every row and column, where p
// and q are 0 outside rows and columns.
func (g *integers) optimal(w weights, rows, columns []int) bool {
	m, n := g.dims()
	entry, sum, product := new(big.Int), new(big.Int), new(big.Int)
	for i := range m {
		sum.SetInt64(0)
		for _, j := range columns {
			sum.Add(sum, product.Mul(g.at(entry, i, j), w.q[j]))
		}
		if sum.Cmp(w.det) > 0 {
			return false
		}
	}
	for j := range n {
		sum.SetInt64(0)
		for _, i := range rows {
			sum.Add(sum, product.Mul(g.at(entry, i, j), w.p[i]))
		}
		if sum.Cmp(w.det) < 0 {
			return false
		}
	}
	return true
}

func zeros(n int) []*big.Int {
	z := make([]*big.Int, n)
	for i := range z {
		z[i] = new(big.Int)
	}
	return z
}

// bareiss solves K·x = det·1 in integers, det = ±det K; false if K is singular or
// ctx done. Every number on the way is a minor of [K 1], so that it stays as
// short as the answer may be.
func bareiss(ctx context.Context, k int, at func(i, j int) *big.Int) (x []*big.Int, det *big.Int, ok bool) {
	t := make([][]*big.Int, k)
	for i := range t {
		for j := range k {
			t[i] = append(t[i], at(i, j))
		}
		t[i] = append(t[i], big.NewInt(1))
	}
	product, last := new(big.Int), one
	for c := range k {
		r := c
		for r < k && t[r][c].Sign() == 0 {
			r++
		}
		if r == k || ctx.Err() != nil {
			return nil, nil, false
		}
		t[c], t[r] = t[r], t[c]
		for i := c + 1; i < k; i++ {
			for j := c + 1; j <= k; j++ {
				v := t[i][j]
				v.Mul(v, t[c][c])
				v.Sub(v, product.Mul(t[i][c], t[c][j]))
				v.Quo(v, last) // without remainder
			}
		}
		last = t[c][c]
	}
	// Back substitution: x_i = (det·b_i − Σ_{j>i} t_ij x_j)/t_ii, whole by Cramer.
	det, x = last, make([]*big.Int, k)
	for i := k - 1; i >= 0; i-- {
		v := new(big.Int).Mul(det, t[i][k])
		for j := i + 1; j < k; j++ {
			v.Sub(v, product.Mul(t[i][j], x[j]))
		}
		x[i] = v.Quo(v, t[i][i])
	}
	return x, new(big.Int).Set(det), true
}

// simplex is the simplex method of guess in integers (J. Edmonds): the tableau is
// t/d, where d is the last pivot, and every division leaves no remainder. It stops
// early, at nothing of use, when ctx is done.
func (g *integers) simplex(ctx context.Context) weights {
	m, n := g.dims()
	t := make([][]*big.Int, m+1)
	row, column := make([]int, m), make([]int, n)
	for i := range m {
		for j := range n {
			t[i] = append(t[i], g.at(new(big.Int), i, j))
		}
		t[i] = append(t[i], big.NewInt(1))
		row[i] = n + i
	}
	for j := range n {
		t[m] = append(t[m], big.NewInt(-1))
		column[j] = j
	}
	t[m] = append(t[m], new(big.Int))
	d, bland := big.NewInt(1), false
	x, y := new(big.Int), new(big.Int)
	for {
		c := -1
		for j, v := range t[m][:n] {
			if v.Sign() < 0 && (c < 0 || bland && column[j] < column[c] || !bland && v.Cmp(t[m][c]) < 0) {
				c = j
			}
		}
		if c < 0 || ctx.Err() != nil {
			break
		}
		// The row of the least t_in/t_ic; there is one, as the program is bounded.
		r := -1
		for i := range m {
			if t[i][c].Sign() <= 0 {
				continue
			}
			if r >= 0 {
				order := x.Mul(t[i][n], t[r][c]).Cmp(y.Mul(t[r][n], t[i][c]))
				if order > 0 || order == 0 && row[i] > row[r] {
					continue
				}
			}
			r = i
		}
		bland = t[r][n].Sign() == 0 // no progress
		exchange(t, r, c, d)
		row[r], column[c] = column[c], row[r]
	}
	w := weights{p: zeros(m), q: zeros(n), det: d}
	for i, v := range row {
		if v < n {
			w.q[v] = t[i][n]
		}
	}
	for j, v := range column {
		if v >= n {
			w.p[v-n] = t[m][j]
		}
	}
	return w
}

// exchange pivots the tableau t/d at row r and column c, and sets d.
func exchange(t [][]*big.Int, r, c int, d *big.Int) {
	pivot, product := new(big.Int).Set(t[r][c]), new(big.Int)
	for i, line := range t {
		if i == r {
			continue
		}
		for j, v := range line {
			if j != c {
				v.Mul(v, pivot)
				v.Sub(v, product.Mul(line[c], t[r][j]))
				v.Quo(v, d)
			}
		}
		line[c].Neg(line[c])
	}
	t[r][c].Set(d)
	d.Set(pivot)
}
