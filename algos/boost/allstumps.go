// Laboratory: all stumps of a data set as a matrix, for games of boosting.

package boost

// AllStumps returns all stumps of the data, both polarities of each candidate in their
// order, and h with h[i][j] the answer of stump j to row i, ±1. That takes 16 bytes for
// each row and candidate.
func (d *Data) AllStumps() (h [][]float64, stumps []Stump) {
	h, signs := make([][]float64, d.rows), make([]float64, d.rows)
	for j := range d.dim {
		for cut, threshold := range d.Cuts(j) {
			stumps = append(stumps, Stump{j, threshold, 1}, Stump{j, threshold, -1})
			d.SignsTo(signs, Candidate{Feature: j, Cut: cut})
			for i, s := range signs {
				h[i] = append(h[i], s, -s)
			}
		}
	}
	return h, stumps
}
