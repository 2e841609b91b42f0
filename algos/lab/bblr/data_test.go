package bblr

import (
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/algotest/dataset"
)

// The four UCI sets of section 5.1.1: table 2, but for breast, which has 9
// columns (10 with the number of the patient).
var uci = []struct {
	name, file, positive string
	drop                 []int // columns that are no inputs
	n, d                 int
}{
	{"breast", "breast-cancer-wisconsin/breast-cancer-wisconsin.data", "4", []int{1}, 683, 9},
	{"heart", "heart/heart.dat", "2", nil, 270, 13},
	{"liver", "liver/bupa.data", "2", nil, 345, 6},
	{"pima", "pima/pima-indians-diabetes.data", "1", nil, 768, 8},
}

// load returns a set's complete rows and labels.
func load(t testing.TB, name string) (x [][]float64, y []float64) {
	t.Helper()
	for _, s := range uci {
		if s.name != name {
			continue
		}
		x, y = dataset.Table{File: s.file, Drop: s.drop, Positive: dataset.Is(s.positive)}.Read(t)
		if len(x) != s.n || len(x[0]) != s.d {
			t.Fatalf("%s has %d rows of %d, want %d of %d", name, len(x), len(x[0]), s.n, s.d)
		}
		return x, y
	}
	t.Fatalf("no set is called %s", name)
	return nil, nil
}

// A fold is one part of a cross validation.
type fold struct {
	x, test     [][]float64
	y, testY    []float64
	repetition  int
	foldInOrder int
}

// crossValidate yields 5 folds of each of the given number of random splits; the
// same seed makes the same ones.
func crossValidate(x [][]float64, y []float64, repetitions int) func(yield func(fold) bool) {
	return func(yield func(fold) bool) {
		for repetition := range repetitions {
			perm := rand.New(rand.NewPCG(uint64(repetition), 1)).Perm(len(x))
			for k := range 5 {
				f := fold{repetition: repetition, foldInOrder: k}
				for place, i := range perm {
					if place%5 == k {
						f.test, f.testY = append(f.test, x[i]), append(f.testY, y[i])
					} else {
						f.x, f.y = append(f.x, x[i]), append(f.y, y[i])
					}
				}
				if !yield(f) {
					return
				}
			}
		}
	}
}

// withNoise replaces a tenth of the training rows, under their labels, by points
// drawn uniformly from the bounding box of all of them.
func (f fold) withNoise() fold {
	r := rand.New(rand.NewPCG(uint64(f.repetition), uint64(2+f.foldInOrder)))
	low, high := slices.Clone(f.x[0]), slices.Clone(f.x[0])
	for _, row := range f.x {
		for j, v := range row {
			low[j], high[j] = min(low[j], v), max(high[j], v)
		}
	}
	f.x = slices.Clone(f.x)
	for _, i := range r.Perm(len(f.x))[:len(f.x)/10] {
		row := make([]float64, len(low))
		for j := range row {
			row[j] = low[j] + (high[j]-low[j])*r.Float64()
		}
		f.x[i] = row
	}
	return f
}

// errorsOn counts the test rows that label gets wrong.
func (f fold) errorsOn(label func(x []float64) float64) (wrong int) {
	for i, x := range f.test {
		if label(x) != f.testY[i] {
			wrong++
		}
	}
	return wrong
}
