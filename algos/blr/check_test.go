package blr

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// walked returns a posterior after events, withdrawals and refreshes.
func walked(t testing.TB, cfg Config, seed uint64) *Posterior {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 8))
	var recs []Site
	for i := range 700 {
		x := make([]float64, cfg.Dim)
		for j := range x {
			x[j] = 10 * r.NormFloat64()
		}
		x[0], x[1] = 1, x[2] // two equal columns
		y := 1.0
		if x[3]+r.NormFloat64() < 0 {
			y = -1
		}
		recs = append(recs, p.Update(x, y, 0.1+0.9*r.Float64()))
		switch k := r.IntN(len(recs)); i % 5 {
		case 1:
			_, err = p.Refresh(&recs[k])
		case 3:
			_, err = p.Unlearn(recs[k])
			recs = append(recs[:k], recs[k+1:]...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestCheckPassesWhatWasLearnt(t *testing.T) {
	for i, cfg := range []Config{
		{Dim: 6}, {Dim: 33, Approximation: JaakkolaJordan}, {Dim: 6, HalfLife: 1}, {Dim: 9, HalfLife: 300, Block: 8},
		{Dim: 7, Precision: []float64{10, 1, .1, 1e-3, 1, 1, 1e4}},
	} {
		if err := walked(t, cfg, uint64(i)).Check(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	fresh, err := New(Config{Dim: 3, Mean: []float64{1, -2, 0}, Precision: []float64{10, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Check(); err != nil {
		t.Errorf("before any event: %v", err)
	}
}

// Check compares each part with the others: it sees a change of a hundredth.
func TestCheckRefusesContradictions(t *testing.T) {
	const n = 6
	good := walked(t, Config{Dim: n}, 1)
	at := func(i, j int) int { return i*n - i*(i-1)/2 + j - i }
	for name, change := range map[string]func(p *Posterior){
		"a precision below the prior's": func(p *Posterior) { p.precision[at(3, 3)] = .9 },
		"an infinite precision":         func(p *Posterior) { p.precision[at(3, 3)] = 1e300 },
		"a variance beyond the prior's": func(p *Posterior) { p.cov[at(3, 3)] = 1.01 },
		"a variance below 0":            func(p *Posterior) { p.cov[at(3, 3)] = -1e-3 },
		"huge precisions beside it":     func(p *Posterior) { p.precision[at(0, 3)] = 1e308 },
		"huge covariances":              func(p *Posterior) { p.cov[at(0, 3)] = -1e308 },
		"another precision beside it": func(p *Posterior) {
			p.precision[at(3, 4)] += .01 * math.Sqrt(p.precision[at(3, 3)]*p.precision[at(4, 4)])
		},
		"another covariance":             func(p *Posterior) { p.cov[at(3, 4)] += .01 * math.Sqrt(p.cov[at(3, 3)]*p.cov[at(4, 4)]) },
		"another weight":                 func(p *Posterior) { p.mean[4] += 1 },
		"a huge weight":                  func(p *Posterior) { p.mean[4] = 1e308 },
		"another η":                      func(p *Posterior) { p.eta[5] += .1 * p.precision[at(5, 5)] },
		"a huge η":                       func(p *Posterior) { p.eta[5] = 1.7e308 },
		"a determinant beyond the prior": func(p *Posterior) { p.logDetV = 1.1 },
		"a determinant of nothing":       func(p *Posterior) { p.logDetV = -1e9 },
	} {
		p := good.Clone()
		change(p)
		if err := p.Check(); !errors.Is(err, ErrFormat) || !strings.HasPrefix(err.Error(), "check a posterior of 6 inputs: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

// No site shifts η by more than 1.5φ along x, so that a record with more was made by
// nobody: withdrawn, it would leave weights of that size.
func TestShiftsAreBounded(t *testing.T) {
	for _, site := range []Approximation{RVGA, JaakkolaJordan, ExactRVGA} {
		for _, m := range []float64{0, .3, 1, 3, 10, 100, 1e4, 1e12} {
			for _, a := range []float64{0, 1e-6, .1, 1, 10, 1e3, 1e6, 1e12} {
				for _, phi := range []float64{1e-6, .5, 1} {
					for _, y := range []float64{1, -1} {
						if st := site.Solve(m, a, y, phi); !(math.Abs(st.Eta) <= 1.5*phi) {
							t.Errorf("%v at m %v, a %v, y %v, φ %v: shift %v", site, m, a, y, phi, st.Eta)
						}
					}
				}
			}
		}
	}
	p := walked(t, Config{Dim: 4}, 3)
	rec := p.Clone().Update([]float64{1, 2, 2, 3}, 1, 1)
	rec.Eta = 1e30
	if _, err := p.Unlearn(rec); err == nil {
		t.Error("a record with a shift of 1e30 was withdrawn")
	}
}

// BenchmarkCheck is what a checkpoint's head costs to check, for each entry of V.
func BenchmarkCheck(b *testing.B) {
	for _, dim := range []int{60, 500} {
		p := walked(b, Config{Dim: dim}, 1)
		b.Run(fmt.Sprintf("d=%d", dim), func(b *testing.B) {
			for b.Loop() {
				if err := p.Check(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
