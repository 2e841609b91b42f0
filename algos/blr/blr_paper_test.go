package blr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// A stream of events from a logistic model: x = [1, normal…], weights of size 1.
type stream struct {
	r *rand.Rand
	w []float64
}

func newStream(seed uint64, dim int) *stream {
	s := &stream{r: rand.New(rand.NewPCG(seed, 9)), w: make([]float64, dim)}
	for j := range s.w {
		s.w[j] = s.r.NormFloat64()
	}
	return s
}

func (s *stream) next() (x []float64, y, phi float64) {
	x = make([]float64, len(s.w))
	x[0] = 1
	for j := range x[1:] {
		x[1+j] = s.r.NormFloat64()
	}
	y = -1
	if s.r.Float64() < logistic.Sigmoid(triangle.InOrder(s.w, x)) {
		y = 1
	}
	phi = 1
	if s.r.IntN(3) == 0 {
		phi = 0.02 + float64(0.98*s.r.Float64()) // the golden file depends on its bits
	}
	return x, y, phi
}

func mustNew(t testing.TB, cfg Config) *Posterior {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var sites = []Approximation{RVGA, JaakkolaJordan, ExactRVGA}

func relative(got, want float64) float64 { return math.Abs(got-want) / (1 + math.Abs(want)) }

// Reference: Drugowitsch eqs. 15, 16 and 51–54; the package doc's (1) and (2).
// After 1,000 events V is the inverse of the precision summed densely, and w the
// solution of its normal equations, to 1e−9; without any factoring on the way.
func TestPosteriorEqualsDenseRecomputation(t *testing.T) {
	for _, site := range sites {
		for _, dim := range []int{1, 2, 13, 58} {
			t.Run(fmt.Sprintf("%v/d=%d", site, dim), func(t *testing.T) {
				mean, tau := make([]float64, dim), make([]float64, dim)
				for j := range mean {
					mean[j], tau[j] = 0.1*float64(j%3), 1+float64(j%5)
				}
				p := mustNew(t, Config{Dim: dim, Mean: mean, Precision: tau, Approximation: site, Refactor: 1 << 30})
				precision, eta := mat.NewSymDense(dim, nil), mat.NewVecDense(dim, nil)
				for j := range dim {
					precision.SetSym(j, j, tau[j])
					eta.SetVec(j, tau[j]*mean[j])
				}
				s := newStream(1, dim)
				for range 1000 {
					x, y, phi := s.next()
					vx := mat.NewVecDense(dim, x)
					// The site by itself, from moments taken the dense way.
					v, w := mat.NewSymDense(dim, nil), make([]float64, dim)
					p.CovarianceTo(v)
					p.MeanTo(w)
					st := site.Solve(mat.Dot(mat.NewVecDense(dim, w), vx), mat.Inner(vx, v, vx), y, phi)
					precision.SymRankOne(precision, st.H, vx)
					eta.AddScaledVec(eta, st.Eta, vx)
					p.Update(x, y, phi)
				}
				if f := p.Factorings(); f != (Factorings{}) {
					t.Fatalf("V was re-made %+v, so this tests nothing", f)
				}
				var chol mat.Cholesky
				if !chol.Factorize(precision) {
					t.Fatal("the summed precision is not positive definite")
				}
				inverse, solution := mat.NewSymDense(dim, nil), mat.NewVecDense(dim, nil)
				if err := chol.InverseTo(inverse); err != nil {
					t.Fatal(err)
				}
				if err := chol.SolveVecTo(solution, eta); err != nil {
					t.Fatal(err)
				}
				v, w := mat.NewSymDense(dim, nil), make([]float64, dim)
				p.CovarianceTo(v)
				p.MeanTo(w)
				worst := 0.0
				for i := range dim {
					worst = max(worst, relative(w[i], solution.AtVec(i)))
					for j := range dim {
						worst = max(worst, relative(v.At(i, j), inverse.At(i, j)))
					}
				}
				t.Logf("largest difference %.2g", worst)
				if worst > 1e-9 {
					t.Errorf("largest difference of w and V from the dense recomputation %g, want at most 1e-9", worst)
				}
				// Reference: eqs. 55 and 56.
				if d := math.Abs(p.LogDetV() + chol.LogDet()); d > 1e-9 {
					t.Errorf("ln|V| tracked %v, by Cholesky %v", p.LogDetV(), -chol.LogDet())
				}
			})
		}
	}
}

// Reference: ERRATA, eqs. 53–56: η = Σ yx/2 exactly, whatever ξ is.
func TestEtaIsHalfTheSignedSum(t *testing.T) {
	const dim = 7
	p := mustNew(t, Config{Dim: dim, Approximation: JaakkolaJordan})
	want := make([]float64, dim)
	s := newStream(2, dim)
	for range 3000 {
		x, y, _ := s.next()
		p.Update(x, y, 1)
		for j := range want {
			want[j] += y / 2 * x[j]
		}
	}
	eta, lambda := make([]float64, dim), &mat.SymDense{}
	p.NaturalTo(eta, lambda)
	for j := range want {
		if eta[j] != want[j] {
			t.Errorf("η[%d] = %v, want Σ yx/2 = %v to the last bit", j, eta[j], want[j])
		}
	}
}

// Reference: eq. 60 and its increments in ERRATA (the printed ln|V₀⁻¹| has the
// wrong sign): ½wᵀV⁻¹w + ½ln|V| − (the same of the prior) + Σ φ(ln σ(ξ) − ξ/2 + λξ²).
func TestEvidenceIncrementsAreTheBound(t *testing.T) {
	const dim = 5
	mean := []float64{0.5, -1, 0, 2, 0.25}
	p := mustNew(t, Config{Dim: dim, Mean: mean, Precision: []float64{1, 2, 3, 0.5, 5}, Approximation: JaakkolaJordan})
	quadratic := func() float64 {
		eta, w := make([]float64, dim), make([]float64, dim)
		p.NaturalTo(eta, &mat.SymDense{})
		p.MeanTo(w)
		return 0.5*triangle.Dot(eta, w) + 0.5*p.LogDetV()
	}
	prior, terms := quadratic(), 0.0
	s := newStream(3, dim)
	for n := range 500 {
		x, y, phi := s.next()
		m, a := p.Moments(x)
		ξ := slowXi(m, a, y, phi)
		λ, _ := lambda(ξ)
		terms += phi * (logistic.LogSigmoid(ξ) - ξ/2 + λ*ξ*ξ)
		p.Update(x, y, phi)
		if want := quadratic() - prior + terms; relative(p.LogEvidence(), want) > 1e-10 {
			t.Fatalf("after %d events the bound by its increments is %v, whole %v", n+1, p.LogEvidence(), want)
		}
	}
}

// slowXi iterates eq. 31 as printed, until ξ does not change.
func slowXi(m, a, y, phi float64) float64 {
	ξ := 0.0
	for range 100_000 {
		λ := 0.125
		if ξ > 1e-4 {
			λ = math.Tanh(ξ/2) / (4 * ξ)
		}
		q := 1 + 2*phi*λ*a
		next := math.Sqrt(a/q + math.Pow((m+phi*y*a/2)/q, 2))
		if math.Abs(next-ξ) <= 1e-16*ξ {
			return next
		}
		ξ = next
	}
	return ξ
}

// Reference: eq. 31 and ERRATA "test ξ itself": Newton's ξ is the fixed point
// that the paper's iteration creeps up to.
func TestXiIsTheFixedPoint(t *testing.T) {
	for _, m := range []float64{-30, -4, -0.3, 0, 0.3, 4, 30} {
		for _, a := range []float64{1e-6, 0.1, 1, 10, 300} {
			for _, phi := range []float64{1, 0.5, 0.01} {
				ξ := slowXi(m, a, 1, phi)
				λ, _ := lambda(ξ)
				if got := JaakkolaJordan.Solve(m, a, 1, phi).H; relative(got, 2*phi*λ) > 1e-12 {
					t.Errorf("m=%v a=%v φ=%v: h = %v, want 2φλ(ξ) = %v at ξ = %v", m, a, phi, got, 2*phi*λ, ξ)
				}
			}
		}
	}
}

// Reference: ERRATA, λ(0): the series 1/8 − ξ²/96 joins tanh(ξ/2)/4ξ smoothly.
func TestLambdaSeries(t *testing.T) {
	if λ, dλ := lambda(0); λ != 0.125 || dλ != 0 {
		t.Errorf("λ(0), λ′(0) = %v, %v, want 1/8, 0", λ, dλ)
	}
	for _, ξ := range []float64{1e-9, 1e-3, 0.02, 0.049999, 0.050001, 0.3, 2, 40, 800} {
		λ, dλ := lambda(ξ)
		if want := math.Tanh(ξ/2) / (4 * ξ); math.Abs(λ-want) > 1e-15 {
			t.Errorf("λ(%v) = %v, want %v", ξ, λ, want)
		}
		const h = 1e-4
		up, _ := lambda(ξ + h)
		down, _ := lambda(math.Abs(ξ - h))
		if want := (up - down) / (2 * h); ξ > h && math.Abs(dλ-want) > 1e-8 {
			t.Errorf("λ′(%v) = %v, by differences %v", ξ, dλ, want)
		}
	}
}

// Reference: STYLE §3: |z| = 800 gives finite numbers, for both sites and both labels.
func TestFarOutIsDull(t *testing.T) {
	for _, site := range sites {
		for _, m := range []float64{-1e6, -800, 800, 1e6} {
			for _, a := range []float64{0, 1e-9, 1, 800, 1e9} {
				for _, y := range []float64{-1, 1} {
					st := site.Solve(m, a, y, 1)
					for _, v := range []float64{st.H, st.R, st.Eta, st.Evidence} {
						if math.IsNaN(v) || math.IsInf(v, 0) {
							t.Fatalf("%v m=%v a=%v y=%v: %+v", site, m, a, y, st)
						}
					}
					if st.H < 0 || st.H > 0.25 || st.R*y < 0 || math.Abs(st.R) > 1 {
						t.Errorf("%v m=%v a=%v y=%v: %+v, want 0 ≤ h ≤ ¼ and r towards y", site, m, a, y, st)
					}
				}
			}
		}
	}
}

// expect integrates f(z) under N(m, s²) by the trapezoidal rule, which converges
// faster than any power of the step for such integrands.
func expect(m, variance float64, f func(z float64) float64) float64 {
	const n, reach = 4000, 12.0
	s, sum := math.Sqrt(variance), 0.0
	for i := range n + 1 {
		u := -reach + 2*reach*float64(i)/n
		sum += math.Exp(-u*u/2) * f(m+s*u)
	}
	return sum * 2 * reach / n / math.Sqrt(2*math.Pi)
}

// Reference: Jaakkola & Jordan 2000; eq. 9: in one dimension the running bound
// lies below the log evidence got by quadrature, and not far below.
func TestEvidenceIsALowerBound(t *testing.T) {
	for _, phi := range []float64{1, 0.4} {
		p := mustNew(t, Config{Dim: 1, Mean: []float64{0.3}, Precision: []float64{0.25}, Approximation: JaakkolaJordan})
		r := rand.New(rand.NewPCG(5, 5))
		var xs, ys []float64
		for n := 1; n <= 60; n++ {
			x, y := 2*r.NormFloat64(), 1.0
			if r.Float64() < logistic.Sigmoid(-0.8*x) {
				y = -1
			}
			xs, ys = append(xs, x), append(ys, y)
			p.Update([]float64{x}, y, phi)
			truth := math.Log(expect(0.3, 4, func(b float64) float64 {
				sum := 0.0
				for i := range xs {
					sum += phi * logistic.LogSigmoid(ys[i]*b*xs[i])
				}
				return math.Exp(sum)
			}))
			if p.LogEvidence() > truth {
				t.Fatalf("φ=%v n=%d: bound %v above the log evidence %v", phi, n, p.LogEvidence(), truth)
			}
			if truth-p.LogEvidence() > 0.03*float64(n)+1 {
				t.Errorf("φ=%v n=%d: bound %v far below the log evidence %v", phi, n, p.LogEvidence(), truth)
			}
		}
	}
}

// Reference: Lambert, Bonnabel, Bach 2022, theorem 1: m′ = m + aφ·E[y₊−σ(z)],
// 1/s′ = 1/a + φ·E[σ(z)σ(−z)], z ~ N(m′, s′). With the expectations by
// quadrature the definition holds up to the probit approximation's error.
func TestRVGAIsItsDefinition(t *testing.T) {
	for _, m := range []float64{-6, -2, -0.5, 0, 0.5, 2, 6} {
		for _, a := range []float64{0.01, 0.3, 2, 10} {
			for _, phi := range []float64{1, 0.3} {
				st := RVGA.Solve(m, a, 1, phi)
				mean, variance := m+st.R*a, a/(1+st.H*a)
				r := phi * expect(mean, variance, func(z float64) float64 { return logistic.Sigmoid(-z) })
				h := phi * expect(mean, variance, func(z float64) float64 { return logistic.Sigmoid(z) * logistic.Sigmoid(-z) })
				// .016 is the probit's largest error in a probability, .013 in the
				// slope that h is.
				if math.Abs(st.R-r) > 0.016*phi || math.Abs(st.H-h) > 0.016*phi {
					t.Errorf("m=%v a=%v φ=%v: r, h = %.5f, %.5f; by quadrature %.5f, %.5f", m, a, phi, st.R, st.H, r, h)
				}
			}
		}
	}
}

// Reference: the same theorem, without an approximation: the stationary point
// with exact expectations, r = φ·E σ(−z), h = φ·E σ′(z) under z ~ N(m + ra,
// a/(1+ha)), for labels of both signs; and its evidence is E ln σ − KL.
func TestExactRVGAIsItsDefinition(t *testing.T) {
	worst := 0.0
	for _, m := range []float64{-40, -6, -2, -0.5, 0, 0.5, 2, 6, 40} {
		for _, a := range []float64{1e-9, 0.01, 0.3, 2, 10, 35, 60, 400} {
			for _, phi := range []float64{1, 0.3, 0.01} {
				for _, y := range []float64{-1, 1} {
					st := ExactRVGA.Solve(m, a, y, phi)
					mean, variance := m+st.R*a, a/(1+st.H*a)
					r := phi * y * expect(mean, variance, func(z float64) float64 { return logistic.Sigmoid(-y * z) })
					h := phi * expect(mean, variance, func(z float64) float64 { return logistic.Sigmoid(z) * logistic.Sigmoid(-z) })
					d := max(math.Abs(st.R-r), math.Abs(st.H-h), math.Abs(st.Eta-(st.R+st.H*mean))/(1+math.Abs(mean)))
					worst = max(worst, d)
					if !(d < 1e-12) {
						t.Errorf("m=%v a=%v φ=%v y=%v: r, h = %v, %v; by quadrature %v, %v", m, a, phi, y, st.R, st.H, r, h)
					}
					kl := 0.5 * (variance/a - 1 - math.Log(variance/a) + (mean-m)*(mean-m)/a)
					want := phi*expect(mean, variance, func(z float64) float64 { return logistic.LogSigmoid(y * z) }) - kl
					if relative(st.Evidence, want) > 1e-11 {
						t.Errorf("m=%v a=%v φ=%v y=%v: evidence %v, want %v", m, a, phi, y, st.Evidence, want)
					}
					// It is a lower bound, and the best: a Gaussian that is a little
					// off has less.
					if truth := math.Log(expect(m, a, func(z float64) float64 { return math.Pow(logistic.Sigmoid(y*z), phi) })); st.Evidence > truth+1e-12 {
						t.Errorf("m=%v a=%v φ=%v y=%v: bound %v above %v", m, a, phi, y, st.Evidence, truth)
					}
				}
			}
		}
	}
	t.Logf("largest difference %.2g", worst)
}

// h is φ/4 at most, also where quadrature rounds: Unlearn and Refresh refuse a
// record with more.
func TestExactRVGACurvatureIsAtMostAQuarter(t *testing.T) {
	for _, phi := range []float64{1, 0.3} {
		for a := 1e-15; a > 1e-26; a *= 0.99 {
			if st := ExactRVGA.Solve(0, a, 1, phi); !(st.H <= 0.25*phi) {
				t.Errorf("a=%v φ=%v: h = %v", a, phi, st.H)
			}
		}
	}
	for x := 3e-8; x > 1e-13; x *= 0.99 {
		p := mustNew(t, Config{Dim: 1, Approximation: ExactRVGA})
		rec := p.Update([]float64{x}, 1, 1)
		if _, err := p.Refresh(&rec); err != nil {
			t.Errorf("x=%v: %v", x, err)
		}
		if _, err := p.Unlearn(rec); err != nil {
			t.Errorf("x=%v: %v", x, err)
		}
	}
}

// Reference: site.go: the site is the fixed point of
// k = 1/√(1+πs′/8), p = σ(km′), h = φkp(1−p), m′ = m + aφ(y₊−p), s′ = a/(1+ah),
// met to 1e−9 over the whole range, also where the plain iteration swings.
func TestRVGAMeetsTheRecipesEquations(t *testing.T) {
	worst := 0.0
	for _, m := range []float64{-700, -40, -9, -3, -0.7, 0, 0.2, 1.5, 6, 25, 700} {
		for _, a := range []float64{0, 1e-8, 0.01, 0.4, 3, 30, 1e3, 1e6, 1e30} {
			for _, phi := range []float64{1, 0.5, 0.01} {
				for _, y := range []float64{-1, 1} {
					st := RVGA.Solve(m, a, y, phi)
					mean, s := m+st.R*a, a/(1+st.H*a)
					k := 1 / math.Sqrt(1+math.Pi*s/8)
					p := logistic.Sigmoid(k * mean)
					h := phi * k * p * (1 - p)
					// In units of log-odds: the residual of m′ moderated, and of h
					// against its scale.
					r := phi * y * logistic.Sigmoid(-y*k*mean)
					d := max(k*math.Abs(mean-(m+a*r))/(1+k*math.Abs(mean)), math.Abs(h-st.H))
					if a*math.Abs(r) > 1e9 {
						continue // a rounding error of m′ is then more than a nat
					}
					worst = max(worst, d)
					if !(d < 1e-9) {
						t.Errorf("m=%v a=%v φ=%v y=%v: residual %g of %+v (m′=%v, h→%v)", m, a, phi, y, d, st, mean, h)
					}
				}
			}
		}
	}
	t.Logf("largest residual %.2g", worst)
}

// φ → 0 leaves the belief where it is, and small φ moves it in proportion.
func TestNoTrustChangesNothing(t *testing.T) {
	for _, site := range sites {
		full, tiny := site.Solve(1.3, 2, -1, 1), site.Solve(1.3, 2, -1, 1e-12)
		if math.Abs(tiny.H) > 1e-12 || math.Abs(tiny.R) > 1e-12 || math.Abs(tiny.Evidence) > 1e-11 {
			t.Errorf("%v: at φ = 1e−12 the site is %+v, at 1 it is %+v", site, tiny, full)
		}
		a, b := site.Solve(1.3, 2, -1, 1e-6), site.Solve(1.3, 2, -1, 2e-6)
		if math.Abs(b.R/a.R-2) > 1e-5 || math.Abs(b.H/a.H-2) > 1e-5 {
			t.Errorf("%v: twice a small φ gives %+v after %+v", site, b, a)
		}
	}
}

// Reference: the bound and the likelihood are products: φ = ½ twice on the same
// event is, for JJ at a given ξ, the event once; for either site nearly so.
func TestTwoHalvesAreOneEvent(t *testing.T) {
	for _, site := range sites {
		once, twice := mustNew(t, Config{Dim: 2, Approximation: site}), mustNew(t, Config{Dim: 2, Approximation: site})
		x := []float64{1, 0.7}
		once.Update(x, 1, 1)
		twice.Update(x, 1, 0.5)
		twice.Update(x, 1, 0.5)
		m1, a1 := once.Moments(x)
		m2, a2 := twice.Moments(x)
		if math.Abs(m1-m2) > 0.02 || math.Abs(a1-a2) > 0.02 {
			t.Errorf("%v: once N(%v, %v), in halves N(%v, %v)", site, m1, a1, m2, a2)
		}
	}
}

// Reference: eqs. 53–60 with their matrices and the printed stopping rule (ξ from
// 0, until (60) changes by less than 0.001 %, at most 100 times), which
// XiTolerance: 1e−5 reproduces. It stops short of the fixed point.
func TestXiToleranceIsThePapersRule(t *testing.T) {
	const dim = 3
	prior := []float64{dim, dim, dim}
	p := mustNew(t, Config{Dim: dim, Precision: prior, Approximation: JaakkolaJordan, XiTolerance: 1e-5})
	precision, eta := mat.NewSymDense(dim, nil), mat.NewVecDense(dim, nil)
	for j := range dim {
		precision.SetSym(j, j, dim)
	}
	s := newStream(4, dim)
	short := 0
	for n := range 200 {
		x, y, _ := s.next()
		vx := mat.NewVecDense(dim, x)
		eta.AddScaledVec(eta, y/2, vx)
		ξ, last := 0.0, math.Inf(1)
		var after mat.SymDense
		for i := range 101 {
			λ := 0.125
			if ξ > 0 {
				λ = math.Tanh(ξ/2) / (4 * ξ)
			}
			after.SymRankOne(precision, 2*λ, vx)
			var chol mat.Cholesky
			var w, u mat.VecDense
			if !chol.Factorize(&after) || chol.SolveVecTo(&w, eta) != nil || chol.SolveVecTo(&u, vx) != nil {
				t.Fatal("not positive definite")
			}
			bound := 0.5*mat.Dot(&w, eta) - 0.5*chol.LogDet() + logistic.LogSigmoid(ξ) - ξ/2 + λ*ξ*ξ
			if i == 100 || math.Abs(last-bound) < 1e-5*math.Abs(bound) {
				break
			}
			last = bound
			m := mat.Dot(&w, vx)
			ξ = math.Sqrt(mat.Dot(vx, &u) + m*m)
		}
		precision.CopySym(&after)
		m, a := p.Moments(x)
		rec := p.Update(x, y, 1)
		if math.Abs(rec.Xi-ξ) > 1e-9 {
			t.Fatalf("event %d: ξ = %v, the paper's %v", n, rec.Xi, ξ)
		}
		if fixed := slowXi(m, a, y, 1); math.Abs(ξ-fixed) > 1e-4 {
			short++
		}
	}
	if short == 0 {
		t.Error("the paper's rule met the fixed point at every event, so this tests nothing")
	}
}
