package game

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func drawBoosting(t *rapid.T) (h [][]float64, y []float64) {
	n, k := rapid.IntRange(1, 8).Draw(t, "examples"), rapid.IntRange(1, 8).Draw(t, "hypotheses")
	sign := rapid.Map(rapid.Bool(), func(b bool) float64 {
		if b {
			return 1
		}
		return -1
	})
	for range n {
		h = append(h, rapid.SliceOfN(sign, k, k).Draw(t, "predictions"))
	}
	return h, rapid.SliceOfN(sign, n, n).Draw(t, "labels")
}

// Reference: slides, pages 35–36: the smallest edge over weightings, the value
// and the largest margin over votes are the same number; and no other weighting
// or vote does better.
func TestEdgeMarginAndValueAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, y := drawBoosting(t)
		b, err := NewBoosting(t.Context(), h, y)
		if err != nil {
			t.Fatal(err)
		}
		if e, m := Edge(h, y, b.D), Margin(h, y, b.Votes); math.Abs(e-b.Value) > 1e-14 || math.Abs(m-b.Value) > 1e-14 {
			t.Errorf("edge %v, value %v, margin %v", e, b.Value, m)
		}
		r := rand.New(rand.NewPCG(1, uint64(len(h))))
		for range 20 {
			d, w := simplexPoint(r, len(h)), simplexPoint(r, len(h[0]))
			if e := Edge(h, y, d); e < b.Value-1e-14 {
				t.Errorf("weights %v have the edge %v below the value %v", d, e, b.Value)
			}
			if m := Margin(h, y, w); m > b.Value+1e-14 {
				t.Errorf("votes %v have the margin %v above the value %v", w, m, b.Value)
			}
		}
	})
}

func simplexPoint(r *rand.Rand, n int) []float64 {
	p, sum := make([]float64, n), 0.0
	for i := range p {
		p[i] = r.ExpFloat64()
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// The slides' loss is 1 where the hypothesis is right and 0 where it is wrong:
// value (1+v)/2, same strategies. ERRATA: it is min_P max_Q, the booster's loss.
func TestZeroOneLossOfTheSlides(t *testing.T) {
	h := [][]float64{{1, 1, -1}, {1, -1, 1}, {-1, 1, 1}, {1, -1, -1}}
	y := []float64{1, 1, 1, -1}
	b, err := NewBoosting(t.Context(), h, y)
	if err != nil {
		t.Fatal(err)
	}
	a := make([][]float64, len(h))
	for i, row := range h {
		for _, v := range row {
			a[i] = append(a[i], -(1+y[i]*v)/2) // a loss is a negative gain
		}
	}
	s, err := Solve(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := -s.Value, (1+b.Value)/2; math.Abs(got-want) > 1e-15 {
		t.Errorf("the 0-1 game's value is %v, want (1+v)/2 = %v", got, want)
	}
}

// Reference: Freund and Schapire 1999, corollary 4: repeated play with
// multiplicative weights comes within √(2 ln N/T) of the value from both sides.
func TestRepeatedPlay(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	h, y := make([][]float64, 30), make([]float64, 30)
	for i := range h {
		y[i] = float64(2*r.IntN(2) - 1)
		for range 25 {
			v := y[i]
			if r.IntN(5) < 2 {
				v = -v
			}
			h[i] = append(h[i], v)
		}
	}
	b, err := NewBoosting(t.Context(), h, y)
	if err != nil {
		t.Fatal(err)
	}
	for _, rounds := range []int{1, 10, 100, 1000, 10000} {
		p, err := Play(t.Context(), h, y, rounds, 0)
		if err != nil {
			t.Fatal(err)
		}
		Δ := math.Sqrt(2 * math.Log(30) / float64(rounds))
		margin, edge := Margin(h, y, p.Votes), Edge(h, y, p.D)
		t.Logf("T=%-5d  v−Δ %+.4f ≤ margin %+.4f ≤ v %+.4f ≤ edge %+.4f ≤ mean edge %+.4f ≤ v+Δ %+.4f",
			rounds, b.Value-Δ, margin, b.Value, edge, p.Value, b.Value+Δ)
		const near = 1e-12
		if !(b.Value-Δ <= margin+near && margin <= b.Value+near && b.Value <= edge+near &&
			edge <= p.Value+near && p.Value <= b.Value+Δ+near) {
			t.Errorf("T=%d: %v %v %v %v %v %v out of order", rounds, b.Value-Δ, margin, b.Value, edge, p.Value, b.Value+Δ)
		}
	}
}

func TestBadBoosting(t *testing.T) {
	for _, c := range []struct {
		h [][]float64
		y []float64
	}{
		{nil, nil}, {[][]float64{{1}}, []float64{1, 1}}, {[][]float64{{1}}, []float64{0}}, {[][]float64{{math.NaN()}}, []float64{1}},
	} {
		if _, err := NewBoosting(t.Context(), c.h, c.y); err == nil {
			t.Errorf("NewBoosting(%v, %v) has no error", c.h, c.y)
		}
		if _, err := Play(t.Context(), c.h, c.y, 1, 0); err == nil {
			t.Errorf("Play(%v, %v) has no error", c.h, c.y)
		}
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, c := range []struct {
		name  string
		m, n  int
		entry func(r *rand.Rand) float64
	}{
		{"signs/30×30", 30, 30, func(r *rand.Rand) float64 { return float64(2*r.IntN(2) - 1) }},
		{"signs/100×1000", 100, 1000, func(r *rand.Rand) float64 { return float64(2*r.IntN(2) - 1) }},
		{"reals/30×30", 30, 30, func(r *rand.Rand) float64 { return r.NormFloat64() }},
		{"reals/100×100", 100, 100, func(r *rand.Rand) float64 { return r.NormFloat64() }},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			a := make([][]float64, c.m)
			for i := range a {
				for range c.n {
					a[i] = append(a[i], c.entry(r))
				}
			}
			for b.Loop() {
				if _, err := Solve(b.Context(), a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
