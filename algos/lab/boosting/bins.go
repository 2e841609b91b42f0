package boosting

import (
	"math"
	"slices"

	"hamlet/algos/boost"
)

// EqualWidths returns the inner edges of n bins of equal width of each feature, for
// boost.NewBHBoostOver. A constant feature has all edges at its value.
func EqualWidths(d *boost.Data, n int) [][]float64 {
	edges := make([][]float64, d.Dim())
	for j := range edges {
		column := d.Column(j)
		lo, hi := slices.Min(column), slices.Max(column)
		edges[j] = make([]float64, n-1)
		for k := range edges[j] {
			at := float64(k + 1)
			edge := lo + float64((hi-lo)*at)/float64(n)
			if !(math.Abs(edge) <= math.MaxFloat64) { // hi−lo or its product overflows
				part := at / float64(n)
				edge = float64(lo*(1-part)) + float64(hi*part)
			}
			edges[j][k] = edge
		}
	}
	return edges
}

// AllStumps returns all stumps of the data, both polarities of each candidate in their
// order, and h with h[i][j] the answer of stump j to row i, ±1. That takes 16 bytes for
// each row and candidate.
func AllStumps(d *boost.Data) (h [][]float64, stumps []boost.Stump) {
	h, signs := make([][]float64, d.Rows()), make([]float64, d.Rows())
	for j := range d.Dim() {
		for cut, threshold := range d.Cuts(j) {
			stumps = append(stumps,
				boost.Stump{Feature: j, Threshold: threshold, Polarity: 1},
				boost.Stump{Feature: j, Threshold: threshold, Polarity: -1})
			d.SignsTo(signs, boost.Candidate{Feature: j, Cut: cut})
			for i, s := range signs {
				h[i] = append(h[i], s, -s)
			}
		}
	}
	return h, stumps
}
