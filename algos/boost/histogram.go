package boost

// A histogram holds the weight in each bin of one column.
type histogram [MaxBins + 1]int64

// group is how many columns are summed in one pass over the weights. Additions
// to one histogram wait for each other where neighbouring rows share a bin; four
// in turn keep the processor busy, and the weights are read once for all.
const group = 4

// denseColumns returns the features that have cuts and no dominant bin, and
// sparseColumns those that have both.
func (d *Data) denseColumns() []int {
	var js []int
	for j := range d.dim {
		if d.first[j] < d.first[j+1] && d.sparse[j].rows == nil {
			js = append(js, j)
		}
	}
	return js
}

func (d *Data) sparseColumns() []int {
	var js []int
	for j := range d.dim {
		if d.sparse[j].rows != nil {
			js = append(js, j)
		}
	}
	return js
}

// binsOf returns the bin of each row.
func (d *Data) binsOf(feature int) []byte {
	return d.bins[feature*d.rows : (feature+1)*d.rows : (feature+1)*d.rows]
}

// fill makes h the weight in each bin of a dense column.
func (h *histogram) fill(bins []byte, w []int64) {
	*h = histogram{}
	bins = bins[:len(w)]
	for i, v := range w {
		h[bins[i]] += v
	}
}

// fillGroup does so for four columns.
func fillGroup(h *[group]histogram, b0, b1, b2, b3 []byte, w []int64) {
	*h = [group]histogram{}
	h0, h1, h2, h3 := &h[0], &h[1], &h[2], &h[3]
	b0, b1, b2, b3 = b0[:len(w)], b1[:len(w)], b2[:len(w)], b3[:len(w)]
	for i, v := range w {
		h0[b0[i]] += v
		h1[b1[i]] += v
		h2[b2[i]] += v
		h3[b3[i]] += v
	}
}

// fillSparse makes h the weight in each bin of a column of which only the rows
// outside the dominant bin are listed; total is the weight of all rows.
func (h *histogram) fillSparse(s *sparseRows, w []int64, total int64) {
	*h = histogram{}
	bins := s.bins[:len(s.rows)]
	for k, i := range s.rows {
		v := w[i]
		h[bins[k]] += v
		total -= v
	}
	h[s.dominant] = total
}
