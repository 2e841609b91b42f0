//go:build !purego

package text

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// The loops of kernel_amd64.s give the bits of featuresGo, stepsGo and ratiosGo. They use SSE2, which every amd64 has. They
// mask indices, so that they read nothing beyond the table.

// constants are what bayesTerms needs, each twice: one for each half of a register.
type constants [16][2]float64

//go:noescape
func bayesTerms(rs, zs *float64, pairs *pair, size, mask int, index *uint32, n int, k *constants,
	centres *[128]logistic.Centre, standardised bool) (places uint64)

//go:noescape
func byteRatios(to *float64, text *byte, n int, index *uint32, single *[256][2]float64, pairs *pair, size, mask int,
	before *byteCounts, prior *[2]float64)

//go:noescape
func adaSteps(pairs *pair, size, mask int, index *uint32, n int, square, steady, length, gain float32)

func steps(table Column, index []uint32, square, length, gain float32) {
	four := len(index) &^ 3
	if four > 0 {
		adaSteps(&table.pairs[0], pairSize*table.stride, table.len()-1, &index[0], four, square, steady, length, gain)
	}
	stepsGo(table, index[four:], square, length, gain)
}

func (t *terms) features(rs, zs *[block]float64, table Column, index []uint32) (places uint64) {
	even := len(index) &^ 1
	if even > 0 {
		var k constants
		for i, c := range [...]float64{
			0.5, t.overall, 1023, 1, 0.25, 1.0 / 3, math.Ln2, t.prior,
			t.all, leastSpread, t.both, t.spam, t.ham, mostDeviation, -mostDeviation, math.Float64frombits(1<<52 - 1),
		} {
			k[i] = [2]float64{c, c}
		}
		places = bayesTerms(&rs[0], &zs[0], &table.pairs[0], pairSize*table.stride, table.len()-1, &index[0], even, &k,
			logistic.Centres(), t.standardised)
	}
	if even < len(index) {
		var r, z [block]float64
		places += t.featuresGo(&r, &z, table, index[even:])
		rs[even], zs[even] = r[0], z[0]
	}
	return places
}

func (e *ByteModel) ratios(to []float64, text []byte, index []uint32, before *byteCounts, prior *[2]float64) {
	_ = index[stringsPerByte*len(text)-1]
	byteRatios(&to[0], &text[0], len(text), &index[0], &e.single, &e.table.pairs[0], pairSize*e.table.stride,
		e.table.len()-1, before, prior)
}
