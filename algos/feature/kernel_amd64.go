//go:build !purego

package feature

import (
	"hamlet/algos/internal/ahead"
	"hamlet/algos/internal/cpu"
)

// The loops of kernel_amd64.s give what those in Go give. They use AVX2.

//go:noescape
func siftGramsAVX2(index *uint32, grams int, text *byte, salts *[4]uint64, bytes *[32]byte, shift uint, present *uint64,
	table *byte, size int) (k, loaded int)

//go:noescape
func siftWordsAVX2(index *uint32, folded *byte, bounds *uint32, words int, salt, before uint64, shift uint,
	present *uint64, table *byte, size int) (k, done int, last uint64)

//go:noescape
func hashStringsAVX2(index *uint32, text *byte, n int, salts *[4]uint64, bytes *[32]byte, shift uint, table *byte, size int)

//go:noescape
func lowerAVX2(out, text *byte, n int)

//go:noescape
func countsAVX2(text *byte, n int) (counts uint64)

//go:noescape
func shapeAVX2(dst, text *byte, n int, kept *[256][8]byte) int

//go:noescape
func foldBlocksAVX2(folded *byte, inside *uint64, text *byte, blocks int)

// none is an index of VPSHUFB that gives 0.
const none = 0x80

// gramBytes[n] takes four n-grams from 16 bytes: the bytes of each, the last one lowest.
var gramBytes = func() (all [9][32]byte) {
	for n := range all {
		for i := range all[n] {
			gram, b := i/8, i%8
			if all[n][i] = none; b < n {
				all[n][i] = byte(gram + n - 1 - b)
			}
		}
	}
	return all
}()

func (b bitmap) siftGrams(index []uint32, folded []byte, n int, shift uint, to ahead.Table) (k, loaded int) {
	four := (len(index) - wordLoad) &^ 3 // the last of them may load 16 bytes
	if !cpu.AVX2 || four <= 0 {
		return b.siftGramsGo(index, 0, 0, folded, n, shift), 0
	}
	_, _ = folded[len(index)+n-1+wordLoad-1], b[1<<(64-shift-6)-1]
	salt := uint64(n) << 59
	to = loadable(to, folded)
	k, loaded = siftGramsAVX2(&index[0], four, &folded[0], &[4]uint64{salt, salt, salt, salt}, &gramBytes[n], shift, &b[0],
		to.Begin, to.Size)
	return b.siftGramsGo(index, k, four, folded, n, shift), loaded
}

// loadable returns t, or for the zero Table one whose features are all the same byte of b: loading it costs little.
func loadable(t ahead.Table, b []byte) ahead.Table {
	if t.Begin == nil {
		return ahead.Table{Begin: &b[0]}
	}
	return t
}

// siftWords is siftWordsGo of all words. Pairs of the kernel have a word before: Go reads the first word, and all from
// a word on whose hash is 0. folded has longWordLoad more bytes.
func (b bitmap) siftWords(index []uint32, folded []byte, bounds []uint32, salt uint64, shift uint, to ahead.Table,
) (k, loaded int) {
	first := bounds[:min(2, len(bounds))]
	k, before := b.siftWordsGo(index, 0, folded, first, salt, 0, shift)
	bounds = bounds[len(first):]
	if eight := len(bounds) / 2 &^ 7; cpu.AVX2 && eight > 0 && before != 0 {
		_, _, _ = folded[bounds[2*eight-1]+longWordLoad-1], index[2*eight], b[1<<(64-shift-6)-1]
		to = loadable(to, folded)
		more, done, last := siftWordsAVX2(&index[k], &folded[0], &bounds[0], eight, salt, before, shift, &b[0],
			to.Begin, to.Size)
		k, before, bounds = k+more, last, bounds[2*done:]
		loaded = k
	}
	k, _ = b.siftWordsGo(index, k, folded, bounds, salt, before, shift)
	return k, loaded
}

// stringBytes takes the strings of 2 to 5 bytes that end at the fifth of eight bytes, the last byte lowest.
var stringBytes = func() (all [32]byte) {
	for i := range all {
		n, b := i/8+2, i%8
		if all[i] = none; b < n {
			all[i] = byte(4 - b)
		}
	}
	return all
}()

// hashStrings is hashStringsGo. It returns how many strings it has started to load.
func hashStrings(index []uint32, text []byte, shift uint, to ahead.Table) (loaded int) {
	n := len(text) - wordLoad + 1 // each loads eight bytes
	if !cpu.AVX2 || n <= 0 {
		hashStringsGo(index, text, shift)
		return 0
	}
	_ = index[4*n-1]
	to = loadable(to, text)
	hashStringsAVX2(&index[0], &text[0], n, &[4]uint64{2 << 59, 3 << 59, 4 << 59, 5 << 59}, &stringBytes, shift,
		to.Begin, to.Size)
	hashStringsGo(index[4*n:], text[n:], shift)
	return 4 * n
}

func lower(out, text []byte) {
	n := len(text) &^ 31
	if !cpu.AVX2 || n == 0 {
		lowerGo(out, text)
		return
	}
	_ = out[n-1]
	lowerAVX2(&out[0], &text[0], n)
	lowerGo(out[n:], text[n:])
}

// counts is countsGo of at most FactBytes.
func counts(text []byte) uint64 {
	n := len(text) &^ 31
	if !cpu.AVX2 || n == 0 {
		return countsGo(text)
	}
	return countsAVX2(&text[0], n) + countsGo(text[n:])
}

// keptBytes[m] moves those of eight bytes to the front whose bit is set in m.
var keptBytes = func() (all [256][8]byte) {
	for m := range all {
		k := 0
		for b := range 8 {
			if m>>b&1 == 1 {
				all[m][k] = byte(b)
				k++
			}
		}
	}
	return all
}()

func shape(dst, text []byte) int {
	n := len(text) &^ 15
	if !cpu.AVX2 || n == 0 {
		return shapeGo(dst, text, 0, 0)
	}
	_ = dst[n-1]
	return shapeGo(dst, text, n, shapeAVX2(&dst[0], &text[0], n, &keptBytes))
}

func foldWords(folded []byte, inside []uint64, text []byte) {
	blocks := len(text) / 64
	if !cpu.AVX2 || blocks == 0 {
		foldWordsGo(folded, inside, text)
		return
	}
	_, _ = folded[64*blocks-1], inside[blocks-1]
	foldBlocksAVX2(&folded[0], &inside[0], &text[0], blocks)
	foldWordsGo(folded[64*blocks:], inside[blocks:], text[64*blocks:])
}
