//go:build !amd64 || purego

package feature

func (b bitmap) siftGrams(index []uint32, folded []byte, n int, shift uint) int {
	return b.siftGramsGo(index, folded, n, shift)
}

func foldWords(folded []byte, inside []uint64, text []byte) { foldWordsGo(folded, inside, text) }
