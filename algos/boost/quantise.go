package boost

import "sync"

// quantise32 is Quantise of float32. It makes no float64 columns until they are asked for.
func quantise32(x [][]float32, most int) (*Data, error) {
	if len(x) == 0 || len(x[0]) == 0 || len(x) > MaxRows {
		return nil, checkRows(x)
	}
	rows, dim := len(x), len(x[0])
	d := &Data{rows: rows, dim: dim, first: make([]int, dim+1), binned: newBinned(rows, dim)}
	d.columns = sync.OnceValue(func() []float64 { return columnsOf(x) })
	d.cuts = make([]float64, 0, dim*min(most-1, rows-1))
	s := newSorter32(rows, dim)
	for j := range dim {
		if j%stripe == 0 && !s.read(x, j) {
			return nil, checkRows(x)
		}
		s.sort(j % stripe)
		ends := quantiles(s.runsOf(), most)
		before, into := 0, d.binned.column(j)
		for bin, end := range ends {
			if bin > 0 {
				d.cuts = append(d.cuts, midpoint(s.value(before-1), s.value(before)))
				if before <= s.below && s.below < end && s.zeros > 0 {
					fill(into, byte(bin))
				}
			}
			before = end
		}
		before = 0
		for bin, end := range ends {
			for _, e := range s.sorted[s.place(before):s.place(end)] {
				into[uint32(e)] = byte(bin)
			}
			before = end
		}
		d.first[j+1] = len(d.cuts)
		d.binned.add(j, ends)
	}
	return d, nil
}

// fill sets all of dst to v.
func fill(dst []byte, v byte) {
	dst[0] = v
	for n := 1; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
