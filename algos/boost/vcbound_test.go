package boost

import (
	"math"
	"testing"
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
	d, err := NewData(x)
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]bool{"+++++": true, "-----": true}
	signs := make([]float64, len(x))
	for j := range d.Dim() {
		for cut := range d.Cuts(j) {
			d.SignsTo(signs, Candidate{Feature: j, Cut: cut})
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

// Every column of AllStumps holds the answers of its stump.
func TestAllStumps(t *testing.T) {
	x := [][]float64{{0, 3}, {1, 1}, {2, 0}, {1, 3}}
	d, err := NewData(x)
	if err != nil {
		t.Fatal(err)
	}
	h, stumps := d.AllStumps()
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
