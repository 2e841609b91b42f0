package feature

import (
	"encoding/binary"
	"fmt"
	"slices"

	"hamlet/algos/internal/ahead"
)

// The range of log₂ of a table's slots. An indexTable stores an index in 24 bits of a cell.
const (
	MinTableBits = 8
	MaxTableBits = 24
)

// Sparse holds the features of one message for one expert: distinct indices into its
// table. Value holds their values, scaled to Σ v² = 1. A nil Value means binary features,
// each of value 1/√len(Index).
type Sparse struct {
	Index []uint32
	Value []float64
}

// A Hasher turns bytes and names into indices of a table of 2^bits slots. It holds only
// buffers: one bit per slot, and the folded text. It is not safe for concurrent use.
type Hasher struct {
	shift   uint
	present bitmap // the indices of the current message; empty between messages
	folded  []byte // the current text, folded
	bounds  []uint32
	inside  []uint64 // a bit for each byte of the text: it is of a word
	numbers indexTable
	trace   *Trace // nil but while Trace asks for one

	ahead  ahead.Table
	loaded int // see Loaded
}

// LoadAhead lets what hashes a list from now on start to load its features from t. So the memory answers while there
// is work to do. It changes no feature.
func (h *Hasher) LoadAhead(t ahead.Table) { h.ahead, h.loaded = t, 0 }

// Loaded ends [Hasher.LoadAhead]. Loading has started for the first n features of the list that was hashed since.
func (h *Hasher) Loaded() (n int) {
	n = h.loaded
	h.ahead, h.loaded = ahead.Table{}, 0
	return n
}

// NewHasher returns a Hasher for tables of 2^tableBits slots. It panics if
// tableBits is not in [MinTableBits, MaxTableBits].
func NewHasher(tableBits int) *Hasher {
	if tableBits < MinTableBits || tableBits > MaxTableBits {
		panic(fmt.Sprintf("feature: tables of 2^%d slots", tableBits))
	}
	return &Hasher{shift: uint(64 - tableBits), present: make(bitmap, 1<<(tableBits-6))}
}

// TableBits returns the binary logarithm of the number of slots.
func (h *Hasher) TableBits() int { return int(64 - h.shift) }

// A bitmap is a set of indices, one bit each. For 2^18 slots it takes 32 KiB, which fit
// into the L1 cache.
type bitmap []uint64

// sieve removes repeated indices in place, keeps the order, and returns how many are left. b is
// empty before and after.
func (b bitmap) sieve(index []uint32) int {
	k := b.sift(index, 0, 0)
	b.clear(index[:k])
	return k
}

// sift moves the indices from done on that are not in b behind the first k, and adds them to b. It returns how many
// are left then. It does not branch on whether an index is new: that branch would be mispredicted every few features.
func (b bitmap) sift(index []uint32, k, done int) int {
	for _, i := range index[done:] {
		word := b[i>>6]
		b[i>>6] = word | 1<<(i&63)
		index[k] = i // the next index overwrites it if i is not new
		k += int(^word >> (i & 63) & 1)
	}
	return k
}

// clear makes b empty, which has the indices of index.
func (b bitmap) clear(index []uint32) {
	if 8*len(index) > len(b) { // clearing all of b is faster then
		clear(b)
		return
	}
	for _, i := range index {
		b[i>>6] = 0
	}
}

// mix hashes a feature's 64 bits.
func mix(v uint64) uint64 {
	v *= 0x9e3779b97f4a7c15
	v ^= v >> 32
	v *= 0xd6e8feb86659fd93
	return v
}

// Grams appends the indices of text's byte n-grams, each once, in the order of first
// occurrence. It panics if n is not in [1, 8]. It allocates nothing once dst and h are
// large enough.
func (h *Hasher) Grams(dst []uint32, text []byte, n int) []uint32 {
	if n < 1 || n > 8 {
		panic(fmt.Sprintf("feature: %d-grams", n))
	}
	h.folded = appendLower(h.folded[:0], text)
	return h.grams(dst, len(text), n)
}

// grams is Grams of the first length bytes of h.folded, which has wordLoad more.
func (h *Hasher) grams(dst []uint32, length, n int) []uint32 {
	if length < n {
		return dst
	}
	start, grams := len(dst), length-n+1
	dst = slices.Grow(dst, grams)
	index := dst[start : start+grams]
	if h.trace != nil {
		hashGrams(index, h.folded, n, h.shift)
		h.trace.grams(h.folded, index, n)
		return dst[:start+h.present.sieve(index)]
	}
	k, loaded := h.present.siftGrams(index, h.folded, n, h.shift, h.ahead)
	h.loaded = start + loaded
	h.present.clear(index[:k])
	return dst[:start+k]
}

