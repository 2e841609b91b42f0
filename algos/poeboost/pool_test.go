package poeboost_test

import (
	"math"
	"testing"

	"hamlet/algos/boost"
	"hamlet/algos/poeboost"
)

// pooled returns POEBoost.CS over at most so many pooled bins, trained.
func pooled(t *testing.T, x [][]float64, y []float64, bins, rounds int) *poeboost.Continuous {
	t.Helper()
	d, err := boost.Quantise(x, bins)
	if err != nil {
		t.Fatal(err)
	}
	b, err := poeboost.NewContinuous(d, y, poeboost.ContinuousConfig{Rounds: rounds, Pooled: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// With a bin for each value pooling changes the order of sums and nothing else. The
// fits end within 1e−9 of their maximum, and 20 of them are summed here, each with
// a standardised value of up to 4 and a slope of some tenths.
func TestPooledIsExactWithABinForEachValue(t *testing.T) {
	x, y := noise(21, 200, 4, 0.2)
	p := pooled(t, x, y, 0, 20)
	rows := newContinuous(t, x, y, poeboost.ContinuousConfig{Rounds: 20})
	if err := rows.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, want := make([]float64, len(x)), make([]float64, len(x))
	p.LogOddsTo(got)
	rows.LogOddsTo(want)
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-7) {
			t.Fatalf("row %d: log-odds %v, without pooling %v", i, got[i], want[i])
		}
	}
}

// However coarse the bins, the expert that joins is measured on the rows: (6) and
// the likelihood hold as without pooling. On the six public sets the likelihood
// after 20 rounds over 64 bins is within a hundredth of a nat of that of the rows.
func TestPooledGuardsTheLikelihood(t *testing.T) {
	for _, s := range sets {
		x, y := s.table.Read(t)
		rows := newContinuous(t, x, y, poeboost.ContinuousConfig{Rounds: 20})
		if err := rows.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := rows.Rounds()
		for _, bins := range []int{2, 64} {
			b := pooled(t, x, y, bins, 20)
			var constraints []float64
			var states []poeboost.State
			for _, r := range b.Rounds() {
				constraints, states = append(constraints, r.Constraint), append(states, r.State)
			}
			guarded(t, s.name, constraints, states)
			got, want := states[len(states)-1].MeanLogLikelihood, all[len(all)-1].MeanLogLikelihood
			t.Logf("%-14s %2d bins %2d rounds, mean log likelihood %.4f, of the rows %.4f", s.name, bins, len(states), got, want)
			if bins == 64 && !(math.Abs(got-want) <= 0.01) {
				t.Errorf("%s: mean log likelihood %v, want within .01 of %v", s.name, got, want)
			}
			in, f := make([]float64, len(x)), b.Ensemble()
			b.LogOddsTo(in)
			for i := range x {
				if got := f.LogOdds(x[i]); !(math.Abs(got-in[i]) <= 1e-9*(1+math.Abs(in[i]))) {
					t.Fatalf("%s, row %d: the ensemble's log-odds are %v, in training %v", s.name, i, got, in[i])
				}
			}
		}
	}
}

func TestPooledRoundAllocatesNothing(t *testing.T) {
	x, y := noise(9, 300, 6, 0.3)
	d, err := boost.Quantise(x, 16)
	if err != nil {
		t.Fatal(err)
	}
	b, err := poeboost.NewContinuous(d, y, poeboost.ContinuousConfig{Rounds: 500, Pooled: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if !b.Round() {
			t.Fatal("no more rounds")
		}
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// There is nothing to pool without bins, and a gradient step is not what is slow.
func TestPooledNeedsBinsAndNewton(t *testing.T) {
	x, y := noise(9, 30, 3, 0.3)
	q, err := boost.Quantise(x, 16)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := poeboost.NewContinuous(newData(t, x), y, poeboost.ContinuousConfig{Pooled: true}); err == nil {
		t.Error("rows in sorted order are pooled")
	}
	if _, err := poeboost.NewContinuous(q, y, poeboost.ContinuousConfig{Pooled: true, Learner: poeboost.Step}); err == nil {
		t.Error("gradient steps are pooled")
	}
}
