package sla

import "hamlet/algos/internal/triangle"

// A Design is the rows of a fit. Every sum runs in the rows' order.
type Design interface {
	// Products sets dst_i to wᵀx_i.
	Products(dst, w []float64)
	// AddRows adds Σ scale_i·x_i to dst.
	AddRows(dst, scale []float64)
	// Row and Column return x_i and the numbers of a column. They may write them
	// into scratch, which is as long. The result must not be changed.
	Row(scratch []float64, i int) []float64
	Column(scratch []float64, j int) []float64
	// Entries returns the rows in which a column is not 0, and its numbers there. ok is
	// false if they are not known to be few.
	Entries(j int) (rows []int, numbers []float64, ok bool)
	// Part returns a design of the chosen rows, in this order.
	Part(chosen []int) Design
}

// A Dense design stores all numbers, by rows and by columns.
type Dense struct {
	N, D int
	Rows []float64 // N×D by rows
	Cols []float64 // D×N by rows: the transpose of rows, so that a column of x is contiguous
}

// NewDense returns a copy of x.
func NewDense(x [][]float64) *Dense {
	m := &Dense{N: len(x), D: len(x[0]), Rows: make([]float64, len(x)*len(x[0]))}
	for i, row := range x {
		copy(m.at(i), row)
	}
	m.layColumns()
	return m
}

// layColumns sets cols to the transpose of rows.
func (m *Dense) layColumns() {
	m.Cols = make([]float64, m.N*m.D)
	for i := range m.N {
		for j, v := range m.at(i) {
			m.Cols[j*m.N+i] = v
		}
	}
}

func (m *Dense) at(i int) []float64 { return m.Rows[i*m.D : (i+1)*m.D] }

func (m *Dense) Row(_ []float64, i int) []float64    { return m.at(i) }
func (m *Dense) Column(_ []float64, j int) []float64 { return m.Cols[j*m.N : (j+1)*m.N] }

func (m *Dense) Entries(int) ([]int, []float64, bool) { return nil, nil, false }

// Products adds up only the columns of the coefficients other than 0, if more than
// three quarters of w are 0.
func (m *Dense) Products(dst, w []float64) {
	support := 0
	for _, v := range w {
		if v != 0 {
			support++
		}
	}
	if 4*support >= m.D {
		i := 0
		for ; i+2 <= len(dst); i += 2 {
			dst[i], dst[i+1] = dot2(w, m.at(i), m.at(i+1))
		}
		if i < len(dst) {
			dst[i] = triangle.Dot(w, m.at(i))
		}
		return
	}
	clear(dst)
	for j, v := range w {
		if v != 0 {
			AddScaled(dst, v, m.Column(nil, j))
		}
	}
}

func (m *Dense) AddRows(dst, scale []float64) {
	rows := rowSum{dst: dst}
	for i, s := range scale {
		if s != 0 {
			rows.add(s, m.at(i))
		}
	}
	rows.finish()
}

func (m *Dense) Part(chosen []int) Design {
	p := &Dense{N: len(chosen), D: m.D, Rows: make([]float64, 0, len(chosen)*m.D)}
	for _, i := range chosen {
		p.Rows = append(p.Rows, m.at(i)...)
	}
	p.layColumns()
	return p
}
