package blr

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/internal/triangle"
)

// natural returns (Λ, η) with all numbers in one slice, and the largest of them.
func natural(p *Posterior) (all []float64, size float64) {
	all = append(slices.Clone(p.precisionNow()), p.eta...)
	for _, v := range all {
		size = max(size, math.Abs(v))
	}
	return all, size
}

// apart returns the largest difference of (Λ, η), relative to their largest number.
func apart(p, q *Posterior) float64 {
	a, size := natural(p)
	b, _ := natural(q)
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d / size
}

// residualOf returns max |VΛ − I|.
func residualOf(p *Posterior) float64 {
	v, lambda, eta := &mat.SymDense{}, &mat.SymDense{}, make([]float64, p.dim)
	p.CovarianceTo(v)
	p.NaturalTo(eta, lambda)
	var product mat.Dense
	product.Mul(v, lambda)
	worst := 0.0
	for i := range p.dim {
		for j := range p.dim {
			want := 0.0
			if i == j {
				want = 1
			}
			worst = max(worst, math.Abs(product.At(i, j)-want))
		}
	}
	return worst
}

// Learn, then unlearn, restores (Λ, η) to 1e−12 relative, in whatever order the
// events are withdrawn; V and w follow.
func TestUnlearnRestores(t *testing.T) {
	for _, site := range sites {
		for _, dim := range []int{1, 5, 58} {
			t.Run(fmt.Sprintf("%v/d=%d", site, dim), func(t *testing.T) {
				p := mustNew(t, Config{Dim: dim, Approximation: site})
				s := newStream(70, dim)
				for range 100 {
					p.Update(s.next())
				}
				before, moments := p.Clone(), make([]float64, dim)
				var recs []Site
				for range 50 {
					recs = append(recs, p.Update(s.next()))
				}
				for i := range recs {
					rec := recs[(7*i+3)%len(recs)]
					if _, err := p.Unlearn(rec); err != nil {
						t.Fatal(err)
					}
				}
				d := apart(p, before)
				t.Logf("(Λ, η) differ by %.2g", d)
				if d > 1e-12 {
					t.Errorf("(Λ, η) differ by %g relative, want at most 1e−12", d)
				}
				before.MeanTo(moments)
				for j, w := range p.mean {
					if relative(w, moments[j]) > 1e-10 {
						t.Errorf("w[%d] = %v, was %v", j, w, moments[j])
					}
				}
				if d := math.Abs(p.LogDetV() - before.LogDetV()); d > 1e-10 {
					t.Errorf("ln|V| differs by %g", d)
				}
				if r := residualOf(p); r > 1e-11 {
					t.Errorf("max |VΛ − I| = %g", r)
				}
				if p.corrections != 50 || p.Updates() != 150 {
					t.Errorf("%d corrections, %d updates", p.corrections, p.Updates())
				}
			})
		}
	}
}

// Reference: DESIGN "Forgetting" and "Rank-1 sites": a site is withdrawn as it
// stands now. What is left is the stream in which its site was never added.
func TestUnlearnWithForgetting(t *testing.T) {
	const dim = 6
	cfg := Config{Dim: dim, HalfLife: 150, Precision: []float64{1, 2, 3, 4, 5, 6}, Mean: []float64{1, 0, -1, 0, 0, 2}}
	p, s := mustNew(t, cfg), newStream(71, dim)
	gone, without := map[int]Site{}, p.Clone()
	for n := range 777 {
		x, y, phi := s.next()
		rec := p.Update(x, y, phi)
		// The same sites, but some: with forgetting where p forgets.
		if n%9 == 4 && n > 300 {
			gone[n] = rec
		} else {
			without.precision.AddOuter(rec.H, x)
			for j, v := range x {
				without.eta[j] += rec.Eta * v
			}
		}
		if (n+1)%forgetEvery == 0 {
			without.forget()
		}
	}
	for n := 300; n < 777; n++ {
		rec, ok := gone[n]
		if !ok {
			continue
		}
		receipt, err := p.Unlearn(rec)
		if err != nil {
			t.Fatal(err)
		}
		want := rec.H * math.Exp2(-50.0/150*float64(777/50-n/50))
		if relative(receipt.H, want) > 1e-12 {
			t.Errorf("event %d stood with h = %v, want %v", n, receipt.H, want)
		}
	}
	if d := apart(p, without); d > 1e-12 {
		t.Errorf("(Λ, η) differ by %g relative from those without the sites", d)
	}
}

