package ensemble

import (
	"math/rand/v2"
	"testing"

	"hamlet/algos/algotest/dataset"
)

// spambaseWindow returns the first n rows of a shuffled spambase, with noise for
// the inputs beyond its 57, and weights of 1.
func spambaseWindow(t testing.TB, seed uint64, n, dim int) *Window {
	t.Helper()
	x, y := dataset.ShuffledSpambase(t, seed)
	r := rand.New(rand.NewPCG(seed, 2))
	w := &Window{Dim: dim, Labels: y[:n]}
	for _, row := range x[:n] {
		for j := range dim {
			v := r.NormFloat64()
			if j < len(row) {
				v = row[j]
			}
			w.Inputs = append(w.Inputs, float32(v))
		}
		w.Weights = append(w.Weights, 1)
	}
	return w
}
