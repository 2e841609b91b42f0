package slides

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
	"hamlet/cmd/internal/lab/experiment"
)

// rows draws rows whose first two features decide, with some labels flipped.
func rows(seed uint64, n int) split {
	r := rand.New(rand.NewPCG(seed, 1))
	var x [][]float64
	var y []float64
	for range n {
		row := []float64{r.NormFloat64(), r.NormFloat64(), r.Float64()}
		x, y = append(x, row), append(y, math.Copysign(1, row[0]-.7*row[1]+.4*r.NormFloat64()))
	}
	return divide(x, y, r)
}

// A run keeps every bound; its figures are those of the boosters' own records.
func TestDescend(t *testing.T) {
	s := rows(1, 120)
	d, err := descend(t.Context(), s, 40)
	if err != nil {
		t.Fatal(err)
	}
	if d.Above > experiment.Rounding || d.Loose > experiment.Rounding || d.Loss+d.Z+d.Alpha > experiment.Rounding ||
		len(d.Bound) != 40 {
		t.Errorf("%+v", d)
	}
	b, err := trained(t.Context(), s.x, s.y, 40)
	if err != nil {
		t.Fatal(err)
	}
	for k, o := range b.Rounds() {
		if math.Abs(o.Bound-d.Bound[k])+math.Abs(o.GammaBound-d.Gamma[k])+math.Abs(
			o.TrainError-d.Error[k]) > experiment.Rounding {
			t.Errorf("round %d: %+v; by the slides ∏Z %v, exp(−2Σγ²) %v, error %v", k, o, d.Bound[k], d.Gamma[k],
				d.Error[k])
		}
	}
}

// Shares of margins by hand, and those of a run against package boost.
func TestShares(t *testing.T) {
	m := []float64{-.5, 0, 0, .25, 1}
	for θ, want := range map[float64]float64{-1: 0, -.5: .2, -.1: .2, 0: .6, .25: .8, .9: .8, 1: 1} {
		if got := share(m, θ); got != want {
			t.Errorf("share of margins up to %v is %v, want %v", θ, got, want)
		}
	}
	s := rows(2, 80)
	v, err := spreadOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if v.Above > experiment.Rounding {
		t.Errorf("the margin bound is violated by %v", v.Above)
	}
	for k, stage := range stages {
		b, err := trained(t.Context(), s.x, s.y, stage)
		if err != nil {
			t.Fatal(err)
		}
		if want := boosting.MarginsOf(b, s.y, nil).Min(); math.Abs(v.Margins[k][0]-want) > experiment.Rounding {
			t.Errorf("least margin %s is %v, want %v", after(stage), v.Margins[k][0], want)
		}
	}
}

func TestMatch(t *testing.T) {
	s := rows(3, 40)
	m, err := matchOf(t.Context(), s.x, s.y)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(m.Edge-m.Value)+math.Abs(m.Margin-m.Value) > experiment.Rounding ||
		m.AdaEdge < m.Value-experiment.Rounding || m.AdaMargin > m.Value+experiment.Rounding {
		t.Errorf("%+v", m)
	}
	for k := range plays {
		if m.HedgeVote[k] > m.Value+experiment.Rounding || m.HedgeVote[k] < m.Value-m.Gap[k]-experiment.Rounding {
			t.Errorf("after %d rounds the margin is %v, the value %v ± %v", plays[k], m.HedgeVote[k], m.Value, m.Gap[k])
		}
	}
}

// The bounds of BHBoost hold, and a change of a score that lowers Z is seen.
func TestRace(t *testing.T) {
	s := rows(4, 150)
	v, err := raceOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if v.Twice > 1e-5 || v.Least > experiment.Rounding || v.Loss > experiment.Rounding ||
		v.Above > experiment.Rounding {
		t.Errorf("%+v", v)
	}
	for b := range boosters {
		if len(v.Test[b]) != len(raced) {
			t.Errorf("%s has test errors of %d rounds, want %d", boosterNames[b], len(v.Test[b]), len(raced))
		}
	}
	wrong := &boost.BHBoostRound{Profile: boost.Profile{Feature: 0, Edges: []float64{0}, Scores: []float64{2, -2}}}
	if fall := change(split{x: [][]float64{{-1}, {-1}, {1}, {1}}, y: []float64{-1, 1, 1, -1}},
		[]float64{.3, .2, .3, .2}, wrong); fall <= 0 {
		t.Error("a wrong score of a bin is not seen")
	}
}

func TestSlide(t *testing.T) {
	s := rows(5, 80)
	for _, w := range ways {
		v, err := slide(t.Context(), s, w.cost, w.step)
		if err != nil {
			t.Fatal(err)
		}
		if v.Rise > experiment.Rounding || v.Off+v.Inner+v.AdaBoost > experiment.Rounding || len(v.Cost) == 0 {
			t.Errorf("%s: rise %v, off %v, %v, %v", w.name, v.Rise, v.Off, v.Inner, v.AdaBoost)
		}
	}
}

func TestNotes(t *testing.T) {
	if at := leastOf(func(f float64) float64 { return (f - 1.5) * (f - 1.5) }); math.Abs(at-1.5) > 1e-6 {
		t.Errorf("the least value of (f − 1.5)² is at %v", at)
	}
	c, err := calibrated(t.Context(), rows(6, 150))
	if err != nil || c.Breach > 0 || c.Short <= 0 || c.Long <= 0 || math.Abs(c.Constant-math.Ln2) > .3 {
		t.Errorf("%+v, %v", c, err)
	}
}
