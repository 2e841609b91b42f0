package mail

import (
	"encoding/binary"
	"math/bits"
)

// A message is read eight bytes at a time where single bytes would cost a branch each. A word holds them, the
// first in its lowest byte. A mask of a word has the highest bit of each byte that it names, and no other bit.
// All masks are exact: no carry crosses from byte to byte.
const (
	wordBytes = 8
	eachOne   = 0x0101010101010101
	eachHigh  = eachOne << 7
	eachLow   = eachHigh - eachOne
	lastByte  = uint64(0x80) << 56 // in a mask
	firstByte = uint64(0x80)       // in a mask
)

// loadWord returns the first eight bytes of b.
func loadWord(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// storeWord sets the first eight bytes of b.
func storeWord(b []byte, x uint64) { binary.LittleEndian.PutUint64(b, x) }

// maskEqual names the bytes of x that are c.
func maskEqual(x uint64, c byte) uint64 {
	x ^= eachOne * uint64(c)
	return ^((x&eachLow + eachLow) | x) & eachHigh
}

// maskBelow names the bytes of x below c, which is ASCII.
func maskBelow(x uint64, c byte) uint64 {
	return ^((x&eachLow + eachOne*uint64(0x80-c)) | x) & eachHigh
}

// maskSpace names the white space of ASCII in x: '\t' to '\r', and the blank.
func maskSpace(x uint64) uint64 {
	return maskBelow(x, '\r'+1)&^maskBelow(x, '\t') | maskEqual(x, ' ')
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
	for mask != 0 {
		below := mask&-mask>>7 - 1 // all bits before the first of these bytes
		x = x&below | x>>8&^below
		mask = mask & (mask - 1) >> 8
		size--
	}
	return x, size
}

// partialWord returns the word of b, which is shorter than a word, filled up with c.
func partialWord(b []byte, c byte) uint64 {
	x := eachOne * uint64(c)
	for i, d := range b {
		x ^= uint64(d^c) << (8 * i)
	}
	return x
}