// The receipt's KL divergence and change of ln|V|, against the matrices.
func TestReceipt(t *testing.T) {
	const dim = 5
	for _, site := range sites {
		p, s := mustNew(t, Config{Dim: dim, Approximation: site}), newStream(72, dim)
		var recs []Site
		for range 30 {
			recs = append(recs, p.Update(s.next()))
		}
		for _, rec := range recs[5:25] {
			q := p.Clone()
			receipt, err := p.Unlearn(rec)
			if err != nil {
				t.Fatal(err)
			}
			v0, v1, l1, eta := &mat.SymDense{}, &mat.SymDense{}, &mat.SymDense{}, make([]float64, dim)
			q.CovarianceTo(v0)
			p.CovarianceTo(v1)
			p.NaturalTo(eta, l1)
			var product mat.Dense
			product.Mul(l1, v0)
			d := mat.NewVecDense(dim, nil)
			for j := range dim {
				d.SetVec(j, p.mean[j]-q.mean[j])
			}
			kl := 0.5 * (mat.Trace(&product) - dim + mat.Inner(d, l1, d) + p.LogDetV() - q.LogDetV())
			if math.Abs(receipt.KL-kl) > 1e-12 || !(receipt.KL > 0) {
				t.Errorf("%v: KL %v, by matrices %v", site, receipt.KL, kl)
			}
			if receipt.LogDetV != p.LogDetV()-q.LogDetV() || !(receipt.LogDetV > 0) {
				t.Errorf("%v: change of ln|V| %v, want %v", site, receipt.LogDetV, p.LogDetV()-q.LogDetV())
			}
			if receipt.H != rec.H || receipt.Eta != rec.Eta || receipt.Xi != rec.Xi || (site == JaakkolaJordan) != (receipt.Xi > 0) {
				t.Errorf("%v: receipt %+v of %+v", site, receipt, rec)
			}
		}
	}
}

