package boost

// NewData prepares x, N rows of D values, for the exact search. The candidates of a
// feature are the midpoints (a+b)/2 between its consecutive distinct values, or a
// if that rounds to b. x is copied; errors are those of Quantise. It takes 20 bytes
// for each of N·D values and one radix sort of every column.
func NewData(x [][]float64) (*Data, error) {
	d, err := newData(x)
	if err != nil {
		return nil, err
	}
	e := &exact{data: d, order: make([]int32, d.rows*d.dim)}
	s := newSorter(d.rows)
	runs := make([]int, 0, d.rows)
	for j := range d.dim {
		order := s.sort(d.Column(j))
		copy(e.column(j), order)
		runs = runsOf(runs[:0], d.Column(j), order)
		for _, end := range runs[:len(runs)-1] {
			d.addCut(j, order, end)
			e.ends = append(e.ends, end)
		}
		d.first[j+1] = len(d.cuts)
	}
	d.sorted = e
	return d, nil
}

// exact has the rows of each column in ascending order.
type exact struct {
	data  *Data
	order []int32 // column j is order[j·rows : (j+1)·rows]
	ends  []int   // by index of Data.cuts, the number of rows at or below the cut
}

func (e *exact) column(feature int) []int32 {
	return e.order[feature*e.data.rows : (feature+1)*e.data.rows]
}

func (e *exact) endsOf(feature int) []int {
	return e.ends[e.data.first[feature]:e.data.first[feature+1]]
}

func (e *exact) belowTo(dst []int64, feature int, w []int64) {
	order := e.column(feature)
	k, at := 0, int64(0)
	for c, end := range e.endsOf(feature) {
		for ; k < end; k++ {
			at += w[order[k]]
		}
		dst[c] = at
	}
}

func (e *exact) divide(feature int, w []int64) divide {
	order := e.column(feature)
	by := newDivider(bySign(w))
	var lp, ln int64
	k := 0
	for c, end := range e.endsOf(feature) {
		for ; k < end; k++ {
			v := w[order[k]]
			ln += v & (v >> 63)
			lp += v &^ (v >> 63)
		}
		if a, b := by.parts(lp, ln); a+b < by.limit {
			by.weigh(c, a, b)
		}
	}
	return by.best
}
