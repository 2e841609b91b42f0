package boost

import "math"

// A sorter sorts columns by least-significant-digit radix sort, eight bits at a
// time. It is stable and linear. It sorts no zeros, and skips digits in which all other
// values agree: three or four of the eight for numbers that were float32.
type sorter struct {
	keys, nextKeys []uint64
	rows, nextRows []int32
	zeros          []int32
	counts         [8][256]int32
}

func newSorter(rows int) *sorter {
	return &sorter{
		keys: make([]uint64, rows), nextKeys: make([]uint64, rows),
		rows: make([]int32, rows), nextRows: make([]int32, rows), zeros: make([]int32, 0, rows),
	}
}

// sort returns the rows of column by ascending value; equal values keep their
// order. The result is valid until the next call. Values are finite; −0 equals 0.
func (s *sorter) sort(column []float64) []int32 {
	keys, rows := s.keys, s.rows
	s.counts = [8][256]int32{}
	c := &s.counts
	n, below := 0, 0 // of the values that are not 0, and of those below
	zeros := s.zeros[:0]
	all, common := uint64(0), ^uint64(0) // the bits that some keys have, and all
	for i, v := range column {
		if v == 0 {
			zeros = append(zeros, int32(i))
			continue
		}
		k := sortKey(v)
		keys[n], rows[n] = k, int32(i)
		n++
		below += int(1 - k>>63)
		all |= k
		common &= k
		c[0][byte(k)]++
		c[1][byte(k>>8)]++
		c[2][byte(k>>16)]++
		c[3][byte(k>>24)]++
		c[4][byte(k>>32)]++
		c[5][byte(k>>40)]++
		c[6][byte(k>>48)]++
		c[7][byte(k>>56)]++
	}
	for digit := range c {
		shift := 8 * digit
		if byte((all^common)>>shift) == 0 {
			continue
		}
		next := &c[digit] // where the next key with a digit goes
		at := int32(0)
		for b, n := range next {
			next[b] = at
			at += n
		}
		keys, rows, nextKeys, nextRows := s.keys[:n], s.rows[:n], s.nextKeys, s.nextRows
		for i, k := range keys {
			b := byte(k >> shift)
			to := next[b]
			next[b] = to + 1
			nextKeys[to], nextRows[to] = k, rows[i]
		}
		s.keys, s.nextKeys = s.nextKeys, s.keys
		s.rows, s.nextRows = s.nextRows, s.rows
	}
	rows = s.rows[:len(column)]
	copy(rows[below+len(zeros):], rows[below:n])
	copy(rows[below:], zeros)
	return rows
}

// sortKey maps finite numbers to integers in the same order. It negates negative
// numbers and does not complement them, so low bits of 0 stay 0 and their digits
// can be skipped.
func sortKey(v float64) uint64 {
	const zero = 1 << 63
	b := math.Float64bits(v + 0) // −0 becomes 0
	if b >= zero {
		return zero - (b - zero)
	}
	return zero + b
}