// Unlearn refuses a site that is not in the belief, and nothing changes.
func TestUnlearnRefuses(t *testing.T) {
	p, s := mustNew(t, Config{Dim: 3, HalfLife: 100}), newStream(73, 3)
	var last Site
	for range 120 {
		last = p.Update(s.next())
	}
	huge := mustNew(t, Config{Dim: 3}).Update([]float64{1e9, 1e9, -1e9}, 1, 1)
	alien := mustNew(t, Config{Dim: 3}).Update([]float64{30, -50, 20}, 1, 1)
	alien.H, huge.H = 0.2, 0.2
	future := last
	future.Fades = 3
	curved, bent, far := last, last, last
	curved.H, bent.Eta = math.NaN(), math.Inf(1)
	far.X = []float64{1, math.NaN(), 0}
	for name, c := range map[string]struct {
		rec        Site
		indefinite bool
	}{
		"huge": {huge, true}, "alien": {alien, true}, "future": {future, false}, "NaN": {curved, false}, "Inf": {bent, false}, "x": {far, false},
	} {
		before := encode(t, p)
		if _, err := p.Unlearn(c.rec); err == nil || errors.Is(err, ErrIndefinite) != c.indefinite {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := p.Refresh(&c.rec); err == nil || errors.Is(err, ErrIndefinite) != c.indefinite {
			t.Errorf("%s: refreshed, error %v", name, err)
		}
		if !bytes.Equal(encode(t, p), before) {
			t.Errorf("%s: a refused withdrawal changed the posterior", name)
		}
	}
	// The same event twice: the second time its inputs' variance would be beyond
	// the prior's.
	q := mustNew(t, Config{Dim: 3})
	rec := q.Update([]float64{1, 2, 3}, 1, 1)
	if _, err := q.Unlearn(rec); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Unlearn(rec); !errors.Is(err, ErrIndefinite) {
		t.Errorf("the second withdrawal's error is %v", err)
	}
}

// Withdrawing a site with nearly all precision along x computes V again. The test sets
// the site's curvature, because an event this far out has none.
func TestUnlearnThin(t *testing.T) {
	for _, size := range []float64{1e3, 1e5, 1e7} {
		p := mustNew(t, Config{Dim: 3})
		p.Update([]float64{1, 0.5, 0}, 1, 1)
		before := p.Clone()
		rec := Site{X: []float64{size, -size, 2 * size}, Y: 1, Phi: 1, Step: Step{H: 0.25, Eta: 0.5}}
		p.cov.MulVec(p.u, rec.X)
		p.addSite(rec.X, rec.H, rec.Eta, triangle.InOrder(p.mean, rec.X), triangle.Dot(rec.X, p.u))
		p.remake()
		receipt, err := p.Unlearn(rec)
		if err != nil {
			t.Fatalf("size %g: %v", size, err)
		}
		// Λ had the term 0.25·size², whose rounding error remains.
		tolerance := 1e-15 * size * size
		for i := range p.precision {
			if math.Abs(p.precision[i]-before.precision[i]) > tolerance {
				t.Errorf("size %g: Λ %v, was %v", size, p.precision[i], before.precision[i])
			}
		}
		if p.Factorings().Repaired == 0 || !(receipt.KL > 0) {
			t.Errorf("size %g: %+v, %+v", size, p.Factorings(), receipt)
		}
	}
}

func TestUnlearnAllocatesNothing(t *testing.T) {
	p, s := mustNew(t, Config{Dim: 13}), newStream(74, 13)
	x, y, phi := s.next()
	if n := testing.AllocsPerRun(300, func() {
		rec := p.Update(x, y, phi)
		if _, err := p.Refresh(&rec); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Unlearn(rec); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Random updates, withdrawals, refreshes and forgettings at D = 58: V stays
// right and positive. BenchmarkMillion does a million of them.
func TestRandomCorrections(t *testing.T) {
	n := 40_000
	if testing.Short() {
		n = 4000
	}
	if worst := randomWalk(t, n); worst > 1e-8 {
		t.Errorf("max |VΛ − I| = %g after random steps, want at most 1e−8", worst)
	}
}

// randomWalk takes n random steps and returns the largest max |VΛ − I| seen.
func randomWalk(t testing.TB, n int) (worst float64) {
	const dim, kept = 58, 500
	p, s := mustNew(t, Config{Dim: dim, HalfLife: 20_000}), newStream(75, dim)
	var recs []Site
	for i := range n {
		switch k := s.r.IntN(10); {
		case k < 6 || len(recs) < 10:
			recs = append(recs, p.Update(s.next()))
			if len(recs) > kept {
				recs = recs[1:]
			}
		case k < 9:
			j := s.r.IntN(len(recs))
			if _, err := p.Unlearn(recs[j]); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			recs[j] = recs[len(recs)-1]
			recs = recs[:len(recs)-1]
		default:
			if _, err := p.Refresh(&recs[s.r.IntN(len(recs))]); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		if i%(n/40) == 0 || i == n-1 {
			worst = max(worst, residualOf(p))
		}
	}
	t.Logf("%d steps: max |VΛ − I| = %.2g, %d updates, %d corrections, %+v", n, worst, p.Updates(), p.corrections, p.Factorings())
	return worst
}

// A million random updates, withdrawals, refreshes and forgettings at D = 58.
func BenchmarkMillion(b *testing.B) {
	for b.Loop() {
		if worst := randomWalk(b, 1_000_000); worst > 1e-8 {
			b.Errorf("max |VΛ − I| = %g, want at most 1e−8", worst)
		} else {
			b.ReportMetric(worst, "max|VΛ−I|")
		}
	}
}