// siftGramsGo is hashGrams of the grams from done on, and removes repeated indices as sieve does. k indices before are
// left. It returns how many are left then, and leaves them in b.
func (b bitmap) siftGramsGo(index []uint32, k, done int, folded []byte, n int, shift uint) int {
	hashGrams(index[done:], folded[done:], n, shift)
	return b.sift(index, k, done)
}

// hashGrams writes the index of the n-gram at each byte. It is a function of its own so that
// the loop has the registers for itself.
//
//go:noinline
func hashGrams(index []uint32, folded []byte, n int, shift uint) {
	salt, drop := uint64(n)<<59, uint(64-8*n)
	for j := range index {
		gram := binary.BigEndian.Uint64(folded) >> (drop & 63)
		index[j] = uint32(mix(gram+salt) >> (shift & 63))
		folded = folded[1:]
	}
}

// Strings appends the indices of the strings of 2 to longest bytes that end at each byte of
// text, longest−1 of them a byte, shortest first. A string that would begin before text has
// the index 0. Unlike a gram, a string stands there each time it occurs, and its letters are
// not folded. It panics if longest is not in [2, 8].
func (h *Hasher) Strings(dst []uint32, text []byte, longest int) []uint32 {
	if longest < 2 || longest > 8 {
		panic(fmt.Sprintf("feature: strings of up to %d bytes", longest))
	}
	start := len(dst)
	dst = slices.Grow(dst, (longest-1)*len(text))
	var last uint64 // the last 8 bytes
	for i, c := range text {
		if i >= 4 && longest == 5 {
			dst = dst[:start+4*len(text)]
			h.loaded = start + 4*i + hashStrings(dst[start+4*i:], text[i-4:], h.shift, h.ahead)
			break
		}
		last = last<<8 | uint64(c)
		for n := 2; n <= longest; n++ {
			if n > i+1 {
				dst = append(dst, 0)
				continue
			}
			dst = append(dst, stringIndex(last, n, h.shift))
		}
	}
	if h.trace != nil {
		h.trace.strings(text, dst[start:], longest)
	}
	return dst
}

// stringIndex returns the index of the last n bytes of last.
func stringIndex(last uint64, n int, shift uint) uint32 {
	drop := uint(64 - 8*n)
	return uint32(mix(last<<(drop&63)>>(drop&63)+uint64(n)<<59) >> (shift & 63))
}

// hashStringsGo writes the indices of the strings of 2 to 5 bytes that end at each byte of text from the
// fifth on. It is a function of its own as hashGrams is.
//
//go:noinline
func hashStringsGo(index []uint32, text []byte, shift uint) {
	var last uint64
	for i, c := range text {
		if last = last<<8 | uint64(c); i < 4 {
			continue
		}
		four := index[:4:4]
		four[0] = stringIndex(last, 2, shift)
		four[1] = stringIndex(last, 3, shift)
		four[2] = stringIndex(last, 4, shift)
		four[3] = stringIndex(last, 5, shift)
		index = index[4:]
	}
}

// Lower appends text with ASCII letters in lower case.
func Lower(dst, text []byte) []byte {
	n := len(dst) + len(text)
	dst = slices.Grow(dst, len(text)+wordLoad)
	return append(dst, appendLower(dst[len(dst):], text)...)[:n]
}

// wordLoad is how many bytes are loaded at once. Folded text is followed by wordLoad
// more bytes, so that a load may start at any byte.
const wordLoad = 8

// appendLower appends text with ASCII letters in lower case. dst has wordLoad more bytes.
func appendLower(dst, text []byte) []byte {
	n := len(text)
	dst = slices.Grow(dst, n+wordLoad)[:n+wordLoad]
	lower(dst, text)
	return dst
}

// lowerGo writes text with ASCII letters in lower case, and then up to wordLoad bytes more.
func lowerGo(out, text []byte) {
	for ; len(text) >= 8; text, out = text[8:], out[8:] {
		binary.LittleEndian.PutUint64(out, lower8(binary.LittleEndian.Uint64(text)))
	}
	var rest [8]byte
	copy(rest[:], text)
	binary.LittleEndian.PutUint64(out, lower8(binary.LittleEndian.Uint64(rest[:])))
}

// lower8 folds the ASCII letters of eight bytes to lower case. A 7-bit value plus 63 has
// its top bit set from 'A' on, plus 37 from after 'Z'. Neither sum carries.
func lower8(v uint64) uint64 {
	const every, top = 0x0101010101010101, 0x8080808080808080
	low := v &^ top
	fromA, afterZ := low+(0x80-'A')*every, low+(0x7f-'Z')*every
	return v | (fromA&^afterZ&^v&top)>>2
}
