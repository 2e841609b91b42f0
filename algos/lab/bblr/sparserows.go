package bblr

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/sla"
	"hamlet/algos/internal/triangle"
)

// A SparseRow holds the numbers of a row that are not 0: Value[k] stands in column
// Index[k]. Columns count from 0, and Index ascends.
type SparseRow struct {
	Index []int
	Value []float64
}

// FitSparse is Fit of rows with that many columns. It needs memory for the numbers
// other than 0, not for all N·D, and a step costs as much. Its sums are those of Fit
// to rounding, not to the bit.
func FitSparse(ctx context.Context, cfg Config, columns int,
	x []SparseRow, y, weight []float64) (*Linear, Report, error) {
	if err := cfg.Check(); err != nil {
		return nil, Report{}, err
	}
	if err := checkSparse(columns, x, y, weight); err != nil {
		return nil, Report{}, err
	}
	return fitSparse(ctx, cfg, newSparse(columns, x), y, weight)
}

// fitSparse is FitSparse for checked arguments.
func fitSparse(ctx context.Context, cfg Config, m *sparse, y, weight []float64) (*Linear, Report, error) {
	var s *sla.Scaling
	if !cfg.Raw {
		var err error
		if s, err = m.standardise(); err != nil {
			return nil, Report{}, err
		}
	}
	m.layColumns()
	return cfg.withDefaults().fit(ctx, sla.ProblemOf(m, m.n, m.d, y, weight), s)
}

// checkSparse is CheckRows for sparse rows.
func checkSparse(columns int, x []SparseRow, y, weight []float64) error {
	if columns < 1 || columns > sla.MaxColumns {
		return fmt.Errorf("%d columns: a fit takes 1 to %d", columns, sla.MaxColumns)
	}
	if len(y) != len(x) || weight != nil && len(weight) != len(x) {
		panic(fmt.Sprintf("bblr: %d rows, %d labels, %d weights", len(x), len(y), len(weight)))
	}
	if len(x) == 0 {
		return errors.New("no data: want at least one row")
	}
	var c sla.RowCheck
	for i, row := range x {
		if len(row.Index) != len(row.Value) {
			panic(fmt.Sprintf("bblr: row %d has %d numbers in %d columns", i, len(row.Value), len(row.Index)))
		}
		last := -1
		for _, j := range row.Index {
			if j <= last || j >= columns {
				c.Errs = append(c.Errs, fmt.Errorf("row %d has column %d after %d: want ascending columns below %d",
					i, j, last, columns))
				break
			}
			last = j
		}
		c.Row(i, row.Value, y, weight)
	}
	return c.Done()
}

// A sparse design stores the numbers of each row that differ from the column's base.
// The base of a raw column is 0; the base of a standardised one is what 0 becomes.
type sparse struct {
	n, d int
	base []float64 // D
	// Row i has the numbers base_j + more[k] in the columns index[k], for k from
	// start[i] to start[i+1].
	start, index []int
	more         []float64
	// by columns: column j has base_j + down[k] in the rows inRow[k], for k from
	// top[j] to top[j+1]
	top, inRow []int
	down       []float64
}

const (
	sparseShare = 4       // Fit stores rows sparse if at most one number in 4 is not 0,
	sparseSize  = 1 << 20 // and if there are so many numbers
)

// sparseOf returns x as a sparse design without its columns, or nil if a dense one
// is faster.
func sparseOf(x [][]float64) *sparse {
	d := len(x[0])
	if len(x)*d < sparseSize {
		return nil
	}
	count := 0
	for _, row := range x {
		for _, v := range row {
			if v != 0 {
				count++
			}
		}
	}
	if count > len(x)*d/sparseShare {
		return nil
	}
	m := emptySparse(len(x), d, count)
	for i, row := range x {
		for j, v := range row {
			if v != 0 {
				m.index, m.more = append(m.index, j), append(m.more, v)
			}
		}
		m.start[i+1] = len(m.index)
	}
	return m
}

// newSparse returns raw rows as a design without its columns.
func newSparse(columns int, x []SparseRow) *sparse {
	count := 0
	for _, row := range x {
		count += len(row.Index)
	}
	m := emptySparse(len(x), columns, count)
	for i, row := range x {
		m.index, m.more = append(m.index, row.Index...), append(m.more, row.Value...)
		m.start[i+1] = len(m.index)
	}
	return m
}

