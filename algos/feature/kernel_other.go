//go:build !amd64 || purego

package feature

func (b bitmap) siftGrams(index []uint32, folded []byte, n int, shift uint) int {
	return b.siftGramsGo(index, 0, 0, folded, n, shift)
}

func (b bitmap) siftWords(index []uint32, folded []byte, bounds []uint32, salt uint64, shift uint) int {
	k, _ := b.siftWordsGo(index, 0, folded, bounds, salt, 0, shift)
	return k
}

func hashStrings(index []uint32, text []byte, shift uint) { hashStringsGo(index, text, shift) }

func lower(out, text []byte) { lowerGo(out, text) }

func counts(text []byte) uint64 { return countsGo(text) }

func shape(dst, text []byte) int { return shapeGo(dst, text, 0, 0) }

func foldWords(folded []byte, inside []uint64, text []byte) { foldWordsGo(folded, inside, text) }
