//go:build !amd64 || purego

package text

func (t *terms) features(sums *evidenceLanes, table Column, index []uint32) (places uint64) {
	return t.featuresGo(sums, table, index)
}

func (e *ByteModel) ratios(to []float64, text []byte, index []uint32, before *byteCounts, prior *[2]float64) {
	e.ratiosGo(to, text, index, before, prior)
}

func sumWeights(sums *lanes, table Column, index []uint32) (seen uint64) {
	return sumWeightsGo(sums, table, index)
}

func steps(table Column, index []uint32, square, length, gain float32) {
	stepsGo(table, index, square, length, gain)
}

func addCounts(table Column, spam bool, index []uint32, ω float64, seed uint32) {
	addCountsGo(table, spam, index, ω, seed)
}
