package poeboost

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/poeboost"
	"hamlet/cmd/internal/lab/experiment"
)

// rows draws rows whose first feature decides, with some labels flipped.
func rows(seed uint64, n int) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		row := []float64{r.NormFloat64(), 5 + 3*r.NormFloat64(), r.Float64()}
		x, y = append(x, row), append(y, math.Copysign(1, row[0]+.2*(row[1]-5)+.5*r.NormFloat64()))
	}
	return x, y
}

// A run keeps every bound that the experiment looks at. A wrong P_e breaks them: the
// experiment would see a violation.
func TestBoundsHoldAndCanBreak(t *testing.T) {
	x, y := rows(1, 120)
	for _, cfg := range []poeboost.ContinuousConfig{{Rounds: 30}, {Rounds: 30, Learner: poeboost.Step}} {
		c, err := follow(t.Context(), x, y, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Constraint) != 30 || largest(c.Bound) > 2+experiment.Rounding || c.Chords > experiment.Rounding ||
			c.Fall > experiment.Rounding ||
			c.Floor < -experiment.Rounding || c.Half > .5 || c.Expert+c.Epsilon+c.Recursion > experiment.Rounding {
			t.Errorf("%+v", c)
		}
	}
	c, err := followDiscrete(t.Context(), x, y, 30)
	if err != nil {
		t.Fatal(err)
	}
	if c.Greedy+c.Discrete+c.AdaBoost+c.Epsilon > experiment.Rounding || c.Fall > experiment.Rounding ||
		len(c.Printed) == 0 {
		t.Errorf("%+v", c)
	}
	// Too sure an expert, P_e below ε: (6) is above 2 and the likelihood falls.
	weights, expert, prev := constant(4, .25), []float64{.99, .99, .99, .01}, []float64{.9, .9, .9, .9}
	if v := poeboost.Constraint(weights, expert); v <= 2 {
		t.Errorf("(6) is %v for P_e = .01 at ε = ¼", v)
	}
	var fell course
	fell.Fall = math.Inf(-1)
	fell.join(prev, expert, math.Log(.9))
	if fell.Fall <= 0 {
		t.Errorf("the likelihood rose by %v", -fell.Fall)
	}
}

// The score of log-odds by hand.
func TestScoreOf(t *testing.T) {
	x, y := [][]float64{{1}, {-2}, {0}, {3}}, []float64{1, 1, -1, -1}
	got := scoreOf(func(x []float64) float64 { return x[0] }, x, y)
	want := -(math.Log1p(math.Exp(-1)) + math.Log1p(math.Exp(2)) + math.Log(2) + math.Log1p(math.Exp(3))) / 4
	if got.Accuracy != .5 || math.Abs(got.Likelihood-want) > 1e-12 {
		t.Errorf("%+v, want accuracy .5, likelihood %v", got, want)
	}
}

// Every way of fitting beats a coin on easy rows, and the same random numbers give the
// same split to all ways.
func TestCompete(t *testing.T) {
	x, y := rows(2, 200)
	for way := range ways {
		c, err := compete(t.Context(), x, y, rand.New(rand.NewPCG(1, 1)), way)
		if err != nil {
			t.Fatal(err)
		}
		again, err := compete(t.Context(), x, y, rand.New(rand.NewPCG(1, 1)), way)
		if err != nil || again != c {
			t.Errorf("%s: %+v, then %+v, %v", wayNames[way], c, again, err)
		}
		if way != raw && (c.POE.Accuracy < .65 || c.Real.Accuracy < .65) {
			t.Errorf("%s: %+v", wayNames[way], c)
		}
	}
}
