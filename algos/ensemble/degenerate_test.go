package ensemble

import (
	"math"
	"testing"

	"hamlet/algos/boost"
)

// Windows at the edges of what a stream can bring make an ensemble whose answers
// are numbers, or an error; and never a panic.
func TestDegenerateWindows(t *testing.T) {
	const huge, tiny = math.MaxFloat32, math.SmallestNonzeroFloat32
	repeat := func(n int, rows ...[]float32) *Window {
		w := &Window{Dim: len(rows[0]) - 1}
		for range n {
			for _, r := range rows {
				last := len(r) - 1
				w.Inputs = append(w.Inputs, r[:last]...)
				w.Labels, w.Weights = append(w.Labels, float64(r[last])), append(w.Weights, 1)
			}
		}
		return w
	}
	weighted := func(w *Window, ω ...float64) *Window {
		for i := range w.Weights {
			w.Weights[i] = ω[i%len(ω)]
		}
		return w
	}
	for _, c := range []struct {
		name string
		w    *Window
	}{
		{"two rows", repeat(1, []float32{1, 2, 1}, []float32{2, 1, -1})},
		{"one of the other class", func() *Window {
			w := repeat(50, []float32{1, 2, -1}, []float32{2, 1, -1})
			w.Labels[3] = 1
			return w
		}()},
		{"separated", repeat(30, []float32{1, 0, 1}, []float32{-1, 0, -1})},
		{"separated by the ends of float32", repeat(30, []float32{huge, tiny, 1}, []float32{-huge, 0, -1})},
		{"an outlier", repeat(30, []float32{1, 0, 1}, []float32{2, 0, -1}, []float32{3, huge, 1})},
		{"equal rows with both labels", repeat(30, []float32{1, 2, 1}, []float32{1, 2, -1}, []float32{3, 4, 1}, []float32{3, 4, -1})},
		{"equal columns", repeat(30, []float32{1, 1, 1, 1}, []float32{2, 2, 2, -1}, []float32{3, 3, 3, 1})},
		{"subnormal inputs", repeat(30, []float32{tiny, 1}, []float32{2 * tiny, -1}, []float32{3 * tiny, 1})},
		{"weights near 0", weighted(repeat(30, []float32{1, 1}, []float32{2, -1}, []float32{3, 1}), 1e-12)},
		{"weights that underflow", weighted(repeat(30, []float32{1, 1}, []float32{2, -1}), 5e-324)},
		{"large weights", weighted(repeat(30, []float32{1, 1}, []float32{2, -1}), MaxWeight)},
		{"weights far apart", weighted(repeat(30, []float32{1, 1}, []float32{2, -1}, []float32{3, 1}), 1, 1e-12, 1e5)},
		{"one class in earnest", weighted(repeat(30, []float32{1, 1}, []float32{2, -1}, []float32{3, 1}), 1e-300, 1, 1e-300)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, r := range Build(t.Context(), Kinds(), c.w) {
				if (r.Err == nil) == (r.Ensemble == nil) {
					t.Errorf("%s: %v and the error %v", Kinds()[i], r.Ensemble, r.Err)
				}
				if r.Err != nil {
					t.Log(r.Err)
					continue
				}
				x := make([]float64, c.w.Dim)
				for _, v := range []float64{0, 1, 2.5, -1e30, huge, math.MaxFloat64} {
					for j := range x {
						x[j] = v
					}
					if z := r.Ensemble.LogOdds(x); !(math.Abs(z) <= math.MaxFloat64) {
						t.Errorf("%s: log-odds %v of %v", Kinds()[i], z, x)
					}
				}
				if err := new(Ensemble).UnmarshalBinary(encode(t, r.Ensemble)); err != nil {
					t.Errorf("%s: what was written is not read: %v", Kinds()[i], err)
				}
			}
		})
	}
}

// A young stream's ensemble has a round for every ten of its rows.
func TestRoundsOfYoungStreams(t *testing.T) {
	for _, c := range []struct{ rows, rounds int }{{2, 1}, {50, 5}, {499, 49}, {1000, 100}, {2000, 100}} {
		w := drawWithoutTies(15, c.rows, 3)
		w.Labels[0], w.Labels[1] = 1, -1
		r := Build(t.Context(), []Kind{LogitTrees}, w)[0]
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if got := r.Ensemble.function.(*boost.Ensemble).Len(); got != c.rounds {
			t.Errorf("%d rows: %d rounds, want %d", c.rows, got, c.rounds)
		}
	}
}
