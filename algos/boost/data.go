package boost

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxBins bounds the bins of a feature in Quantise, so that a bin's number fits a
// byte. A feature of at most MaxBins distinct values loses nothing.
const MaxBins = 255

// MaxRows bounds the rows of a data set.
const MaxRows = 1 << 30

// wrongValues is about how many bad values of a data set an error names.
const wrongValues = 8

// Data holds N examples of D features in columns, with the candidate thresholds of
// each feature. Each column also has a bin for each row (Quantise) or its rows in
// ascending order (NewData). Data never changes; searches and boosters may share
// it, also concurrently.
//
// A candidate is a feature and one of its cuts; it divides the rows into those
// with x_feature ≤ threshold and those above.
type Data struct {
	rows, dim int
	columns   func() []float64 // column j is columns()[j·rows : (j+1)·rows]

	cuts  []float64 // the thresholds of all features, ascending for each
	first []int     // feature j has cuts[first[j]:first[j+1]]

	// Exactly one of them is not nil.
	binned *binned // Quantise: bin b lies above the first b cuts of its column
	sorted sorted  // NewData
}

// sorted searches data from NewData.
type sorted interface {
	// belowTo writes Σ w over the rows at or below each cut of a feature to dst.
	belowTo(dst []int64, feature int, w []int64)
	// divide returns the best cut of a feature for signed weights.
	divide(feature int, w []int64) divide
}

// Quantise prepares x, N rows of D values, for the search by histograms. It divides
// the values of each feature into at most most bins, 2 to MaxBins; 0 means MaxBins.
// A feature with at most that many distinct values gets a bin for each. Otherwise a
// value of N/most rows or more gets its own bin; the others fill the other bins
// about evenly, in ascending order. Candidates are the midpoints between
// neighbouring bins' nearest values. x must not change as long as d is used. The error
// names rows of another length than the first, and values that are NaN or infinite.
func Quantise[T float32 | float64](x [][]T, most int) (*Data, error) {
	most = cmp.Or(most, MaxBins)
	if most < 2 || most > MaxBins {
		return nil, fmt.Errorf("boost: %d bins: want 2 to %d, or 0 for %d", most, MaxBins, MaxBins)
	}
	if x, ok := any(x).([][]float32); ok {
		return quantise32(x, most)
	}
	d, err := newData(x)
	if err != nil {
		return nil, err
	}
	d.binned = newBinned(d.rows, d.dim)
	s := newSorter(d.rows)
	runs := make([]int, 0, d.rows)
	for j := range d.dim {
		column := d.Column(j)
		order := s.sort(column)
		runs = runsOf(runs[:0], column, order)
		ends := quantiles(runs, most)
		bin, k := byte(0), 0
		into := d.binned.column(j)
		for _, end := range ends {
			for ; k < end; k++ {
				into[order[k]] = bin
			}
			if end < d.rows {
				d.addCut(j, order, end)
				bin++
			}
		}
		d.first[j+1] = len(d.cuts)
		d.binned.add(j, ends)
	}
	return d, nil
}

// addCut adds the candidate between places end−1 and end of a feature's order.
func (d *Data) addCut(feature int, order []int32, end int) {
	column := d.Column(feature)
	d.cuts = append(d.cuts, midpoint(column[order[end-1]], column[order[end]]))
}

// newData copies x into columns.
func newData[T float32 | float64](x [][]T) (*Data, error) {
	if err := checkRows(x); err != nil {
		return nil, err
	}
	columns := columnsOf(x)
	d := &Data{rows: len(x), dim: len(x[0]), first: make([]int, len(x[0])+1)}
	d.columns = func() []float64 { return columns }
	return d, nil
}

// checkRows returns an error unless x has rows of one length of finite numbers.
func checkRows[T float32 | float64](x [][]T) error {
	if len(x) == 0 || len(x[0]) == 0 {
		return errors.New("boost: no data: want at least one row with at least one value")
	}
	if len(x) > MaxRows {
		return fmt.Errorf("boost: %d rows: want at most %d", len(x), MaxRows)
	}
	dim := len(x[0])
	var errs []error
	for i, row := range x {
		if len(row) != dim {
			errs = append(errs, fmt.Errorf("boost: row %d has %d values, the first has %d", i, len(row), dim))
		}
		for j, v := range row[:min(len(row), dim)] {
			if v := float64(v); !(math.Abs(v) <= math.MaxFloat64) {
				errs = append(errs, fmt.Errorf("boost: value %d of row %d is %v", j, i, v))
			}
		}
		if len(errs) >= wrongValues {
			break
		}
	}
	return errors.Join(errs...)
}

