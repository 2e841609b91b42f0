package boosting

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/boost"
)

// Reference: Vapnik and Chervonenkis 1971: P(error − trainError > ε) ≤ 4·S(2N)·e^(−Nε²/8).
// At the bound's ε the right side is δ, with S by its definition in VCBound.
func TestVCBound(t *testing.T) {
	for _, c := range []struct {
		rounds, rows, dim int
		δ                 float64
	}{{1, 100, 5, 0.05}, {10, 1000, 57, 0.01}, {500, 3000, 57, 0.05}} {
		ε := VCBound(0, c.rounds, c.rows, c.dim, c.δ)
		logS := 0.0
		for range c.rounds { // a stump, and a coordinate of the vote
			logS += math.Log(4*float64(c.rows)*float64(c.dim)) + math.Log(2*math.E*float64(c.rows)/float64(c.rounds))
		}
		logS = min(logS, 2*float64(c.rows)*math.Ln2)
		if got := math.Log(4) + logS - float64(c.rows)*ε*ε/8; math.Abs(got-math.Log(c.δ)) > 1e-9*logS {
			t.Errorf("%+v: the bound %v has the probability e^%v", c, ε, got)
		}
		if got := VCBound(0.25, c.rounds, c.rows, c.dim, c.δ); math.Abs(got-ε-0.25) > 1e-12 {
			t.Errorf("%+v: %v with a training error of ¼, %v without", c, got, ε)
		}
	}
	// It grows with T up to the number of all divisions, and no further.
	last := 0.0
	for _, rounds := range []int{1, 5, 50, 500, 5000, 50000} {
		b := VCBound(0, rounds, 200, 3, 0.05)
		if b < last {
			t.Errorf("T=%d: %v is below %v", rounds, b, last)
		}
		last = b
	}
	if want := math.Sqrt(8 * (400*math.Ln2 + math.Log(80)) / 200); math.Abs(last-want) > 1e-12 {
		t.Errorf("for many rounds %v, want %v", last, want)
	}
}

// The number of ways in which one stump divides points is at most the bound's 2ND.
func TestStumpsDivideInFewWays(t *testing.T) {
	x := [][]float64{{0, 3}, {1, 1}, {2, 0}, {3, 2}, {4, 4}}
	d, err := boost.NewData(x)
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]bool{"+++++": true, "-----": true}
	signs := make([]float64, len(x))
	for j := range d.Dim() {
		for cut := range d.Cuts(j) {
			d.SignsTo(signs, boost.Candidate{Feature: j, Cut: cut})
			up, down := "", ""
			for _, s := range signs {
				if s > 0 {
					up, down = up+"+", down+"-"
				} else {
					up, down = up+"-", down+"+"
				}
			}
			ways[up], ways[down] = true, true
		}
	}
	if len(ways) > 2*len(x)*d.Dim() {
		t.Errorf("%d divisions of %d points by %d features", len(ways), len(x), d.Dim())
	}
}

// Reference: slides, 21, and Schapire et al. 1998, theorem 5.
func TestMarginBound(t *testing.T) {
	for _, k := range tasks() {
		d := mustData(t, k.x)
		ω, total, err := d.SampleWeights(k.weights)
		if err != nil {
			t.Fatal(err)
		}
		a, err := boost.NewAdaBoost(d, k.y, boost.AdaBoostConfig{Weights: k.weights})
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, len(k.x))
		for more := true; more; more = a.Round() {
			m := MarginsOf(a, k.y, k.weights)
			m.To(values)
			log := a.Rounds()
			for θ := -1.0; θ <= 1; θ += 0.05 {
				share := 0.0
				for i, v := range values {
					if v <= θ {
						share += ω[i]
					}
					if v < -1 || v > 1 || m.Min() > v {
						t.Errorf("%s: margin %v, least %v", k.name, v, m.Min())
					}
				}
				if got := m.Share(θ); !near(got, share/total, 1e-12) || got > m.Bound(θ)*(1+1e-9) {
					t.Errorf("%s: share of margins up to %v is %v, want %v, bound %v", k.name, θ, got, share/total, m.Bound(θ))
				}
				product := 1.0
				for _, r := range log {
					product *= 2 * math.Sqrt(math.Pow(r.Epsilon, 1-θ)*math.Pow(1-r.Epsilon, 1+θ))
				}
				if a.Stopped() != boost.Separated && !near(m.Bound(θ), product, 1e-9) {
					t.Errorf("%s: bound %v at %v, the theorem's %v", k.name, m.Bound(θ), θ, product)
				}
			}
			if len(log) > 0 && m.Share(0) < log[len(log)-1].TrainError-1e-12 {
				t.Errorf("%s: %v of the margins are not positive, training error %v", k.name, m.Share(0), log[len(log)-1].TrainError)
			}
		}
	}
}

// Reference: slides, 21: the bound on the error of new examples is the share of
// small margins and a term that does not depend on the number of rounds.
func TestErrorBoundDependsOnMarginsAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	x := drawRows(r, 2000, 3, 40)
	y := make([]float64, len(x))
	for i := range y {
		y[i] = math.Copysign(1, x[i][0]+0.1)
	}
	d := mustData(t, x)
	rest := 2/0.9*math.Sqrt(2*math.Log(2*2000*3)/2000) + math.Sqrt(-math.Log(0.05)/4000)
	for _, rounds := range []int{1, 3, 30} {
		b, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: rounds})
		mustTrain(t, b, err)
		m := MarginsOf(b, y, nil)
		if got, want := m.ErrorBound(0.9, 0.05), m.Share(0.9)+rest; !near(got, want, 1e-12) {
			t.Errorf("%d rounds: bound %v, want %v", rounds, got, want)
		}
	}
	b, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{})
	mustTrain(t, b, err)
	for _, bad := range [][2]float64{{0, 0.1}, {1.1, 0.1}, {0.5, 0}, {0.5, 2}, {math.NaN(), 0.1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("ErrorBound(%v): no panic", bad)
				}
			}()
			MarginsOf(b, y, nil).ErrorBound(bad[0], bad[1])
		}()
	}
}
