package feature

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The range of a table's size, as a power of two. 24 is what an index may take
// of a vector's 32-bit cells.
const (
	MinTableBits = 8
	MaxTableBits = 24
)

// Sparse holds the features of one message for one expert: indices into its
// table, no index twice. Value has their values, brought to unit length: Σ v² = 1.
// It is nil if the features are binary; each then stands for 1/√n, n = len(Index).
type Sparse struct {
	Index []uint32
	Value []float64
}

// A Hasher turns bytes and names into indices of a table of 2^bits slots. It
// holds nothing but scratch, a bit for each slot and what grows to the longest
// message seen, and serves one goroutine.
type Hasher struct {
	shift   uint
	present bitmap // the indices of the message at hand; all zero between messages
	folded  []byte // the text at hand, folded
	bounds  []uint32
	numbers places
}

// NewHasher returns a Hasher for tables of 2^tableBits slots. It panics if
// tableBits is not in [MinTableBits, MaxTableBits].
func NewHasher(tableBits int) *Hasher {
	if tableBits < MinTableBits || tableBits > MaxTableBits {
		panic(fmt.Sprintf("feature: tables of 2^%d slots", tableBits))
	}
	return &Hasher{shift: uint(64 - tableBits), present: make(bitmap, 1<<(tableBits-6))}
}

// A bitmap is a set of indices, a bit each: 32 KiB for 2^18, which stay in the
// first cache, where a table of the indices themselves does not.
type bitmap []uint64

// sieve moves the first occurrences of the indices to the front, in their order,
// and returns them. b is empty before and after. It does not branch on whether
// an index is new, which would be guessed wrong every few features.
func (b bitmap) sieve(index []uint32) []uint32 {
	k := 0
	for _, i := range index {
		word := b[i>>6]
		b[i>>6] = word | 1<<(i&63)
		index[k] = i // in the place of the next, if it is known
		k += int(^word >> (i & 63) & 1)
	}
	index = index[:k]
	if 8*len(index) > len(b) { // then it is faster to clear b as a whole
		clear(b)
		return index
	}
	for _, i := range index {
		b[i>>6] = 0
	}
	return index
}

// mix spreads a feature's 64 bits over the whole hash.
func mix(v uint64) uint64 {
	v *= 0x9e3779b97f4a7c15
	v ^= v >> 32
	v *= 0xd6e8feb86659fd93
	return v
}

// Grams appends the indices of text's byte n-grams, each once, in the order of
// their first occurrence; a text shorter than n has none. It panics if n is not
// in [1, 8]. It allocates nothing once dst and h have grown to the message.
func (h *Hasher) Grams(dst []uint32, text []byte, n int) []uint32 {
	if n < 1 || n > 8 {
		panic(fmt.Sprintf("feature: %d-grams", n))
	}
	if len(text) < n {
		return dst
	}
	h.folded = appendLower(h.folded[:0], text)
	start, grams := len(dst), len(text)-n+1
	dst = slices.Grow(dst, grams)
	index := dst[start : start+grams]
	salt, drop, shift := uint64(n)<<59, uint(64-8*n), h.shift
	for j := range index {
		gram := binary.BigEndian.Uint64(h.folded[j:]) >> (drop & 63)
		index[j] = uint32(mix(gram+salt) >> (shift & 63))
	}
	return dst[:start+len(h.present.sieve(index))]
}

// wordLoad is how many bytes are read at once. What is folded is followed by as
// many, so that one may begin to read anywhere.
const wordLoad = 8

// appendLower appends text with ASCII letters in lower case, and wordLoad bytes.
func appendLower(dst, text []byte) []byte {
	n := len(text)
	dst = slices.Grow(dst, n+wordLoad)[:n+wordLoad]
	out := dst
	for ; len(text) >= 8; text, out = text[8:], out[8:] {
		binary.LittleEndian.PutUint64(out, lower8(binary.LittleEndian.Uint64(text)))
	}
	var rest [8]byte
	copy(rest[:], text)
	binary.LittleEndian.PutUint64(out, lower8(binary.LittleEndian.Uint64(rest[:])))
	return dst
}

// lower8 folds eight bytes of ASCII to lower case. A byte without its top bit,
// plus 63, has it from 'A' on, and plus 37 from after 'Z'; neither sum reaches
// into the next byte.
func lower8(v uint64) uint64 {
	const every, top = 0x0101010101010101, 0x8080808080808080
	low := v &^ top
	fromA, afterZ := low+(0x80-'A')*every, low+(0x7f-'Z')*every
	return v | (fromA&^afterZ&^v&top)>>2
}
