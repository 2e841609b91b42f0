package boost

import "slices"

// binned holds columns of bin numbers, and which of them are dense or sparse.
type binned struct {
	rows   int
	bins   []byte // column j is bins[j·rows : (j+1)·rows]
	dense  []int  // the columns summed row by row
	sparse []sparseColumn
}

// A sparseColumn lists the rows outside a column's dominant bin. The weight in that
// bin is the total minus the others, exactly, because weights are in fixed point.
type sparseColumn struct {
	feature  int
	dominant byte
	used     int     // bins 0 … used−1
	rows     []int32 // ascending
	bins     []byte  // of those rows
}

// A column is sparse if at least this fraction of its rows is in one bin
// (MEASURED.md).
const sparseFrom = 0.6

// newBinned keeps bins. Columns that are constant enter neither dense nor sparse.
func newBinned(rows int, bins []byte, constant func(feature int) bool) *binned {
	b := &binned{rows: rows, bins: bins}
	for j := range len(bins) / rows {
		if constant(j) {
			continue
		}
		var size [MaxBins + 1]int
		for _, bin := range b.column(j) {
			size[bin]++
		}
		dominant := slices.Index(size[:], slices.Max(size[:]))
		if float64(size[dominant]) < sparseFrom*float64(rows) {
			b.dense = append(b.dense, j)
		} else {
			b.sparse = append(b.sparse, newSparseColumn(j, b.column(j), dominant, rows-size[dominant]))
		}
	}
	return b
}

// newSparseColumn lists the n rows outside the dominant bin.
func newSparseColumn(feature int, column []byte, dominant, n int) sparseColumn {
	s := sparseColumn{
		feature: feature, dominant: byte(dominant), used: int(slices.Max(column)) + 1,
		rows: make([]int32, 0, n), bins: make([]byte, 0, n),
	}
	for i, bin := range column {
		if bin != s.dominant {
			s.rows = append(s.rows, int32(i))
			s.bins = append(s.bins, bin)
		}
	}
	return s
}

// column returns the bin of each row.
func (b *binned) column(feature int) []byte {
	return b.bins[feature*b.rows : (feature+1)*b.rows : (feature+1)*b.rows]
}

// A histogram holds the weight in each bin of one column.
type histogram [MaxBins + 1]int64

// group is the number of columns summed in one pass over the weights. Additions to
// one histogram wait for each other if neighbouring rows share a bin; additions to
// four overlap.
const group = 4

// each calls visit with the histogram of w of every column that is not constant, in
// any order. hist is scratch.
func (b *binned) each(hist *[group]histogram, w []int64, visit func(feature int, h *histogram)) {
	dense := b.dense
	for ; len(dense) >= group; dense = dense[group:] {
		b.fillGroup(hist, dense, w)
		for k, j := range dense[:group] {
			visit(j, &hist[k])
		}
	}
	h := &hist[0]
	for _, j := range dense {
		h.fill(b.column(j), w)
		visit(j, h)
	}
	total := sum(w)
	for k := range b.sparse {
		h.fillSparse(&b.sparse[k], w, total)
		visit(b.sparse[k].feature, h)
	}
}

// fillGroup makes the histograms of w of the first four of features.
func (b *binned) fillGroup(h *[group]histogram, features []int, w []int64) {
	*h = [group]histogram{}
	h0, h1, h2, h3 := &h[0], &h[1], &h[2], &h[3]
	b0, b1, b2, b3 := b.column(features[0]), b.column(features[1]), b.column(features[2]), b.column(features[3])
	b0, b1, b2, b3 = b0[:len(w)], b1[:len(w)], b2[:len(w)], b3[:len(w)]
	for i, v := range w {
		h0[b0[i]] += v
		h1[b1[i]] += v
		h2[b2[i]] += v
		h3[b3[i]] += v
	}
}

// fill makes h the weight in each bin of a column.
func (h *histogram) fill(bins []byte, w []int64) {
	*h = histogram{}
	bins = bins[:len(w)]
	for i, v := range w {
		h[bins[i]] += v
	}
}

// fillSparse is fill for a sparse column; total is the weight of all rows.
func (h *histogram) fillSparse(s *sparseColumn, w []int64, total int64) {
	*h = histogram{}
	bins := s.bins[:len(s.rows)]
	for k, i := range s.rows {
		h[bins[k]] += w[i]
	}
	h[s.dominant] = total - sum(h[:s.used])
}

// accumulate replaces the weights of the bins by the weights at or below each cut.
func (h *histogram) accumulate(cuts int) []int64 {
	at := int64(0)
	below := h[:cuts]
	for c, v := range below {
		at += v
		below[c] = at
	}
	return below
}

func sum(w []int64) int64 {
	total := int64(0)
	for _, v := range w {
		total += v
	}
	return total
}
