package game

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Reference: Freund and Schapire 1999, corollary 4, for the gains of any matrix: the mean
// gain, the guarantee, the value and the exposure stand in order, and no further than the
// gap from the value. The oracle of the value is the exact solution.
func TestPlayMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for _, c := range []struct {
		name string
		m, n int
		draw func() float64
	}{
		{"reals", 7, 5, r.NormFloat64},
		{"large", 4, 9, func() float64 { return 1e6 + 1e3*r.NormFloat64() }},
		{"one row", 1, 4, r.NormFloat64},
		{"one column", 4, 1, r.NormFloat64},
		{"constant", 3, 3, func() float64 { return 2 }},
	} {
		a := make([][]float64, c.m)
		for i := range a {
			for range c.n {
				a[i] = append(a[i], c.draw())
			}
		}
		s, err := Solve(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		for _, rounds := range []int{1, 30, 3000} {
			p, err := PlayMatrix(t.Context(), a, rounds, 0)
			if err != nil {
				t.Fatal(err)
			}
			near := 1e-9 * (1 + math.Abs(s.Value))
			order := []float64{s.Value - p.Gap, p.Mean, p.Guarantee, s.Value, p.Exposure, s.Value + p.Gap}
			for k := 1; k < len(order); k++ {
				if !(order[k-1] <= order[k]+near) {
					t.Errorf("%s, T=%d: %v out of order at %d", c.name, rounds, order, k)
				}
			}
			if g := Guarantee(a, p.P); math.Abs(g-p.Guarantee) > near {
				t.Errorf("%s: guarantee %v, want %v", c.name, p.Guarantee, g)
			}
		}
	}
	if _, err := PlayMatrix(t.Context(), [][]float64{{math.Inf(1)}}, 1, 0); err == nil {
		t.Error("an infinite gain has no error")
	}
}

// Hedge by hand on "odd or even" (slides, 31): at first p = (½, ½) gains ½ and −½ in the
// columns, so the second is taken; then the first row's weight is e^(η·3/R)-fold, the
// other's e^(−η·4/R)-fold, with the middle gain −½ and R = 3½ taken off.
func TestPlayMatrixByHand(t *testing.T) {
	a := [][]float64{{-2, 3}, {3, -4}}
	const η = 0.3
	p, err := PlayMatrix(t.Context(), a, 2, η)
	if err != nil {
		t.Fatal(err)
	}
	up, down := math.Exp(η*(3+0.5)/3.5), math.Exp(η*(-4+0.5)/3.5)
	first := up / (up + down)
	second := -2*first + 3*(1-first) // the first column is worse now
	if 3*first-4*(1-first) < second {
		t.Fatal("the example is wrong")
	}
	for _, c := range []struct{ got, want float64 }{
		{p.P[0], (0.5 + first) / 2}, {p.Q[0], 0.5}, {p.Q[1], 0.5}, {p.Mean, (-0.5 + second) / 2},
	} {
		if math.Abs(c.got-c.want) > 1e-14 {
			t.Errorf("%+v: got %v, want %v", p, c.got, c.want)
		}
	}
}
