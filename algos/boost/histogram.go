package boost

// binned holds columns of bin numbers, and which of them are dense or sparse.
type binned struct {
	rows   int
	bins   []byte        // column j is bins[j·rows : (j+1)·rows]
	dense  []denseColumn // the columns summed row by row
	sparse []sparseColumn

	// Memory for sparse columns to come.
	freeRows []int32
	freeBins []byte
}

// A denseColumn is a column whose bins are all read.
type denseColumn struct {
	feature  int
	dominant byte // its fullest bin
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

// newBinned returns columns of bin 0, which the caller fills and adds.
func newBinned(rows, dim int) *binned { return &binned{rows: rows, bins: make([]byte, rows*dim)} }

// add makes a column dense or sparse. ends has the numbers of rows up to each of its bins. A
// column with one bin becomes neither.
func (b *binned) add(feature int, ends []int) {
	if len(ends) < 2 {
		return
	}
	dominant, most, before := 0, 0, 0 // the first of the fullest bins
	for bin, end := range ends {
		if size := end - before; size > most {
			dominant, most = bin, size
		}
		before = end
	}
	b.place(feature, dominant, most, len(ends))
}

// place makes a column dense or sparse, of which most rows are in the dominant one of used bins.
func (b *binned) place(feature, dominant, most, used int) {
	if float64(most) < sparseFrom*float64(b.rows) {
		b.dense = append(b.dense, denseColumn{feature, byte(dominant)})
		return
	}
	n := b.rows - most
	if len(b.freeRows) <= n { // one more is written
		b.freeRows, b.freeBins = make([]int32, 4*b.rows), make([]byte, 4*b.rows)
	}
	s := newSparseColumn(feature, b.column(feature), dominant, used, b.freeRows, b.freeBins)
	b.freeRows, b.freeBins = b.freeRows[n:], b.freeBins[n:]
	b.sparse = append(b.sparse, s)
}

// newSparseColumn lists the rows outside the dominant bin of a column of used bins. It takes
// their memory from rows and bins, in which it writes one place more.
func newSparseColumn(feature int, column []byte, dominant, used int, rows []int32, bins []byte) sparseColumn {
	n := 0
	for i, bin := range column {
		rows[n], bins[n] = int32(i), bin
		if bin != byte(dominant) { // no branch, which would be unpredictable
			n++
		}
	}
	return sparseColumn{feature: feature, dominant: byte(dominant), used: used, rows: rows[:n:n], bins: bins[:n:n]}
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
		for k, c := range dense[:group] {
			visit(c.feature, &hist[k])
		}
	}
	h := &hist[0]
	for _, c := range dense {
		h.fill(b.column(c.feature), w)
		visit(c.feature, h)
	}
	total := sum(w)
	for k := range b.sparse {
		h.fillSparse(&b.sparse[k], w, total)
		visit(b.sparse[k].feature, h)
	}
}

// fillGroup makes the histograms of w of the first four of columns.
func (b *binned) fillGroup(h *[group]histogram, columns []denseColumn, w []int64) {
	*h = [group]histogram{}
	h0, h1, h2, h3 := &h[0], &h[1], &h[2], &h[3]
	b0, b1 := b.column(columns[0].feature), b.column(columns[1].feature)
	b2, b3 := b.column(columns[2].feature), b.column(columns[3].feature)
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
