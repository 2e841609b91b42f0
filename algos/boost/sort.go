package boost

import "math"

// A sorter sorts columns by least-significant-digit radix sort, eight bits at a
// time. It is stable, its cost is linear, and digits in which all values agree
// are skipped: of numbers that were once float32, three or four of the eight.
type sorter struct {
	keys, nextKeys []uint64
	rows, nextRows []int32
	counts         [8][256]int32
}

func newSorter(rows int) *sorter {
	return &sorter{
		keys: make([]uint64, rows), nextKeys: make([]uint64, rows),
		rows: make([]int32, rows), nextRows: make([]int32, rows),
	}
}

// sort returns the rows of column by ascending value, equal values in the order
// given. The answer holds until the next call. Values are finite; −0 equals 0.
func (s *sorter) sort(column []float64) []int32 {
	s.counts = [8][256]int32{}
	for i, v := range column {
		k := sortKey(v)
		s.keys[i], s.rows[i] = k, int32(i)
		for digit := range s.counts {
			s.counts[digit][byte(k>>(8*digit))]++
		}
	}
	for digit := range s.counts {
		shift := 8 * digit
		counts := &s.counts[digit]
		if counts[byte(s.keys[0]>>shift)] == int32(len(column)) {
			continue
		}
		at := int32(0)
		for b, n := range counts {
			counts[b] = at
			at += n
		}
		for i, k := range s.keys {
			to := &counts[byte(k>>shift)]
			s.nextKeys[*to], s.nextRows[*to] = k, s.rows[i]
			*to++
		}
		s.keys, s.nextKeys = s.nextKeys, s.keys
		s.rows, s.nextRows = s.nextRows, s.rows
	}
	return s.rows
}

// sortKey maps finite numbers to integers in the same order.
func sortKey(v float64) uint64 {
	b := math.Float64bits(v + 0) // −0 becomes 0
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}
