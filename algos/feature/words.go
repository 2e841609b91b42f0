package feature

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	wordBytes    = 30            // how many bytes of a word are hashed
	longWordLoad = wordBytes + 6 // how many may be loaded from its begin on
)

// FNV-1a, in 64 bits (Fowler, Noll and Vo).
const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

// Words appends the indices of text's words and of the pairs of neighbouring words, each
// once, in the order of first occurrence. It ignores the bytes between words. It
// allocates nothing once dst and h are large enough.
func (h *Hasher) Words(dst []uint32, text []byte) []uint32 {
	return h.saltedWords(dst, len(dst), text, 0)
}

// WordsByLength is Words with other indices for each ⌊log₂(length+1)⌋, and with a feature of
// that logarithm alone. So the same word is another feature in a text of another length.
func (h *Hasher) WordsByLength(dst []uint32, text []byte, length int) []uint32 {
	salt := mix(uint64(bits.Len(uint(length + 1))))
	return h.saltedWords(append(dst, uint32(mix(salt)>>h.shift)), len(dst), text, salt)
}

// saltedWords adds salt to the hash of each word. From begin on, dst has features of the text that are no words.
func (h *Hasher) saltedWords(dst []uint32, begin int, text []byte, salt uint64) []uint32 {
	bounds := h.words(text)
	h.present.sift(dst[begin:], 0, 0)
	start := len(dst)
	dst = slices.Grow(dst, len(bounds)) // a word, and its pair
	index := dst[start : start+len(bounds)]
	var k, loaded int
	if h.trace != nil {
		k, _ = hashWords(index, h.folded, bounds, salt, 0, h.shift)
		h.trace.words(h.folded, bounds, index[:k])
		k = h.present.sift(index[:k], 0, 0)
	} else {
		k, loaded = h.present.siftWords(index, h.folded, bounds, salt, h.shift, h.ahead)
		h.loaded = start + loaded
	}
	dst = dst[:start+k]
	h.present.clear(dst[begin:])
	return dst
}

// siftWordsGo is hashWords, and removes repeated indices as sieve does. k indices before are left. It returns how
// many are left then, and leaves them in b.
func (b bitmap) siftWordsGo(index []uint32, k int, folded []byte, bounds []uint32, salt, before uint64, shift uint,
) (left int, last uint64) {
	n, last := hashWords(index[k:], folded, bounds, salt, before, shift)
	return b.sift(index[:k+n], k, k), last
}

// hashWords writes the indices of words, and of the pair that each word ends, and returns their number and the hash
// of the last word. before is the hash of the word before the first, 0 if there is none. Like hashGrams it is not
// inlined: the compiler then keeps its variables in registers.
//
//go:noinline
func hashWords(index []uint32, folded []byte, bounds []uint32, salt, before uint64, shift uint) (k int, last uint64) {
	for ; len(bounds) >= 2; bounds = bounds[2:] {
		word := mix(wordHash(folded[bounds[0]:], int(bounds[1]-bounds[0])) + salt)
		index[k] = uint32(word >> (shift & 63))
		k++
		if before != 0 {
			index[k] = uint32(mix(bits.RotateLeft64(before, 23)+word) >> (shift & 63))
			k++
		}
		before = word
	}
	return k, before
}

// words folds text into h.folded. It returns two offsets per word: its begin and its end.
func (h *Hasher) words(text []byte) []uint32 {
	n := len(text)
	h.folded = slices.Grow(h.folded[:0], n+longWordLoad)[:n+longWordLoad]
	h.bounds = slices.Grow(h.bounds[:0], n+2)[:n+2]
	h.inside = slices.Grow(h.inside[:0], n/64+1)[:n/64+1]
	foldWords(h.folded[:n], h.inside, text)
	bounds, k, before := h.bounds, 0, uint64(0)
	for block, inside := range h.inside {
		edges := inside ^ (inside<<1 | before)
		before = inside >> 63
		for ; edges != 0; edges &= edges - 1 {
			bounds[k] = uint32(64*block + bits.TrailingZeros64(edges))
			k++
		}
	}
	return bounds[:k] // an even number: a bit behind the text is 0
}

// foldWordsGo writes text into folded, letters in lower case and 0 for what is of no word, and into inside a bit
// for each byte, 64 in a number: 1 for a byte of a word. It writes len(text)/64+1 numbers.
func foldWordsGo(folded []byte, inside []uint64, text []byte) {
	folded = folded[:len(text)]
	word := uint64(0)
	for i, c := range text {
		c = wordByte[c]
		folded[i] = c
		word |= uint64((c|-c)>>7) << (i & 63)
		if i&63 == 63 {
			inside[i>>6], word = word, 0
		}
	}
	inside[len(text)>>6] = word
}

// wordHash returns the FNV-1a hash of the first min(length, wordBytes) bytes of b. b has
// wordLoad more bytes. It computes the hashes of the first one to eight bytes and picks
// one: a loop up to the word's end would mispredict its last branch at most words.
func wordHash(b []byte, length int) uint64 {
	var hashes [wordLoad]uint64
	v, hash := binary.LittleEndian.Uint64(b), uint64(fnvOffset)
	hash = (hash ^ v&0xff) * fnvPrime
	hashes[0] = hash
	hash = (hash ^ v>>8&0xff) * fnvPrime
	hashes[1] = hash
	hash = (hash ^ v>>16&0xff) * fnvPrime
	hashes[2] = hash
	hash = (hash ^ v>>24&0xff) * fnvPrime
	hashes[3] = hash
	hash = (hash ^ v>>32&0xff) * fnvPrime
	hashes[4] = hash
	hash = (hash ^ v>>40&0xff) * fnvPrime
	hashes[5] = hash
	hash = (hash ^ v>>48&0xff) * fnvPrime
	hashes[6] = hash
	hash = (hash ^ v>>56) * fnvPrime
	hashes[7] = hash
	if length <= wordLoad {
		return hashes[(length-1)%wordLoad]
	}
	for _, c := range b[wordLoad:min(length, wordBytes)] {
		hash = (hash ^ uint64(c)) * fnvPrime
	}
	return hash
}

// wordByte maps a byte of a word to lower case, and any other byte to 0.
var wordByte = func() (fold [256]uint8) {
	for c := range fold {
		l := uint8(c)
		if 'A' <= l && l <= 'Z' {
			l += 'a' - 'A'
		}
		switch {
		case 'a' <= l && l <= 'z', '0' <= l && l <= '9', l >= 128,
			l == '\'', l == '-', l == '$', l == '.', l == '_', l == '@':
			fold[c] = l
		}
	}
	return fold
}()
