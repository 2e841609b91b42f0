//go:build !amd64 || purego

package feature

import "hamlet/algos/internal/ahead"

func (b bitmap) siftGrams(index []uint32, folded []byte, n int, shift uint, _ ahead.Table) (k, loaded int) {
	return b.siftGramsGo(index, 0, 0, folded, n, shift), 0
}

func (b bitmap) siftWords(index []uint32, folded []byte, bounds []uint32, salt uint64, shift uint, _ ahead.Table,
) (k, loaded int) {
	k, _ = b.siftWordsGo(index, 0, folded, bounds, salt, 0, shift)
	return k, 0
}

func hashStrings(index []uint32, text []byte, shift uint, _ ahead.Table) (loaded int) {
	hashStringsGo(index, text, shift)
	return 0
}

func lower(out, text []byte) { lowerGo(out, text) }

func counts(text []byte) uint64 { return countsGo(text) }

func shape(dst, text []byte) int { return shapeGo(dst, text, 0, 0) }

func foldWords(folded []byte, inside []uint64, text []byte) { foldWordsGo(folded, inside, text) }
