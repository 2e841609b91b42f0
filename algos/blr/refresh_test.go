package blr

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// learnAll returns a posterior of the stream's events and their records.
func learnAll(t testing.TB, cfg Config, seed uint64, n int) (*Posterior, []Site) {
	t.Helper()
	p, s := mustNew(t, cfg), newStream(seed, cfg.Dim)
	recs := make([]Site, n)
	for i := range recs {
		recs[i] = p.Update(s.next())
	}
	return p, recs
}

// bound is (11) with its prior, ln|V₀|'s sign set right, and the sites of recs:
// the sum over events of E[ln bound] less KL(posterior‖prior).
func boundOf(p *Posterior, recs []Site) float64 {
	quad := 0.5*triangle.InOrder(p.eta, p.mean) + 0.5*p.LogDetV()
	for j, τ := range p.precision0 {
		quad += 0.5*math.Log(τ) - 0.5*τ*p.mean0[j]*p.mean0[j]
	}
	for _, r := range recs {
		λ := Lambda(r.Xi)
		quad += r.Phi * (logistic.LogSigmoid(r.Xi) - r.Xi/2 + λ*r.Xi*r.Xi)
	}
	return quad
}

// Reference: eq. 31 and DESIGN "sweeps over the window": every refresh of a
// Jaakkola–Jordan site raises the bound, and sweeps end where each ξ² is
// xᵀ(V + wwᵀ)x, the batch fit's fixed point for this prior.
func TestRefreshClimbsToTheFixedPoint(t *testing.T) {
	const dim = 6
	p, recs := learnAll(t, Config{Dim: dim, Precision: []float64{1, 2, 1, 0.5, 3, 1}, Mean: []float64{0, 1, 0, 0, -1, 0}, Approximation: JaakkolaJordan}, 80, 200)
	last := boundOf(p, recs)
	if relative(last, p.LogEvidence()) > 1e-10 {
		t.Fatalf("the bound is %v, by its increments %v", last, p.LogEvidence())
	}
	early := last
	for i := range recs {
		if _, err := p.Refresh(&recs[i]); err != nil {
			t.Fatal(err)
		}
		bound := boundOf(p, recs)
		if bound < last-1e-10 {
			t.Fatalf("refreshing site %d lowers the bound from %v to %v", i, last, bound)
		}
		last = bound
	}
	if last < early+1e-3 {
		t.Errorf("a sweep raised the bound from %v to %v only", early, last)
	}
	sweeps := 0
	for moved := 1.0; moved > 1e-13 && sweeps < 100; sweeps++ {
		var err error
		if moved, err = p.Sweep(recs); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("bound %.4f as learnt, %.4f after a sweep, %.4f after %d", early, last, boundOf(p, recs), sweeps)
	for _, r := range recs {
		m, a := p.Moments(r.X)
		if want := math.Sqrt(a + m*m); relative(r.Xi, want) > 1e-9 {
			t.Errorf("ξ = %v, want √E z² = %v", r.Xi, want)
		}
	}
	// Λ is that of the sites, and no more.
	q := mustNew(t, Config{Dim: dim, Precision: p.precision0, Mean: p.mean0})
	for _, r := range recs {
		q.precision.AddOuter(r.H, r.X)
		for j, v := range r.X {
			q.eta[j] += r.Eta * v
		}
	}
	if d := apart(p, q); d > 1e-12 {
		t.Errorf("(Λ, η) differ from the sum of the records' sites by %g", d)
	}
}

// Reference: M. Opper and C. Archambeau, The variational Gaussian approximation
// revisited, Neural Computation 2009, eqs. 10–11: where sweeps over exact R-VGA
// sites end, h = φE[σ′] and r = φ(y₊ − E σ) under the whole posterior.
func TestExactSweepsAreVariationalInference(t *testing.T) {
	const dim = 4
	p, recs := learnAll(t, Config{Dim: dim, Approximation: ExactRVGA}, 81, 80)
	for range 60 {
		moved, err := p.Sweep(recs)
		if err != nil {
			t.Fatal(err)
		}
		if moved < 1e-13 {
			break
		}
	}
	for _, r := range recs {
		m, a := p.Moments(r.X)
		h := r.Phi * expect(m, a, func(z float64) float64 { return logistic.Sigmoid(z) * logistic.Sigmoid(-z) })
		g := r.Phi * r.Y * expect(m, a, func(z float64) float64 { return logistic.Sigmoid(-r.Y * z) })
		if relative(r.H, h) > 1e-9 || relative(r.Eta, g+h*m) > 1e-9 {
			t.Errorf("site (%v, %v), want (%v, %v)", r.H, r.Eta, h, g+h*m)
		}
	}
}

// A refreshed site fades and is withdrawn like any other.
func TestRefreshThenUnlearn(t *testing.T) {
	for _, site := range sites {
		t.Run(fmt.Sprint(site), func(t *testing.T) {
			cfg := Config{Dim: 5, Approximation: site, HalfLife: 100}
			p, recs := learnAll(t, cfg, 82, 130)
			s := newStream(83, 5)
			for range 3 {
				if _, err := p.Sweep(recs); err != nil {
					t.Fatal(err)
				}
				for range 47 {
					recs = append(recs, p.Update(s.next()))
				}
			}
			for _, r := range recs {
				if _, err := p.Unlearn(r); err != nil {
					t.Fatal(err)
				}
			}
			prior := mustNew(t, cfg)
			if d := apart(p, prior); d > 1e-12 {
				t.Errorf("without all sites (Λ, η) differ by %g from the prior's", d)
			}
		})
	}
}

// A site that has been withdrawn is not refreshed: the variance along x would be
// beyond the prior's, though below what one site could not have left.
func TestRefreshRefusesAWithdrawnSite(t *testing.T) {
	for _, site := range sites {
		p := mustNew(t, Config{Dim: 2, Approximation: site})
		rec := p.Update([]float64{1, 2}, 1, 1)
		for _, x := range [][]float64{{1, 0}, {0.5, -0.25}, {0, 0.1}} {
			p.Update(x, -1, 1)
		}
		if _, err := p.Unlearn(rec); err != nil {
			t.Fatal(err)
		}
		was, before := rec, encode(t, p)
		if _, err := p.Refresh(&rec); !errors.Is(err, ErrIndefinite) {
			t.Errorf("%v: error %v", site, err)
		}
		if !bytes.Equal(encode(t, p), before) || rec.Step != was.Step {
			t.Errorf("%v: a refused refresh changed something", site)
		}
	}
}

// If a site has nearly all precision along x, to refresh it is the same as to learn
// its event last.
func TestRefreshThin(t *testing.T) {
	for _, site := range sites {
		for _, size := range []float64{1e3, 1e5} {
			p := mustNew(t, Config{Dim: 3, Approximation: site})
			p.Update([]float64{1, 0.5, 0}, 1, 1)
			want := p.Clone()
			rec := Site{X: []float64{size, -size, 2 * size}, Y: 1, Phi: 1, Step: Step{H: 0.25, Eta: 0.5}}
			p.cov.MulVec(p.u, rec.X)
			p.addSite(rec.X, rec.H, rec.Eta, triangle.InOrder(p.mean, rec.X), triangle.Dot(rec.X, p.u))
			p.remake()
			m, _ := p.Moments(rec.X)
			moved, err := p.Refresh(&rec)
			if err != nil {
				t.Fatalf("%v, size %g: %v", site, size, err)
			}
			last := want.Update(rec.X, rec.Y, rec.Phi)
			// Λ had the term 0.25·size², whose rounding error remains.
			tolerance := 1e-15 * size * size
			if math.Abs(rec.H-last.H) > tolerance*last.H || relative(rec.Eta, last.Eta) > tolerance {
				t.Errorf("%v, size %g: site (%v, %v), want (%v, %v)", site, size, rec.H, rec.Eta, last.H, last.Eta)
			}
			if now, _ := p.Moments(rec.X); relative(moved, math.Abs(now-m)) > 1e-9 {
				t.Errorf("%v, size %g: moved %v from %v to %v", site, size, moved, m, now)
			}
			if d := apart(p, want); d > tolerance {
				t.Errorf("%v, size %g: (Λ, η) differ by %g", site, size, d)
			}
			if r := residualOf(p); r > 1e-7 {
				t.Errorf("%v, size %g: max |VΛ − I| = %g", site, size, r)
			}
		}
	}
}

// Reference: ERRATA "Merging": associative and commutative to rounding, and for
// given sites the sequential posterior; the prior is counted once.
func TestMerge(t *testing.T) {
	const dim = 7
	cfg := Config{Dim: dim, Mean: []float64{1, 0, 0, -2, 0, 0, 3}, Precision: []float64{1, 2, 3, 4, 5, 6, 7}}
	var parts [4]*Posterior
	whole := mustNew(t, cfg)
	for k := range parts {
		var recs []Site
		parts[k], recs = learnAll(t, cfg, uint64(90+k), 50+30*k)
		for _, r := range recs {
			whole.precision.AddOuter(r.H, r.X)
			for j, v := range r.X {
				whole.eta[j] += r.Eta * v
			}
		}
	}
	whole.remake()
	merge := func(parts ...*Posterior) *Posterior {
		m, err := Merge(parts...)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	a, b, c, d := parts[0], parts[1], parts[2], parts[3]
	for name, m := range map[string]*Posterior{
		"abcd": merge(a, b, c, d), "dcba": merge(d, c, b, a), "(ab)(cd)": merge(merge(a, b), merge(c, d)),
		"a(b(cd))": merge(a, merge(b, merge(c, d))), "((ca)d)b": merge(merge(merge(c, a), d), b),
		"abcd and the prior": merge(a, b, c, d, mustNew(t, cfg)),
	} {
		if d := apart(m, whole); d > 1e-14 {
			t.Errorf("%s: (Λ, η) differ by %g from the sum of all sites", name, d)
		}
		if r := residualOf(m); r > 1e-12 {
			t.Errorf("%s: max |VΛ − I| = %g", name, r)
		}
		for j, w := range m.mean {
			if relative(w, whole.mean[j]) > 1e-12 {
				t.Errorf("%s: w[%d] = %v, want %v", name, j, w, whole.mean[j])
			}
		}
		if m.Updates() != 50+80+110+140 {
			t.Errorf("%s: %d updates", name, m.Updates())
		}
	}
	if d := apart(merge(a), a); d != 0 {
		t.Errorf("one part merged differs by %g", d)
	}
}

func TestMergeRefuses(t *testing.T) {
	p := mustNew(t, Config{Dim: 2})
	for name, q := range map[string]*Posterior{
		"dim":       mustNew(t, Config{Dim: 3}),
		"mean":      mustNew(t, Config{Dim: 2, Mean: []float64{0, 1}}),
		"precision": mustNew(t, Config{Dim: 2, Precision: []float64{2, 1}}),
		"site":      mustNew(t, Config{Dim: 2, Approximation: JaakkolaJordan}),
		"half-life": mustNew(t, Config{Dim: 2, HalfLife: 100}),
	} {
		if _, err := Merge(p, q); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Merge(); err == nil {
		t.Error("no error for no parts")
	}
}
