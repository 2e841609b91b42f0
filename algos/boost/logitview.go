package boost

import (
	"math"
	"math/bits"
	"slices"
)

// A view is the rows and columns that a round of LogitTrees searches.
type view struct {
	rows    []int32  // ascending
	kept    []uint8  // 255 for each of rows, 0 for the others
	columns []column // by ascending feature
	blocks  []block  // of all columns
	shift   int      // a node's histograms have bin b of column c at c<<shift + b
}

// A column of a view is not constant.
type column struct {
	feature  int
	cuts     int
	dominant uint8 // its fullest bin: the view has no cells in it
}

// A block has the cells of neighbouring columns, which are those outside the dominant bins.
// There is mostly one block. A block's columns are so few that a code has 15 bits.
type block struct {
	first, columns int      // view.columns[first : first+columns]
	codes          []uint16 // row by row: (c−first)<<shift + b for bin b of column c
	rows           []cells  // the rows with cells, the fewest cells first: loops over cells end as foreseen
	spans          []span   // the cells of each of the view's rows
	list           []cells  // scratch, which a view shares with its part
	sizes          []uint32 // scratch: by the number of cells
	into           []uint16 // scratch: what a code is in a part
}

// A span is a row's of a block's codes.
type span struct{ from, to uint32 }

// cells is a row with its span.
type cells struct {
	row uint32
	span
}

// dropped marks a code that a part of a view has not.
const dropped = 1 << 15

// newView returns the view of all rows, and of the columns that are not constant.
func newView(d *Data) view {
	b := d.binned
	v := view{rows: make([]int32, d.rows), kept: slices.Repeat([]uint8{255}, d.rows)}
	for i := range v.rows {
		v.rows[i] = int32(i)
	}
	lists := make([]sparseColumn, 0, len(b.dense)+len(b.sparse)) // those without rows have all
	v.columns = make([]column, 0, cap(lists))
	most := 0
	for dense, sparse := b.dense, b.sparse; len(dense)+len(sparse) > 0; {
		if len(sparse) == 0 || len(dense) > 0 && dense[0].feature < sparse[0].feature {
			c := dense[0]
			lists = append(lists, sparseColumn{feature: c.feature, bins: b.column(c.feature), dominant: c.dominant})
			dense = dense[1:]
		} else {
			lists = append(lists, sparse[0])
			sparse = sparse[1:]
		}
		s := &lists[len(lists)-1]
		v.columns = append(v.columns, column{s.feature, len(d.Cuts(s.feature)), s.dominant})
		most = max(most, len(d.Cuts(s.feature)))
	}
	v.shift = bits.Len(uint(most))
	size := min(dropped>>v.shift, max(1, int(math.MaxUint32/uint64(max(d.rows, 1))))) // a span has 32 bits
	for len(lists) > 0 {
		n := min(size, len(lists))
		v.blocks = append(v.blocks, newBlock(len(v.columns)-len(lists), lists[:n], d.rows, v.shift))
		lists = lists[n:]
	}
	return v
}

// newBlock returns the cells of columns, of which the first is number first of a view.
func newBlock(first int, columns []sparseColumn, rows, shift int) block {
	b := block{
		first: first, columns: len(columns), spans: make([]span, rows), list: make([]cells, 0, rows),
		sizes: make([]uint32, len(columns)+1), into: make([]uint16, len(columns)<<shift),
	}
	to := make([]uint32, rows) // of each row: first its number of cells, then where its next goes
	for k := range columns {
		c := &columns[k]
		for _, i := range c.rows {
			to[i]++
		}
		if c.rows == nil {
			for i, bin := range c.bins {
				n := uint32(0)
				if bin != c.dominant {
					n = 1
				}
				to[i] += n
			}
		}
	}
	at := uint32(0)
	for i, n := range to {
		b.spans[i] = span{at, at + n}
		if n > 0 {
			b.list = append(b.list, cells{uint32(i), b.spans[i]})
		}
		to[i] = at
		at += n
	}
	b.codes = make([]uint16, at+1) // one more is written below
	for k := range columns {
		c, code := &columns[k], uint16(k<<shift)
		for at, i := range c.rows {
			b.codes[to[i]] = code + uint16(c.bins[at])
			to[i]++
		}
		if c.rows != nil {
			continue
		}
		for i, bin := range c.bins {
			if bin != c.dominant {
				b.codes[to[i]] = code + uint16(bin)
				to[i]++
			}
		}
	}
	b.codes = b.codes[:at]
	b.rows = make([]cells, 0, len(b.list))
	b.sort()
	return b
}

// sort sets b.rows to b.list by the number of cells.
func (b *block) sort() {
	before := b.sizes // before[n]: of the rows with fewer cells, and those with n that are in place
	clear(before)
	for _, r := range b.list {
		before[r.to-r.from]++
	}
	at := uint32(0)
	for k, n := range before {
		before[k] = at
		at += n
	}
	b.rows = b.rows[:len(b.list)]
	for _, r := range b.list {
		n := r.to - r.from
		b.rows[before[n]] = r
		before[n]++
	}
}

// scratch returns an empty view with memory for any rows of v, and as many columns of it.
func (v *view) scratch(columns int) view {
	part := view{
		rows: make([]int32, 0, len(v.rows)), kept: make([]uint8, len(v.rows)),
		columns: make([]column, min(columns, len(v.columns))), shift: v.shift, blocks: make([]block, len(v.blocks)),
	}
	for k := range v.blocks {
		b, to := &v.blocks[k], &part.blocks[k]
		to.codes, to.sizes = make([]uint16, 0, cap(b.codes)), make([]uint32, len(b.sizes))
		to.spans, to.list = make([]span, len(b.spans)), b.list[:0]
		to.rows = make([]cells, 0, len(b.rows))
	}
	return part
}

// partTo makes part some of v's columns, and the rows that it has already.
func (v *view) partTo(part *view, columns []column) {
	copy(part.columns, columns)
	at := 0
	for k := range v.blocks {
		from, to := &v.blocks[k], &part.blocks[k]
		codes := from.into
		to.first = at
		for c := range from.columns {
			own := codes[c<<v.shift:][:1<<v.shift]
			code, step := uint16(dropped), uint16(0)
			if at < len(columns) && columns[at].feature == v.columns[from.first+c].feature {
				code, step = uint16((at-to.first)<<v.shift), 1
				at++
			}
			for b := range own {
				own[b] = code
				code += step
			}
		}
		to.columns = at - to.first
		to.list = to.list[:0]
		n := uint32(0)
		into := to.codes[:cap(to.codes)]
		for _, r := range from.rows {
			if part.kept[r.row] == 0 {
				continue
			}
			first := n
			for _, code := range from.codes[r.from:r.to] {
				code = codes[code]
				into[n] = code
				n += uint32(code>>15) ^ 1
			}
			to.spans[r.row] = span{first, n}
			if n > first {
				to.list = append(to.list, cells{r.row, span{first, n}})
			}
		}
		to.codes = into[:n]
		to.sort()
	}
}

// sum returns the sum of the rows' pairs.
func (v *view) sum(pairs []int64) int64 {
	total := int64(0)
	for _, i := range v.rows {
		total += pairs[i]
	}
	return total
}
