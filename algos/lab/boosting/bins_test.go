package boosting

import (
	"math"
	"slices"
	"testing"

	"hamlet/algos/boost"
)

func last(b *boost.BHBoost) boost.BHBoostRound {
	log := b.Rounds()
	return log[len(log)-1]
}

// Reference: slides, 52 with its erratum: without smoothing Z = 2·BC, and (51)
// the scores minimise Z.
func TestZIsTwiceTheBhattacharyyaCoefficient(t *testing.T) {
	for _, k := range tasks() {
		d := mustData(t, k.x)
		b, err := boost.NewBHBoostOver(d, k.y, EqualWidths(d, 7), boost.BHBoostConfig{Weights: k.weights, Rounds: 12, Smoothing: 1e-280})
		if err != nil {
			t.Fatal(err)
		}
		before := make([]float64, len(k.x))
		b.WeightsTo(before)
		for b.Round() {
			r := last(b)
			if !near(r.Z, 2*r.BC, 1e-9) {
				t.Errorf("%s: Z %v, 2·BC %v", k.name, r.Z, 2*r.BC)
			}
			if r.BC < 1e-6 {
				break // separated: smoothing alone keeps the scores finite
			}
			for j := range r.Profile.Scores {
				for _, step := range []float64{-1e-3, 1e-3} {
					p := r.Profile
					p.Scores = slices.Clone(p.Scores)
					p.Scores[j] += step
					z := 0.0
					for i, x := range k.x {
						z += before[i] * math.Exp(-k.y[i]*p.Value(x))
					}
					if z < r.Z*(1-1e-9) {
						t.Errorf("%s: Z %v falls to %v with score %d moved by %v", k.name, r.Z, z, j, step)
					}
				}
			}
			b.WeightsTo(before)
		}
	}
}

// Every feature's histogram as slide 49 has it, the least BC and the scores by
// plain sums.
func TestBHBoostIsTheAlgorithmOfTheSlides(t *testing.T) {
	for _, k := range tasks() {
		const bins = 5
		d := mustData(t, k.x)
		b, err := boost.NewBHBoostOver(d, k.y, EqualWidths(d, bins), boost.BHBoostConfig{Weights: k.weights, Rounds: 15})
		if err != nil {
			t.Fatal(err)
		}
		dist := make([]float64, len(k.x))
		e := 1 / float64(bins*len(k.x))
		for {
			b.WeightsTo(dist)
			if !b.Round() {
				break
			}
			r := last(b)
			least, feature := math.Inf(1), 0
			var p [bins][2]float64
			for j := range k.x[0] {
				lo, hi := math.Inf(1), math.Inf(-1)
				for _, x := range k.x {
					lo, hi = min(lo, x[j]), max(hi, x[j])
				}
				var q [bins][2]float64
				for i, x := range k.x {
					bin := 0
					for m := 1; m < bins; m++ {
						if x[j] >= lo+(hi-lo)*float64(m)/bins {
							bin = m
						}
					}
					q[bin][max(0, int(k.y[i]))] += dist[i]
				}
				bc := 0.0
				for _, w := range q {
					bc += math.Sqrt(w[0] * w[1])
				}
				if bc < least-1e-12 {
					least, feature, p = bc, j, q
				}
			}
			if r.Profile.Feature != feature || !near(r.BC, least, 1e-12) {
				t.Fatalf("%s: feature %d with BC %v, want %d with %v", k.name, r.Profile.Feature, r.BC, feature, least)
			}
			for m, s := range r.Profile.Scores {
				if want := math.Log((p[m][1]+e)/(p[m][0]+e)) / 2; !near(s, want, 1e-9) {
					t.Errorf("%s: score %v of bin %d, want %v", k.name, s, m, want)
				}
			}
		}
	}
}

// Every column of AllStumps holds the answers of its stump.
func TestAllStumps(t *testing.T) {
	x := [][]float64{{0, 3}, {1, 1}, {2, 0}, {1, 3}}
	d, err := boost.NewData(x)
	if err != nil {
		t.Fatal(err)
	}
	h, stumps := AllStumps(d)
	if len(stumps) != 2*d.Candidates() {
		t.Fatalf("%d stumps of %d candidates", len(stumps), d.Candidates())
	}
	for j, s := range stumps {
		for i, row := range x {
			if h[i][j] != s.Value(row) {
				t.Errorf("stump %v answers %v to row %d, the matrix has %v", s, s.Value(row), i, h[i][j])
			}
		}
	}
}
