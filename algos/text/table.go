package text

import (
	"encoding/binary"
	"math"
	"slices"

	"hamlet/algos/internal/ahead"
)

// A pair is what an expert holds of one feature: (weight, squared gradients) or (ham, spam).
type pair struct{ a, b float32 }

// pairSize is the number of bytes of a pair.
const pairSize = 8

// A Table holds the pairs of all experts that read one list. The pairs of a feature are
// adjacent, so that reading them waits for memory once.
type Table struct {
	pairs  []pair
	stride int // number of experts
}

// NewTable returns a Table of 2^tableBits features for a number of experts, all 0.
func NewTable(tableBits, experts int) *Table {
	return &Table{pairs: make([]pair, experts<<tableBits), stride: experts}
}

// Column returns the pairs of expert k.
func (t *Table) Column(k int) Column {
	return Column{pairs: t.pairs[min(k, len(t.pairs)):], stride: t.stride}
}

// Slots returns the number of slots: features beyond it share them.
func (t *Table) Slots() int { return len(t.pairs) / t.stride }

// Used returns how many slots some expert has learnt a feature in. It reads the whole table.
func (t *Table) Used() (n int) {
	for slot := range slices.Chunk(t.pairs, t.stride) {
		if slices.ContainsFunc(slot, func(p pair) bool { return p != pair{} }) {
			n++
		}
	}
	return n
}

// Prefetch starts loading the pairs of features into the cache. It has no effect except
// on amd64 without the build tag purego. Any index is safe.
func (t *Table) Prefetch(index []uint32) {
	if len(index) > 0 {
		prefetch(&t.pairs[0], &index[0], len(index), pairSize*t.stride)
	}
}

// Memory returns where the pairs of features lie.
func (t *Table) Memory() ahead.Table { return ahead.Of(t.pairs, t.stride) }

// A Column is one expert's part of a Table. Feature i has pairs[i·stride].
type Column struct {
	pairs  []pair
	stride int
}

// NewColumn returns the only Column of a new Table.
func NewColumn(tableBits int) Column { return NewTable(tableBits, 1).Column(0) }

// len returns the number of features.
func (c Column) len() int { return (len(c.pairs) + c.stride - 1) / c.stride }

func (c Column) at(i uint32) *pair { return &c.pairs[int(i)*c.stride] }

// append appends the pairs, little endian, from feature 0:
//
//	(a, b float32) of each
func (c Column) append(dst []byte) []byte {
	dst, b := grow(dst, pairSize*c.len())
	c.put(b, 0)
	return dst
}

// put writes into b the pairs from feature first on, as many as b has room for.
func (c Column) put(b []byte, first int) {
	for i := range len(b) / pairSize {
		p := c.pairs[(first+i)*c.stride]
		binary.LittleEndian.PutUint32(b[pairSize*i:], math.Float32bits(p.a))
		binary.LittleEndian.PutUint32(b[pairSize*i+4:], math.Float32bits(p.b))
	}
}

// each calls do with what append appends, in order and in pieces. buf is scratch for a piece, of pairSize
// bytes at least.
func (c Column) each(buf []byte, do func(piece []byte) error) error {
	n, most := c.len(), len(buf)/pairSize
	for i := 0; i < n; i += most {
		piece := buf[:pairSize*min(most, n-i)]
		c.put(piece, i)
		if err := do(piece); err != nil {
			return err
		}
	}
	return nil
}

// read reads what append wrote. b has the right length. valid reports whether an expert
// can have made a pair; read returns the first feature whose pair is not valid, or −1.
func (c Column) read(b []byte, valid func(pair) bool) (bad int) {
	for i := range c.len() {
		p := pair{
			math.Float32frombits(binary.LittleEndian.Uint32(b[pairSize*i:])),
			math.Float32frombits(binary.LittleEndian.Uint32(b[pairSize*i+4:])),
		}
		if !valid(p) {
			return i
		}
		c.pairs[i*c.stride] = p
	}
	return -1
}

// grow appends n bytes to dst and returns it and them.
func grow(dst []byte, n int) (all, tail []byte) {
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	return dst, dst[at:]
}
