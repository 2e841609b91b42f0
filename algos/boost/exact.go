// Laboratory: only hamlet fit, hamlet bench and tests reach this file.

package boost

// NewData prepares x, N rows of D values, for the exact search: the candidates
// of a feature are the midpoints (a+b)/2 between its consecutive distinct values
// (where that rounds to b, a itself). x is copied. The error names the rows that
// are not of the first one's length and values that are NaN or infinite. It
// costs N·D of memory at 20 bytes each and one radix sort of every column.
func NewData(x [][]float64) (*Data, error) {
	d, err := newData(x)
	if err != nil {
		return nil, err
	}
	d.order = make([]int32, len(d.columns))
	s := newSorter(d.rows)
	for j := range d.dim {
		column := d.Column(j)
		order := s.sort(column)
		copy(d.order[j*d.rows:], order)
		for k := 1; k < d.rows; k++ {
			if a, b := column[order[k-1]], column[order[k]]; a < b {
				d.cuts = append(d.cuts, midpoint(a, b))
				d.ends = append(d.ends, int32(k))
			}
		}
		d.first[j+1] = len(d.cuts)
	}
	return d, nil
}

// divideSorted does so in sorted order.
func (d *Data) divideSorted(feature int, w []int64) divide {
	order := d.order[feature*d.rows : (feature+1)*d.rows]
	by := newDivider(bySign(w))
	var lp, ln int64
	k := 0
	for c, end := range d.ends[d.first[feature]:d.first[feature+1]] {
		for ; k < int(end); k++ {
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
