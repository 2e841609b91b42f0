package svm

import "fmt"

// Rows are sparse input vectors, one behind the other. Entries that are not stored are 0.
type Rows struct {
	columns int
	start   []int // row i has the entries start[i] … start[i+1]−1
	index   []int32
	value   []float64
}

// NewRows returns no rows, of that many columns.
func NewRows(columns int) *Rows { return &Rows{columns: columns, start: []int{0}} }

// DenseRows copies the entries of x that are not 0. The rows must have equal lengths.
func DenseRows(x [][]float64) *Rows {
	r := NewRows(len(x[0]))
	for _, row := range x {
		if len(row) != r.columns {
			panic(fmt.Sprintf("svm: a row of %d entries among rows of %d", len(row), r.columns))
		}
		for j, v := range row {
			if v != 0 {
				r.index, r.value = append(r.index, int32(j)), append(r.value, v)
			}
		}
		r.start = append(r.start, len(r.index))
	}
	return r
}

// Add appends a row that has value[k] in column index[k]. Columns count from 0, must
// rise, and must be less than the number of columns. Add copies both slices.
func (r *Rows) Add(index []int32, value []float64) {
	if len(index) != len(value) {
		panic(fmt.Sprintf("svm: %d columns for %d values", len(index), len(value)))
	}
	last := int32(-1)
	for _, j := range index {
		if j <= last || int(j) >= r.columns {
			panic(fmt.Sprintf("svm: column %d after column %d in a row of %d", j, last, r.columns))
		}
		last = j
	}
	r.index, r.value = append(r.index, index...), append(r.value, value...)
	r.start = append(r.start, len(r.index))
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.start) - 1 }

// Columns returns the length of a row.
func (r *Rows) Columns() int { return r.columns }

// row returns the entries of row i.
func (r *Rows) row(i int) (index []int32, value []float64) {
	lo, hi := r.start[i], r.start[i+1]
	return r.index[lo:hi], r.value[lo:hi]
}

// dot returns wᵀxᵢ.
func (r *Rows) dot(i int, w []float64) float64 {
	index, value := r.row(i)
	sum := 0.0
	for k, j := range index {
		sum += float64(w[j] * value[k])
	}
	return sum
}

// addScaled adds s·xᵢ to w.
func (r *Rows) addScaled(w []float64, s float64, i int) {
	index, value := r.row(i)
	for k, j := range index {
		w[j] += float64(s * value[k])
	}
}
