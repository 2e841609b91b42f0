//go:build !amd64 || purego

package text

func (t *terms) features(rs, zs *[block]float64, table Column, index []uint32) (places uint64) {
	return t.featuresGo(rs, zs, table, index)
}

func (e *ByteModel) ratios(to []float64, text []byte, index []uint32, before *byteCounts, prior *[2]float64) {
	e.ratiosGo(to, text, index, before, prior)
}

func steps(table Column, index []uint32, square, length, gain float32) {
	stepsGo(table, index, square, length, gain)
}
