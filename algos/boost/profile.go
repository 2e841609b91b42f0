package boost

// A Profile is a weak hypothesis over bins of one feature: h(x) = Scores[k], where
// k is the number of edges ≤ x_feature. A NaN falls into the first bin.
type Profile struct {
	Feature int
	Edges   []float64 // inner edges, not descending
	Scores  []float64 // one more than edges
}

// Value returns h(x).
func (p *Profile) Value(x []float64) float64 { return p.Scores[binOf(p.Edges, x[p.Feature])] }

// binOf returns how many edges are ≤ v.
func binOf(edges []float64, v float64) int {
	lo, hi := 0, len(edges)
	for lo < hi {
		mid := (lo + hi) / 2
		if v >= edges[mid] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
