//go:build !purego

package feature

// The loops of kernel_amd64.s give what siftGramsGo and foldWordsGo give. They use SSE2, which every amd64 has.

//go:noescape
func siftGrams(index *uint32, grams int, text *byte, before, mask, salt uint64, shift uint, present *uint64) int

//go:noescape
func foldBlocks(folded *byte, inside *uint64, text *byte, blocks int)

func (b bitmap) siftGrams(index []uint32, folded []byte, n int, shift uint) int {
	var before uint64 // the first n-1 bytes
	for _, c := range folded[:n-1] {
		before = before<<8 | uint64(c)
	}
	_ = folded[n-2+len(index)]
	_ = b[1<<(64-shift-6)-1]
	return siftGrams(&index[0], len(index), &folded[n-1], before, ^uint64(0)>>(64-8*n), uint64(n)<<59, shift, &b[0])
}

func foldWords(folded []byte, inside []uint64, text []byte) {
	blocks := len(text) / 64
	if blocks > 0 {
		_, _ = folded[64*blocks-1], inside[blocks-1]
		foldBlocks(&folded[0], &inside[0], &text[0], blocks)
	}
	foldWordsGo(folded[64*blocks:], inside[blocks:], text[64*blocks:])
}