func emptySparse(n, d, count int) *sparse {
	return &sparse{
		n: n, d: d, base: make([]float64, d), start: make([]int, n+1),
		index: make([]int, 0, count), more: make([]float64, 0, count),
	}
}

// standardise replaces raw rows by standardised ones and appends a column of 1, the
// bias. An error means that a column's squares overflow.
func (m *sparse) standardise() (*sla.Scaling, error) {
	s := &sla.Scaling{Center: make([]float64, m.d), Inverse: make([]float64, m.d)}
	n := float64(m.n)
	rows, squares := make([]int, m.d), make([]float64, m.d)
	lo, hi := make([]float64, m.d), make([]float64, m.d)
	for j := range lo {
		lo[j], hi[j] = math.Inf(1), math.Inf(-1)
	}
	for k, j := range m.index {
		v := m.more[k]
		s.Center[j] += v / n
		lo[j], hi[j] = min(lo[j], v), max(hi[j], v)
		rows[j]++
	}
	for k, j := range m.index {
		v := m.more[k] - s.Center[j]
		squares[j] += float64(v * v)
	}
	for j, c := range s.Center {
		if rows[j] < m.n {
			lo[j], hi[j] = min(lo[j], 0), max(hi[j], 0)
			squares[j] += float64(float64(m.n-rows[j]) * float64(c*c))
		}
		if lo[j] == hi[j] {
			s.Center[j] = lo[j]
			continue
		}
		s.Inverse[j] = math.Sqrt(n / squares[j])
		if !(s.Inverse[j] > 0 && s.Inverse[j] <= math.MaxFloat64) {
			return nil, fmt.Errorf("column %d lies between %v and %v: standardising it overflows", j, lo[j], hi[j])
		}
	}
	s.To(m.base, m.base)
	for k, j := range m.index {
		m.more[k] = float64(m.more[k] * s.Inverse[j])
	}
	m.base = append(m.base, 1)
	m.d++
	return s, nil
}

// layColumns sets top, inRow and down from the rows.
func (m *sparse) layColumns() {
	m.top = make([]int, m.d+1)
	for _, j := range m.index {
		m.top[j+1]++
	}
	for j := range m.d {
		m.top[j+1] += m.top[j]
	}
	m.inRow, m.down = make([]int, len(m.index)), make([]float64, len(m.index))
	next := append([]int(nil), m.top...)
	for i := range m.n {
		for k := m.start[i]; k < m.start[i+1]; k++ {
			j := m.index[k]
			m.inRow[next[j]], m.down[next[j]] = i, m.more[k]
			next[j]++
		}
	}
}

func (m *sparse) Products(dst, w []float64) {
	all := triangle.Dot(w, m.base)
	for i := range dst {
		sum := all
		from, to := m.start[i], m.start[i+1]
		more := m.more[from:to]
		for k, j := range m.index[from:to] {
			sum += float64(w[j] * more[k])
		}
		dst[i] = sum
	}
}

func (m *sparse) AddRows(dst, scale []float64) {
	all := 0.0
	for i, s := range scale {
		if s == 0 {
			continue
		}
		all += s
		from, to := m.start[i], m.start[i+1]
		more := m.more[from:to]
		for k, j := range m.index[from:to] {
			dst[j] += float64(s * more[k])
		}
	}
	sla.AddScaled(dst, all, m.base)
}

func (m *sparse) Row(scratch []float64, i int) []float64 {
	copy(scratch, m.base)
	for k := m.start[i]; k < m.start[i+1]; k++ {
		scratch[m.index[k]] += m.more[k]
	}
	return scratch
}

func (m *sparse) Column(scratch []float64, j int) []float64 {
	for i := range scratch {
		scratch[i] = m.base[j]
	}
	for k := m.top[j]; k < m.top[j+1]; k++ {
		scratch[m.inRow[k]] += m.down[k]
	}
	return scratch
}

func (m *sparse) Entries(j int) (rows []int, numbers []float64, ok bool) {
	from, to := m.top[j], m.top[j+1]
	return m.inRow[from:to], m.down[from:to], m.base[j] == 0
}

func (m *sparse) Part(chosen []int) sla.Design {
	p := emptySparse(len(chosen), m.d, len(m.index))
	p.base = m.base
	for to, i := range chosen {
		p.index = append(p.index, m.index[m.start[i]:m.start[i+1]]...)
		p.more = append(p.more, m.more[m.start[i]:m.start[i+1]]...)
		p.start[to+1] = len(p.index)
	}
	p.layColumns()
	return p
}
