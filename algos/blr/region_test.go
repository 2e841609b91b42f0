package blr

import (
	"math"
	"testing"

	"hamlet/algos/internal/logistic"
)

// Fall is what brute force finds: p learns x with either label, and the variances of all
// events of the region are computed again.
func TestFallIsThatOfBothLabels(t *testing.T) {
	for _, site := range sites {
		for _, block := range []int{1, 16} {
			const dim = 7
			p, s := mustNew(t, Config{Dim: dim, Approximation: site, Block: block}), newStream(3, dim)
			for range 37 {
				x, y, phi := s.next()
				p.Update(x, y, phi)
			}
			r := NewRegion(dim, 20)
			var zs [][]float64
			var cs []float64
			n := 0.0
			for range 60 {
				z, _, _ := s.next()
				c := Stake(p.Moments(z))
				r.Add(z, c)
				keep := math.Exp(-math.Ln2 / 20)
				for i := range cs {
					cs[i] *= keep
				}
				zs, cs, n = append(zs, z), append(cs, c), n*keep+1
			}
			doubt := func(p *Posterior) (sum float64) {
				for i, z := range zs {
					_, a := p.Moments(z)
					sum += cs[i] * a / n
				}
				return sum
			}
			before := encode(t, p)
			for range 20 {
				x, _, _ := s.next()
				got, want := r.Fall(p, x), 0.0
				for _, y := range []float64{-1, 1} {
					after := p.Clone()
					after.Update(x, y, 1)
					want += logistic.Sigmoid(y*Predictive(p.Moments(x))) * (doubt(p) - doubt(after))
				}
				if math.Abs(got-want) > 1e-9*want || !(want > 0) {
					t.Errorf("%v, block %d: expected fall %v, want %v", site, block, got, want)
				}
			}
			if string(encode(t, p)) != string(before) {
				t.Errorf("%v: asking changed the posterior", site)
			}
		}
	}
}

// A label teaches nothing about inputs that the belief knows to be unrelated, and nothing
// is at stake in an empty region.
func TestFallOfUnrelatedInputs(t *testing.T) {
	p, r := mustNew(t, Config{Dim: 2}), NewRegion(2, 0)
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
