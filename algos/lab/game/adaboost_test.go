package game_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
	"hamlet/algos/lab/game"
)

// rowsOf returns the first n rows of a public set, whose last column is the label.
func rowsOf(t *testing.T, name, positive string, n int) (x [][]float64, y []float64) {
	t.Helper()
	x, y = dataset.Table{File: name, Positive: dataset.Is(positive)}.Read(t)
	return x[:n], y[:n]
}

// Reference: slides, pages 21 and 35–36. In every round of AdaBoost the edge 1 − 2ε
// of its best stump is at least the value of the game of all stumps, and the least
// margin of its vote at most the value. On the game's own weights the search of
// package boost finds an edge of exactly the value; the game's vote has it for its
// least margin. Boosting with small equal steps comes within its bound of both.
func TestEdgeOfAdaBoostsBestStump(t *testing.T) {
	for _, c := range []struct {
		name string
		data func(t *testing.T) ([][]float64, []float64)
	}{
		{"normals", func(*testing.T) (x [][]float64, y []float64) {
			r := rand.New(rand.NewPCG(3, 4))
			for range 40 {
				row := []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
				x, y = append(x, row), append(y, math.Copysign(1, row[0]*row[1]+row[2]))
			}
			return x, y
		}},
		{"ionosphere", func(t *testing.T) ([][]float64, []float64) {
			return rowsOf(t, "ionosphere/ionosphere.data", "g", 80)
		}},
		{"pima", func(t *testing.T) ([][]float64, []float64) {
			return rowsOf(t, "pima/pima-indians-diabetes.data", "1", 60)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y := c.data(t)
			d, err := boost.NewData(x)
			if err != nil {
				t.Fatal(err)
			}
			h, _ := boosting.AllStumps(d)
			b, err := game.NewBoosting(t.Context(), h, y)
			if err != nil {
				t.Fatal(err)
			}
			v := b.Value

			// The game's strategies, measured by the boosters' own tools.
			signed := make([]int64, d.Rows())
			unit := boost.Fix(signed, b.D, y)
			best, ok := d.NewSearch().Best(signed)
			if edge := math.Abs(float64(best.Edge) * unit); !ok || math.Abs(edge-v) > 1e-12 {
				t.Errorf("the best stump on the hardest weights has the edge %v, the value is %v", edge, v)
			}
			if m := game.Margin(h, y, b.Votes); math.Abs(m-v) > 1e-12 {
				t.Errorf("the best vote has the least margin %v, the value is %v", m, v)
			}

			ada, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: 3000})
			if err != nil {
				t.Fatal(err)
			}
			if err := ada.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			least := 1.0
			for j, r := range ada.Rounds() {
				edge := 1 - 2*r.Epsilon
				least = min(least, edge)
				if edge < v-1e-12 {
					t.Errorf("round %d: the best stump has the edge %v below the value %v", j, edge, v)
				}
			}
			margin := boosting.MarginsOf(ada, y, nil).Min()
			if margin > v+1e-12 {
				t.Errorf("the least margin %v is above the value %v", margin, v)
			}
			// Rätsch and Warmuth 2005: the margin comes near a bound that is above v/2.
			if margin < v/2 {
				t.Errorf("the least margin %v after %d rounds, want more than half the value %v", margin, len(ada.Rounds()), v)
			}

			const rounds = 2000
			p, err := game.Play(t.Context(), h, y, rounds, 0)
			if err != nil {
				t.Fatal(err)
			}
			Δ := math.Sqrt(2 * math.Log(float64(len(y))) / rounds)
			edge, played := game.Edge(h, y, p.D), game.Margin(h, y, p.Votes)
			if edge > v+Δ || played < v-Δ {
				t.Errorf("repeated play: edge %v, margin %v, more than %v from the value %v", edge, played, Δ, v)
			}
			t.Logf("%d stumps on %d rows, value %.5f; AdaBoost: least edge %.5f, least margin %.5f; repeated play: edge %.5f, margin %.5f",
				len(h[0]), len(y), v, least, margin, edge, played)
		})
	}
}
