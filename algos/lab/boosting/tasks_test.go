package boosting

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/boost"
)

// near reports whether got is within a relative or absolute tolerance of want.
func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1, math.Abs(want))
}

// A task is a data set to boost on.
type task struct {
	name    string
	x       [][]float64
	y       []float64
	weights []float64
}

// tasks are small, hard, weighted and separable ones, of few distinct values.
func tasks() []task {
	r := rand.New(rand.NewPCG(11, 12))
	var out []task
	for _, rows := range []int{5, 40, 200} {
		x := drawRows(r, rows, 6, 40)
		y := drawLabels(r, x)
		weights := make([]float64, rows)
		for i := range weights {
			weights[i] = r.Float64() * float64(r.IntN(4))
		}
		out = append(out, task{"noisy", x, y, nil}, task{"weighted", x, y, weights})
	}
	x := drawRows(r, 60, 2, 30)
	y := make([]float64, len(x))
	for i := range y {
		y[i] = math.Copysign(1, x[i][0]+x[i][1]+0.01)
	}
	return append(out, task{"separable", x, y, nil})
}

// drawRows returns rows of values on levels different numbers (0: normals).
func drawRows(r *rand.Rand, rows, dim, levels int) [][]float64 {
	x := make([][]float64, rows)
	for i := range x {
		x[i] = make([]float64, dim)
		for j := range x[i] {
			x[i][j] = r.NormFloat64()
			if levels > 0 {
				x[i][j] = math.Floor(x[i][j]*float64(levels)/8) / 3
			}
		}
	}
	return x
}

// drawLabels returns labels with a noisy linear truth.
func drawLabels(r *rand.Rand, x [][]float64) []float64 {
	y := make([]float64, len(x))
	for i, row := range x {
		z := r.NormFloat64()
		for j, v := range row {
			z += v / float64(1+j)
		}
		y[i] = math.Copysign(1, z)
	}
	return y
}

func mustData(t testing.TB, x [][]float64) *boost.Data {
	t.Helper()
	d, err := boost.NewData(x)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustTrain(t testing.TB, b interface{ Train(context.Context) error }, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
}