// columnsOf returns the columns of x, one after the other.
func columnsOf[T float32 | float64](x [][]T) []float64 {
	columns := make([]float64, len(x)*len(x[0]))
	for i, row := range x {
		for j, v := range row {
			columns[j*len(x)+i] = float64(v)
		}
	}
	return columns
}

// runsOf appends to dst the end in order of each run of equal values.
func runsOf(dst []int, column []float64, order []int32) []int {
	for k := 1; k < len(order); k++ {
		if column[order[k-1]] < column[order[k]] {
			dst = append(dst, k)
		}
	}
	return append(dst, len(order))
}

// quantiles returns the ends of at most bins bins. They are a subset of runs with
// its last element. It overwrites runs.
func quantiles(runs []int, bins int) []int {
	if len(runs) <= bins {
		return runs
	}
	rows := runs[len(runs)-1]
	heavy := func(size int) bool { return size*bins >= rows }
	light, heavies := rows, 0 // rows of light values not yet in a closed bin; heavy values to come
	before := 0
	for _, end := range runs {
		if heavy(end - before) {
			light -= end - before
			heavies++
		}
		before = end
	}

	ends := runs[:0]
	before = 0
	start := 0 // of the open bin
	for _, end := range runs {
		left := bins - len(ends) // the open one included
		switch {
		case heavy(end - before):
			heavies--
			if before > start && left > 1 {
				ends = append(ends, before)
				light -= before - start
				start = before
				left--
			}
			if end < rows && left > 1 {
				ends = append(ends, end)
				light -= before - start
				start = end
			}
		case end < rows && left > 1 && (end-start)*max(1, left-heavies) >= light:
			ends = append(ends, end)
			light -= end - start
			start = end
		}
		before = end
	}
	return append(ends, rows)
}

// midpoint returns a threshold t with a ≤ t < b: (a+b)/2, or a if that rounds to b.
func midpoint(a, b float64) float64 {
	m := (a + b) / 2
	if math.IsInf(m, 0) {
		m = a/2 + b/2
	}
	if !(m < b) {
		return a
	}
	return m
}

// Rows returns the number of examples N.
func (d *Data) Rows() int { return d.rows }

// Dim returns the number of features D.
func (d *Data) Dim() int { return d.dim }

// Column returns the N values of a feature, which the caller must not change.
func (d *Data) Column(feature int) []float64 {
	return d.columns()[feature*d.rows : (feature+1)*d.rows : (feature+1)*d.rows]
}

// Cuts returns the candidate thresholds of a feature, ascending, empty if it is
// constant. The caller must not change them.
func (d *Data) Cuts(feature int) []float64 {
	return d.cuts[d.first[feature]:d.first[feature+1]:d.first[feature+1]]
}

// Candidates returns the number of pairs of a feature and a threshold.
func (d *Data) Candidates() int { return len(d.cuts) }

// Quantised reports whether d is from Quantise.
func (d *Data) Quantised() bool { return d.binned != nil }

// check panics unless n, the length of a vector, is N.
func (d *Data) check(n int) {
	if n != d.rows {
		panic(fmt.Sprintf("boost: a vector of length %d for %d rows", n, d.rows))
	}
}

// CheckLabels returns an error unless y has a label ±1 for each row.
func (d *Data) CheckLabels(y []float64) error {
	if len(y) != d.rows {
		return fmt.Errorf("boost: %d labels for %d rows", len(y), d.rows)
	}
	for i, v := range y {
		if v != 1 && v != -1 {
			return fmt.Errorf("boost: label %d is %v: want +1 or -1", i, v)
		}
	}
	return nil
}

// SampleWeights returns a copy of the weights ω of the examples, and their sum. nil
// means 1 each. The error says which weight is negative or not finite, or that the
// sum is 0 or beyond 2^±900.
func (d *Data) SampleWeights(weights []float64) (ω []float64, sum float64, err error) {
	if weights == nil {
		return slices.Repeat([]float64{1}, d.rows), float64(d.rows), nil
	}
	if len(weights) != d.rows {
		return nil, 0, fmt.Errorf("boost: %d sample weights for %d rows", len(weights), d.rows)
	}
	for i, w := range weights {
		if !(w >= 0 && w <= math.MaxFloat64) {
			return nil, 0, fmt.Errorf("boost: sample weight %d is %v: want a finite number that is not negative", i, w)
		}
		sum += w
	}
	if !(sum >= 0x1p-900 && sum <= 0x1p900) {
		return nil, 0, fmt.Errorf("boost: sample weights add up to %v: want a sum from 2⁻⁹⁰⁰ to 2⁹⁰⁰", sum)
	}
	return slices.Clone(weights), sum, nil
}
