package mail

import (
	"encoding/binary"
	"math/bits"
)

// Text is read eight bytes at a time, because a branch for each byte costs more than all else: where a word of a text
// ends cannot be predicted. Here eight bytes are a word, the first of them its lowest. A mask of it has the highest bit
// of each byte that it names, and no other bit. All masks are exact: no carry crosses from byte to byte.
const (
	wordBytes = 8
	eachOne   = 0x0101010101010101
	eachHigh  = eachOne << 7
	eachLow   = eachHigh - eachOne
	firstByte = uint64(0x80) // a mask
)

// loadWord returns the first eight bytes of b.
func loadWord(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// storeWord sets the first eight bytes of b.
func storeWord(b []byte, x uint64) { binary.LittleEndian.PutUint64(b, x) }

// differs tells which bytes of low, which are ASCII, are not c. The highest bit of each byte is the answer. Its other
// bits mean nothing.
func differs(low uint64, c byte) uint64 { return (low ^ eachOne*uint64(c)) + eachLow }

// atLeast tells which bytes of low, which are ASCII, are c or above, as differs does. c is not 0.
func atLeast(low uint64, c byte) uint64 { return low + eachOne*uint64(0x80-c) }

// maskSpace names the white space of ASCII in x: '\t' to '\r', and the blank.
func maskSpace(x uint64) uint64 {
	low := x & eachLow
	return (atLeast(low, '\t')&^atLeast(low, '\r'+1) | ^differs(low, ' ')) &^ x & eachHigh
}

// withBlanks returns x with a blank in place of the bytes that mask names.
func withBlanks(x, mask uint64) uint64 {
	mask = mask >> 7 * 0xff
	return x&^mask | mask&(eachOne*' ')
}

// firstOf returns how many bytes come before the first that mask names, and 8 for an empty mask.
func firstOf(mask uint64) int { return bits.TrailingZeros64(mask) / 8 }

// withoutBytes removes the bytes of x that mask names. The others move together, and size is their number.
func withoutBytes(x, mask uint64) (_ uint64, size int) {
	size = wordBytes
	for mask != 0 { // a run of bytes each time
		first := firstOf(mask)
		n := firstOf(^(mask>>(8*first) | eachLow))
		below := uint64(1)<<(8*first) - 1
		x = x&below | x>>(8*n)&^below
		mask = mask >> (8 * n) &^ below
		size -= n
	}
	return x, size
}

// partialWord returns the word of b, which is not empty and shorter than a word, filled up with c.
func partialWord(b []byte, c byte) uint64 {
	n := len(b)
	x := eachOne * uint64(c) << (8 * n)
	if n >= 4 {
		return x | uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<(8*(n-4))
	}
	return x | uint64(b[0]) | uint64(b[n/2])<<(8*(n/2)) | uint64(b[n-1])<<(8*(n-1))
}
