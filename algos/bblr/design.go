package bblr

// A design is the rows of a fit. Every sum runs in the rows' order.
type design interface {
	// products sets dst_i to wᵀx_i.
	products(dst, w []float64)
	// addRows adds Σ scale_i·x_i to dst.
	addRows(dst, scale []float64)
	// row and column return x_i and the numbers of a column. They may write them
	// into scratch, which is as long. The result must not be changed.
	row(scratch []float64, i int) []float64
	column(scratch []float64, j int) []float64
	// entries returns the rows in which a column is not 0, and its numbers there. ok is
	// false if they are not known to be few.
	entries(j int) (rows []int, numbers []float64, ok bool)
	// part returns a design of the chosen rows, in this order.
	part(chosen []int) design
}

// A dense design stores all numbers, by rows and by columns.
type dense struct {
	n, d int
	rows []float64 // N×D by rows
	cols []float64 // D×N by rows: the transpose of rows, so that a column of x is contiguous
}

// newDense returns a copy of x.
func newDense(x [][]float64) *dense {
	m := &dense{n: len(x), d: len(x[0]), rows: make([]float64, len(x)*len(x[0]))}
	for i, row := range x {
		copy(m.at(i), row)
	}
	m.layColumns()
	return m
}

// layColumns sets cols to the transpose of rows.
func (m *dense) layColumns() {
	m.cols = make([]float64, m.n*m.d)
	for i := range m.n {
		for j, v := range m.at(i) {
			m.cols[j*m.n+i] = v
		}
	}
}

func (m *dense) at(i int) []float64 { return m.rows[i*m.d : (i+1)*m.d] }

func (m *dense) row(_ []float64, i int) []float64    { return m.at(i) }
func (m *dense) column(_ []float64, j int) []float64 { return m.cols[j*m.n : (j+1)*m.n] }

func (m *dense) entries(int) ([]int, []float64, bool) { return nil, nil, false }

// products adds up only the columns of the coefficients other than 0, if more than
// three quarters of w are 0.
func (m *dense) products(dst, w []float64) {
	support := 0
	for _, v := range w {
		if v != 0 {
			support++
		}
	}
	if 4*support >= m.d {
		i := 0
		for ; i+2 <= len(dst); i += 2 {
			dst[i], dst[i+1] = dot2(w, m.at(i), m.at(i+1))
		}
		if i < len(dst) {
			dst[i] = dot(w, m.at(i))
		}
		return
	}
	clear(dst)
	for j, v := range w {
		if v != 0 {
			addScaled(dst, v, m.column(nil, j))
		}
	}
}

func (m *dense) addRows(dst, scale []float64) {
	rows := rowSum{dst: dst}
	for i, s := range scale {
		if s != 0 {
			rows.add(s, m.at(i))
		}
	}
	rows.finish()
}

func (m *dense) part(chosen []int) design {
	p := &dense{n: len(chosen), d: m.d, rows: make([]float64, 0, len(chosen)*m.d)}
	for _, i := range chosen {
		p.rows = append(p.rows, m.at(i)...)
	}
	p.layColumns()
	return p
}
