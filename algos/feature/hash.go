package feature

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// The range of a table's size, as a power of two. 24 is what an index may take
// of a Hasher's 32-bit cells.
const (
	MinTableBits = 8
	MaxTableBits = 24
)

// wordBytes is how much of a word counts.
const wordBytes = 30

// Sparse holds the features of one message for one expert: indices into its
// table, no index twice. Value is nil if the features are binary; each then
// stands for 1/√n, n = len(Index). Otherwise it holds their values, brought to
// unit length: Σ v² = 1. So binary features are the case v = 1/√n.
type Sparse struct {
	Index []uint32
	Value []float64
}

// A Hasher turns bytes and names into indices of a table of 2^bits slots. It
// holds nothing but scratch, which grows to the longest message seen, and
// serves one goroutine.
type Hasher struct {
	shift uint

	// The indices of the message at hand, by open addressing: the low 24 bits
	// are an index, the high 8 the generation that entered it. A message is a
	// generation, so that nothing has to be cleared but at every 255th.
	seen       []uint32
	at         []uint32 // Numbers only: seen[p] is Sparse.Index[at[p]]
	generation uint32
}

// NewHasher returns a Hasher for tables of 2^tableBits slots. It panics if
// tableBits is not in [MinTableBits, MaxTableBits].
func NewHasher(tableBits int) *Hasher {
	if tableBits < MinTableBits || tableBits > MaxTableBits {
		panic(fmt.Sprintf("feature: tables of 2^%d slots", tableBits))
	}
	return &Hasher{shift: uint(64 - tableBits)}
}

// begin opens a new generation for at most n features, and returns the mask of
// the part of h.seen that it uses and its tag.
func (h *Hasher) begin(n int) (mask, tag uint32) {
	size := 1 << bits.Len(uint(2*n+1))
	h.generation++
	if len(h.seen) < size {
		h.seen, h.at = make([]uint32, size), nil
		h.generation = 1
	} else if h.generation > 255 {
		clear(h.seen)
		h.generation = 1
	}
	return uint32(size - 1), h.generation << MaxTableBits
}

// enter marks index i and says whether it was new.
func (h *Hasher) enter(mask, tag, i uint32) bool {
	for p := i & mask; ; p = (p + 1) & mask {
		s := h.seen[p]
		if s == tag|i {
			return false
		}
		if s>>MaxTableBits != tag>>MaxTableBits {
			h.seen[p] = tag | i
			return true
		}
	}
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
	mask, tag := h.begin(len(text))
	keep := ^uint64(0) >> (64 - 8*n)
	var gram uint64
	for _, c := range text[:n-1] {
		gram = gram<<8 | uint64(lower[c])
	}
	for _, c := range text[n-1:] {
		gram = (gram<<8 | uint64(lower[c])) & keep
		i := uint32(mix(gram+uint64(n)<<59) >> h.shift)
		if h.enter(mask, tag, i) {
			dst = append(dst, i)
		}
	}
	return dst
}

// Words appends the indices of text's words and of the pairs of neighbouring
// words, each once, in the order of their first occurrence. What stands between
// two words does not count. It allocates nothing once dst and h have grown to
// the message.
func (h *Hasher) Words(dst []uint32, text []byte) []uint32 {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3 // FNV-1a
	mask, tag := h.begin(len(text) + 1)                     // a word takes two bytes, and brings two features
	var before uint64
	for i := 0; i < len(text); {
		c := wordByte[text[i]]
		if c == 0 {
			i++
			continue
		}
		word := uint64(offset)
		for end := i + wordBytes; c != 0; c = wordByte[text[i]] {
			if i < end {
				word = (word ^ uint64(c)) * prime
			}
			if i++; i == len(text) {
				break
			}
		}
		word = mix(word)
		if j := uint32(word >> h.shift); h.enter(mask, tag, j) {
			dst = append(dst, j)
		}
		if before != 0 {
			if j := uint32(mix(bits.RotateLeft64(before, 23)+word) >> h.shift); h.enter(mask, tag, j) {
				dst = append(dst, j)
			}
		}
		before = word
	}
	return dst
}

// Numbers replaces dst by the hashed names of numbers with their values,
// brought to unit length; dst.Value is not nil. A value of 0 is the same as a
// missing name. The values of names that share an index are added up. All
// values must be finite. Cost O(len(numbers)).
func (h *Hasher) Numbers(dst *Sparse, numbers []Number) {
	mask, tag := h.begin(len(numbers))
	if len(h.at) < len(h.seen) {
		h.at = make([]uint32, len(h.seen))
	}
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
		i := uint32(mix(xxhash.Sum64String(n.Name)) >> h.shift)
		p := i & mask
		for ; h.seen[p] != tag|i; p = (p + 1) & mask {
			if h.seen[p]>>MaxTableBits != tag>>MaxTableBits {
				h.seen[p] = tag | i
				h.at[p] = uint32(len(dst.Index))
				dst.Index = append(dst.Index, i)
				dst.Value = append(dst.Value, 0)
				break
			}
		}
		dst.Value[h.at[p]] += v
	}
	sum := 0.0
	for _, v := range dst.Value {
		sum += float64(v * v)
	}
	if sum == 0 { // nothing, or values that cancel
		return
	}
	norm := math.Sqrt(sum)
	for i := range dst.Value {
		dst.Value[i] /= norm
	}
}

// lower folds ASCII to lower case.
var lower = func() (fold [256]uint8) {
	for c := range fold {
		fold[c] = uint8(c)
		if 'A' <= c && c <= 'Z' {
			fold[c] = uint8(c) + 'a' - 'A'
		}
	}
	return fold
}()

// wordByte folds the bytes of words to lower case, and all others to 0.
var wordByte = func() (fold [256]uint8) {
	for c := range fold {
		switch l := lower[c]; {
		case 'a' <= l && l <= 'z', '0' <= l && l <= '9', l >= 128,
			l == '\'', l == '-', l == '$', l == '.', l == '_', l == '@':
			fold[c] = l
		}
	}
	return fold
}()
