package feature

import (
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// A Number is one coordinate of a vector.
type Number struct {
	Name  string
	Value float64
}

// indexTable maps an index to its position in a Sparse, by open addressing. The low 24 bits
// of a cell are an index, the high 8 the generation that wrote it. Each vector is one
// generation, so the cells are cleared only once in 255 vectors.
type indexTable struct {
	cells      []uint32
	at         []uint32 // cells[p] is Sparse.Index[at[p]]
	generation uint32
}

// begin starts a generation of at most n features. It returns the mask of the cells that
// the generation uses, and its tag.
func (p *indexTable) begin(n int) (mask, tag uint32) {
	size := 1 << bits.Len(uint(2*n+1))
	p.generation++
	if len(p.cells) < size {
		p.cells, p.at = make([]uint32, size), make([]uint32, size)
		p.generation = 1
	} else if p.generation > 255 {
		clear(p.cells)
		p.generation = 1
	}
	return uint32(size - 1), p.generation << MaxTableBits
}

// Numbers replaces dst by the hashed names of numbers and their values, scaled to unit
// length. dst.Value is never nil then. A value of 0 is the same as a missing name. Values
// with the same index are added; a sum of 0 gives no feature. All values must be finite.
// Cost O(len(numbers)).
func (h *Hasher) Numbers(dst *Sparse, numbers []Number) {
	mask, tag := h.numbers.begin(len(numbers))
	cells, at := h.numbers.cells, h.numbers.at
	dst.Index = dst.Index[:0]
	if dst.Value == nil {
		dst.Value = make([]float64, 0, len(numbers))
	}
	dst.Value = dst.Value[:0]
	largest := 0.0
	for _, n := range numbers {
		largest = max(largest, math.Abs(n.Value))
	}
	for _, n := range numbers {
		if n.Value == 0 {
			continue
		}
		v := n.Value / largest // in [−1, 1], so that no square overflows
		i := h.name(n.Name)
		p := i & mask
		for ; cells[p] != tag|i; p = (p + 1) & mask {
			if cells[p]>>MaxTableBits != tag>>MaxTableBits {
				cells[p] = tag | i
				at[p] = uint32(len(dst.Index))
				dst.Index = append(dst.Index, i)
				dst.Value = append(dst.Value, 0)
				break
			}
		}
		dst.Value[at[p]] += v
	}
	if h.trace != nil {
		h.trace.numbers(numbers, h.name)
	}
	sum := dst.dropZeros()
	if sum < leastSquares && len(dst.Value) > 0 { // almost everything cancelled: scale again
		largest = 0
		for _, v := range dst.Value {
			largest = max(largest, math.Abs(v))
		}
		for k := range dst.Value {
			dst.Value[k] /= largest
		}
		sum = dst.dropZeros()
	}
	norm := math.Sqrt(sum)
	for i := range dst.Value {
		dst.Value[i] /= norm
	}
}

// name returns the index of a name.
func (h *Hasher) name(s string) uint32 { return uint32(mix(xxhash.Sum64String(s)) >> h.shift) }

// leastSquares: in a smaller sum of squares, the squares may be below 2⁻¹⁰²² and inexact.
const leastSquares = 0x1p-900

// dropZeros removes the features of value 0, in their order, and returns Σ v².
func (s *Sparse) dropZeros() (squares float64) {
	n := 0
	for k, v := range s.Value {
		if v != 0 {
			s.Index[n], s.Value[n] = s.Index[k], v
			n++
			squares += float64(v * v)
		}
	}
	s.Index, s.Value = s.Index[:n], s.Value[:n]
	return squares
}
