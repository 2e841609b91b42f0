package review

import (
	"encoding"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
)

func mustNew(t *testing.T, cfg blr.Config) *blr.Posterior {
	t.Helper()
	p, err := blr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func draw(r *rand.Rand, dim int) []float64 {
	x := make([]float64, dim)
	for j := range x {
		x[j] = r.NormFloat64()
	}
	return x
}

func bytesOf(t *testing.T, a encoding.BinaryAppender) []byte {
	t.Helper()
	b, err := a.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Fall is what brute force finds: p learns x with either label, and the variances of all
// events of the region are computed again.
func TestFallIsThatOfBothLabels(t *testing.T) {
	for _, site := range []blr.Approximation{blr.RVGA, blr.JaakkolaJordan, blr.ExactRVGA} {
		for _, block := range []int{1, 16} {
			const dim = 7
			p, s := mustNew(t, blr.Config{Dim: dim, Approximation: site, Block: block}), rand.New(rand.NewPCG(3, 9))
			for range 37 {
				x := draw(s, dim)
				p.Update(x, math.Copysign(1, x[0]+x[1]-x[2]+s.NormFloat64()), 0.5+0.5*s.Float64())
			}
			r := NewRegion(dim, 20)
			var zs [][]float64
			var cs []float64
			n := 0.0
			for range 60 {
				z := draw(s, dim)
				c := Stake(p.Moments(z))
				r.Add(z, c)
				keep := math.Exp(-math.Ln2 / 20)
				for i := range cs {
					cs[i] *= keep
				}
				zs, cs, n = append(zs, z), append(cs, c), n*keep+1
			}
			doubt := func(p *blr.Posterior) (sum float64) {
				for i, z := range zs {
					_, a := p.Moments(z)
					sum += cs[i] * a / n
				}
				return sum
			}
			before := bytesOf(t, p)
			for range 20 {
				x := draw(s, dim)
				got, want := r.Fall(p, x), 0.0
				for _, y := range []float64{-1, 1} {
					after := p.Clone()
					after.Update(x, y, 1)
					want += logistic.Sigmoid(y*blr.Predictive(p.Moments(x))) * (doubt(p) - doubt(after))
				}
				if math.Abs(got-want) > 1e-9*want || !(want > 0) {
					t.Errorf("%v, block %d: expected fall %v, want %v", site, block, got, want)
				}
			}
			if string(bytesOf(t, p)) != string(before) {
				t.Errorf("%v: asking changed the posterior", site)
			}
		}
	}
}

// A label teaches nothing about inputs that the belief knows to be unrelated, and nothing
// is at stake in an empty region.
func TestFallOfUnrelatedInputs(t *testing.T) {
	p, r := mustNew(t, blr.Config{Dim: 2}), NewRegion(2, 0)
	if fall := r.Fall(p, []float64{1, 1}); fall != 0 {
		t.Errorf("an empty region: fall %v, want 0", fall)
	}
	r.Add([]float64{1, 0}, 1)
	if fall := r.Fall(p, []float64{0, 1}); fall != 0 {
		t.Errorf("unrelated inputs: fall %v, want 0", fall)
	}
	if fall := r.Fall(p, []float64{1, 0}); !(fall > 0 && fall < 1) {
		t.Errorf("the same inputs: fall %v, want some of 1", fall)
	}
	if fall := r.Fall(p, []float64{1e200, 0}); !(fall > 0 && fall <= 1) {
		t.Errorf("long inputs: fall %v, want some of 1", fall)
	}
	for name, f := range map[string]func(){
		"dim":       func() { NewRegion(0, 0) },
		"half-life": func() { NewRegion(2, 0.5) },
		"length":    func() { r.Add([]float64{1}, 1) },
		"weight":    func() { r.Add([]float64{1, 1}, math.NaN()) },
		"posterior": func() { NewRegion(3, 0).Fall(p, []float64{1, 1}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Stake is the derivative of Information where a is small, and in [0, ⅛].
func TestStake(t *testing.T) {
	for _, m := range []float64{0, 0.1, -0.7, 2, -5, 12, 40} {
		if got, want := Stake(m, 1e-6), blr.Information(m, 1e-6)/1e-6; math.Abs(got-want) > 1e-5 {
			t.Errorf("m=%v: %v, want %v", m, got, want)
		}
	}
	for _, c := range [][2]float64{{0, math.MaxFloat64}, {0, math.Inf(1)}, {math.Inf(1), 1}, {-1e300, 1e3}} {
		if s := Stake(c[0], c[1]); !(s >= 0 && s <= 0.125) {
			t.Errorf("m=%v a=%v: %v", c[0], c[1], s)
		}
	}
}
