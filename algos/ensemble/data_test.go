package ensemble

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// readSpambase returns the 4,601 rows in a seeded order: values as sign(v)·ln(1+|v|)
// and labels ±1.
func readSpambase(t testing.TB, seed uint64) (x [][]float64, y []float64) {
	t.Helper()
	file, err := os.Open(filepath.FromSlash("../../../shared/data/spambase/spambase.data"))
	if err != nil {
		t.Skipf("the data sets are not beside the checkout: %v", err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range rand.New(rand.NewPCG(seed, 1)).Perm(len(records)) {
		row := make([]float64, len(records[k]))
		for j, text := range records[k] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			row[j] = math.Copysign(math.Log1p(math.Abs(v)), v)
		}
		last := len(row) - 1
		label := -1.0
		if row[last] > 0 {
			label = 1
		}
		x, y = append(x, row[:last:last]), append(y, label)
	}
	return x, y
}

// spambaseWindow returns the first n rows of a shuffled spambase, with noise for
// the inputs beyond its 57, and weights of 1.
func spambaseWindow(t testing.TB, seed uint64, n, dim int) *Window {
	t.Helper()
	x, y := readSpambase(t, seed)
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
