//go:build !purego

package text

import (
	"math"

	"hamlet/algos/internal/cpu"
	"hamlet/algos/internal/logistic"
)

// The loops of kernel_amd64.s give the bits of those in Go. They mask indices, so that they read nothing beyond the
// table. adaSteps uses SSE2, which every amd64 has, the others AVX2.

// constants are what bayesTerms needs, each four times: one for each quarter of a register.
type constants [16][4]float64

//go:noescape
func bayesTerms(sums *evidenceLanes, pairs *pair, size, mask int, index *uint32, n int, k *constants,
	centres *[128]logistic.Centre, standardised bool) (places uint64)

//go:noescape
func byteRatios(to *float64, text *byte, n int, index *uint32, single *[256][2]float64, pairs *pair, size, mask int,
	before *byteCounts, prior *[2]float64)

//go:noescape
func adaSums(sums *lanes, pairs *pair, size, mask int, index *uint32, n int) (seen uint64)

//go:noescape
func adaSteps(pairs *pair, size, mask int, index *uint32, n int, square, steady, length, gain float32)

//go:noescape
func roundedCounts(counts *float32, size, mask int, index *uint32, n int, ω float64, seed uint32)

func steps(table Column, index []uint32, square, length, gain float32) {
	four := len(index) &^ 3
	if four > 0 {
		adaSteps(&table.pairs[0], pairSize*table.stride, table.len()-1, &index[0], four, square, steady, length, gain)
	}
	stepsGo(table, index[four:], square, length, gain)
}

func sumWeights(sums *lanes, table Column, index []uint32) (seen uint64) {
	four := len(index) &^ 3
	if !cpu.AVX2 || four == 0 {
		return sumWeightsGo(sums, table, index)
	}
	seen = adaSums(sums, &table.pairs[0], pairSize*table.stride, table.len()-1, &index[0], four)
	return seen + sumWeightsGo(sums, table, index[four:])
}

func addCounts(table Column, spam bool, index []uint32, ω float64, seed uint32) {
	four := len(index) &^ 3
	if !cpu.AVX2 || four == 0 {
		addCountsGo(table, spam, index, ω, seed)
		return
	}
	counts := &table.pairs[0].a
	if spam {
		counts = &table.pairs[0].b
	}
	roundedCounts(counts, pairSize*table.stride, table.len()-1, &index[0], four, ω, seed)
	addCountsGo(table, spam, index[four:], ω, seed+uint32(four))
}

func (t *terms) features(sums *evidenceLanes, table Column, index []uint32) (places uint64) {
	four := len(index) &^ 3
	if !cpu.AVX2 || four == 0 {
		return t.featuresGo(sums, table, index)
	}
	var k constants
	for i, c := range [...]float64{
		0.5, t.overall, 1023, 1, 0.25, 1.0 / 3, math.Ln2, t.prior,
		t.all, leastSpread, t.both, t.spam, t.ham, mostDeviation, -mostDeviation, math.Float64frombits(1<<52 - 1),
	} {
		k[i] = [4]float64{c, c, c, c}
	}
	places = bayesTerms(sums, &table.pairs[0], pairSize*table.stride, table.len()-1, &index[0], four, &k,
		logistic.Centres(), t.standardised)
	return places + t.featuresGo(sums, table, index[four:])
}

func (e *ByteModel) ratios(to []float64, text []byte, index []uint32, before *byteCounts, prior *[2]float64) {
	two := len(text) &^ 1
	if !cpu.AVX2 || two == 0 {
		e.ratiosGo(to, text, index, before, prior)
		return
	}
	_, _ = to[len(text)-1], index[stringsPerByte*len(text)-1]
	byteRatios(&to[0], &text[0], two, &index[0], &e.single, &e.table.pairs[0], pairSize*e.table.stride,
		e.table.len()-1, before, prior)
	e.ratiosGo(to[two:], text[two:], index[stringsPerByte*two:], before, prior)
}
