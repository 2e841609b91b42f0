// Laboratory: BHBoost with bins of equal width, for hamlet-lab fit and the tests.

package boost

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// NewBHBoost prepares boosting as NewQuantileBHBoost does, but with bins of equal
// width, over any data.
func NewBHBoost(d *Data, y []float64, cfg BHBoostConfig) (*BHBoost, error) {
	const defaultBins = 16
	if cfg.Bins < 0 || cfg.Bins > MaxBins {
		return newBHBoost(d, y, cfg, nil, nil, fmt.Errorf("boost: %d bins: want 1 to %d, or 0 for %d", cfg.Bins, MaxBins, defaultBins))
	}
	edges := make([][]float64, d.dim)
	columns := d.equalWidths(edges, cmp.Or(cfg.Bins, defaultBins))
	return newBHBoost(d, y, cfg, columns, edges, nil)
}

// equalWidths divides every feature into n bins of equal width and sets edges to
// their inner edges.
func (d *Data) equalWidths(edges [][]float64, n int) *binned {
	bins := make([]byte, len(d.columns))
	for j := range d.dim {
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
		for i, v := range column {
			bins[j*d.rows+i] = byte(binOf(edges[j], v))
		}
	}
	return newBinned(d.rows, bins, func(int) bool { return false })
}
