package game

import (
	"context"
	"math"
)

// A tableau is the condensed simplex tableau of max Σu, Su ≤ 1, u ≥ 0 in floating
// point, S = (A − min A)/(max A − min A) + 1 with entries in [1, 2].
type tableau struct {
	m, n   int
	t      []float64 // (m+1)×(n+1) by rows: S | 1, and below it −1 | 0
	row    []int     // the variable that is basic in each row: column j, or n+i for the slack of row i
	column []int     // the variable that is not basic in each column
}

// What rounding leaves of a zero. Entries of the tableau are of the order of 1;
// a wrong guess costs time, not correctness.
const tolerance = 1e-9

// guess runs the simplex method and returns the rows and columns of the kernel,
// in rising order, and false if it comes to no end or ctx is done.
func guess(ctx context.Context, a [][]float64) (rows, columns []int, ok bool) {
	s := newTableau(a)
	// Dantzig's rule goes where the objective rises fastest, and could go round in
	// circles among degenerate bases; Bland's rule cannot, and is used from a
	// pivot without progress until the next with some.
	bland := false
	for range 1000 + 50*(s.m+s.n) {
		c := s.entering(bland)
		if ctx.Err() != nil {
			return nil, nil, false
		}
		if c < 0 {
			rows, columns = s.kernel()
			return rows, columns, true
		}
		r := s.leaving(c)
		if r < 0 {
			return nil, nil, false // unbounded: only rounding can say so
		}
		before := s.at(s.m, s.n)
		s.pivot(r, c)
		bland = !(s.at(s.m, s.n) > before+tolerance)
	}
	return nil, nil, false
}

func newTableau(a [][]float64) *tableau {
	s := &tableau{m: len(a), n: len(a[0])}
	s.t = make([]float64, (s.m+1)*(s.n+1))
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, row := range a {
		for _, v := range row {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	span := hi/4 - lo/4 // finite for all entries
	for i, row := range a {
		t := s.line(i)
		for j, v := range row {
			t[j] = 1
			if span > 0 {
				t[j] += (v/4 - lo/4) / span
			}
		}
		t[s.n] = 1
		s.row = append(s.row, s.n+i)
	}
	for j := range s.n {
		s.line(s.m)[j] = -1
		s.column = append(s.column, j)
	}
	return s
}

func (s *tableau) line(i int) []float64       { return s.t[i*(s.n+1) : (i+1)*(s.n+1)] }
func (s *tableau) at(i, j int) float64        { return s.t[i*(s.n+1)+j] }
func (s *tableau) kernel() (rows, cols []int) { return kernelOf(s.row, s.column, s.n) }

// kernelOf lists the rows whose slack has left the basis and the columns that
// have entered it.
func kernelOf(row, column []int, n int) (rows, columns []int) {
	tight, played := make([]bool, len(row)), make([]bool, n)
	for _, v := range column {
		if v >= n {
			tight[v-n] = true
		}
	}
	for _, v := range row {
		if v < n {
			played[v] = true
		}
	}
	for i, is := range tight {
		if is {
			rows = append(rows, i)
		}
	}
	for j, is := range played {
		if is {
			columns = append(columns, j)
		}
	}
	return rows, columns
}

// entering returns the column to enter the basis, −1 at the optimum.
func (s *tableau) entering(bland bool) int {
	best, c := -tolerance, -1
	for j, v := range s.line(s.m)[:s.n] {
		switch {
		case v >= -tolerance:
		case bland:
			if c < 0 || s.column[j] < s.column[c] {
				c = j
			}
		case v < best:
			best, c = v, j
		}
	}
	return c
}

// leaving returns the row that limits column c most, of equal ones that of the
// lowest variable; −1 if none does.
func (s *tableau) leaving(c int) int {
	least, r := math.Inf(1), -1
	for i := range s.m {
		v := s.at(i, c)
		if v <= tolerance {
			continue
		}
		ratio := max(0, s.at(i, s.n)) / v
		switch {
		case r < 0 || ratio < least-tolerance:
			least, r = ratio, i
		case ratio <= least+tolerance && s.row[i] < s.row[r]:
			least, r = min(least, ratio), i
		}
	}
	return r
}

// pivot exchanges the basic variable of row r with that of column c.
func (s *tableau) pivot(r, c int) {
	top := s.line(r)
	inverse := 1 / top[c]
	for j := range top {
		top[j] *= inverse
	}
	top[c] = inverse
	for i := range s.m + 1 {
		if i == r {
			continue
		}
		t := s.line(i)
		factor := t[c]
		if factor == 0 {
			continue
		}
		for j, v := range top {
			t[j] -= float64(factor * v)
		}
		t[c] = -float64(factor * inverse)
	}
	s.row[r], s.column[c] = s.column[c], s.row[r]
}
