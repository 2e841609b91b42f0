package boost

import (
	"math"
	"slices"
)

// A sorter32 sorts columns of float32 as sorter does, a stripe of columns at a time. An entry
// is a value's key in the upper 32 bits and its row in the lower. Zeros have no entries.
type sorter32 struct {
	rows    int
	entries [stripe][]uint64 // of the stripe's columns
	n       [stripe]int      // how many of them
	next    []uint64
	counts  [4][256]int32

	sorted       []uint64 // of the last column that was sorted
	below, zeros int      // how many of them are below 0; how many rows are 0
	runs         []int
}

// stripe is the number of columns that are read in one pass over the rows: a cache line.
const stripe = 16

// zeroKey is the key of 0. Keys have the order of their values.
const zeroKey = 1 << 31

func newSorter32(rows, dim int) *sorter32 {
	columns := min(dim, stripe)
	memory := make([]uint64, (columns+1)*rows)
	s := &sorter32{rows: rows, next: memory[columns*rows:], runs: make([]int, 0, rows+1)}
	for c := range columns {
		s.entries[c] = memory[c*rows : (c+1)*rows : (c+1)*rows]
	}
	return s
}

// read makes the entries of up to stripe columns of x, from column first on. It returns false if
// a row is too short or too long, or has a number there that is not finite.
func (s *sorter32) read(x [][]float32, first int) bool {
	dim := len(x[0])
	n := min(stripe, dim-first)
	s.n = [stripe]int{}
	worst := uint32(0)
	for i, row := range x {
		if len(row) != dim {
			return false
		}
		for c, v := range row[first : first+n] {
			b := math.Float32bits(v)
			sign := uint32(int32(b) >> 31)
			size := b &^ (1 << 31)
			worst = max(worst, size)
			key := zeroKey + (size ^ sign - sign)
			at := s.n[c]
			s.entries[c][at] = uint64(key)<<32 | uint64(i)
			if size != 0 { // no branch, which would be unpredictable
				at++
			}
			s.n[c] = at
		}
	}
	return worst < 0xff<<23
}

// sort sorts column c of the stripe.
func (s *sorter32) sort(c int) {
	e := s.entries[c][:s.n[c]]
	s.zeros = s.rows - len(e)
	all, common := uint64(0), ^uint64(0) // the bits that some entries have, and all
	s.counts = [4][256]int32{}
	s.below = 0
	for _, k := range e {
		all |= k
		common &= k
		s.below += int(1 - k>>63)
		s.counts[0][byte(k>>32)]++
		s.counts[1][byte(k>>40)]++
		s.counts[2][byte(k>>48)]++
		s.counts[3][byte(k>>56)]++
	}
	for digit := range s.counts {
		shift := 32 + 8*digit
		if byte((all^common)>>shift) == 0 {
			continue
		}
		to := &s.counts[digit] // where the next entry with a digit goes
		at := int32(0)
		for b, n := range to {
			to[b] = at
			at += n
		}
		next := s.next[:len(e)]
		for _, k := range e {
			b := byte(k >> shift)
			next[to[b]] = k
			to[b]++
		}
		s.next, e = e[:s.rows], next
	}
	s.entries[c], s.sorted = e[:s.rows], e
}

// place returns the index in sorted of the first entry that is at place p or later, in the order
// of all rows with the zeros.
func (s *sorter32) place(p int) int {
	return min(p, s.below) + max(0, p-s.below-s.zeros)
}

// value returns the value at place p in the order of all rows.
func (s *sorter32) value(p int) float64 {
	if p >= s.below && p < s.below+s.zeros {
		return 0
	}
	key := uint32(s.sorted[s.place(p)] >> 32)
	if key < zeroKey {
		return -float64(math.Float32frombits(zeroKey - key))
	}
	return float64(math.Float32frombits(key - zeroKey))
}

// runsOf returns the end of each run of equal values in the order of all rows. The next call
// overwrites it.
func (s *sorter32) runsOf() []int {
	runs := appendRuns(s.runs[:0], s.sorted[:s.below], 0)
	if s.zeros > 0 {
		runs = append(runs, s.below+s.zeros)
	}
	return appendRuns(runs, s.sorted[s.below:], s.below+s.zeros)
}

// appendRuns appends the ends of the runs of sorted entries, of which the first is at a place.
func appendRuns(dst []int, e []uint64, place int) []int {
	if len(e) == 0 {
		return dst
	}
	n := len(dst)
	dst = slices.Grow(dst, len(e)+1)[:n+len(e)]
	before := e[0]
	for k, v := range e {
		dst[n] = place + k
		if (v^before)>>32 != 0 {
			n++
		}
		before = v
	}
	dst[n] = place + len(e)
	return dst[:n+1]
}
