package vlog

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

func mustNew(t testing.TB, d Density) *Distribution {
	t.Helper()
	p, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// near fails unless got is within tolerance of want, absolutely and in units of
// scale.
func near(t *testing.T, what string, got, want, tolerance, scale float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*scale) {
		t.Errorf("%s = %v, want %v to %g·%g (off by %g)", what, got, want, tolerance, scale, got-want)
	}
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// digamma is ψ by 200 steps of ψ(x) = ψ(x+1) − 1/x and the first terms of its
// asymptotic series; gonum's is good to 5·10⁻¹¹ only.
func digamma(x float64) float64 {
	s := 0.0
	for i := 199; i >= 0; i-- {
		s -= 1 / (x + float64(i))
	}
	x += 200
	return s + math.Log(x) - 1/(2*x) - 1/(12*x*x) + 1/(120*x*x*x*x)
}

// random makes a proper density of k terms with slopes ±beta.
func random(r *rand.Rand, k int, beta func() float64) Density {
	d := Density{}
	for i := range k {
		b := beta()
		if i == 0 {
			b = math.Abs(b)
		}
		if i == 1 {
			b = -math.Abs(b)
		}
		d.Beta = append(d.Beta, b)
		d.Gamma = append(d.Gamma, 2*r.NormFloat64())
		d.Mu = append(d.Mu, 0.1+r.ExpFloat64())
	}
	return d
}

func ordinary(r *rand.Rand) Density {
	return random(r, 2+r.IntN(8), func() float64 { return 2 * r.NormFloat64() })
}

// Reference: S.1.1, eqs. 30–32: with V ~ Beta(μ₁, μ₂), γ + ln(1/V−1)/β has the
// density v-Log(β·[1,−1], γ·1, [μ₁,μ₂]). Its normaliser is B(μ₁,μ₂)/β, its mode
// γ + ln(μ₂/μ₁)/β, its mean and variance follow from those of the Beta's logit.
// The largest has a total multiplicity of 1.5·10⁶.
func TestTwoTermsAreALogitOfABeta(t *testing.T) {
	for _, mu := range [][2]float64{{1, 1}, {0.5, 2}, {1e-3, 1}, {1e-3, 1e-3}, {3, 700}, {1e6, 5e5}, {1e6, 1}, {2.5, 1e-2}} {
		for _, at := range [][2]float64{{1, 0}, {1e-3, 5}, {250, -3}, {2, 800}} {
			β, γ := at[0], at[1]
			t.Run(fmt.Sprintf("mu=%v/slope=%v/knot=%v", mu, β, γ), func(t *testing.T) {
				p := mustNew(t, Density{Beta: []float64{β, -β}, Gamma: []float64{γ, γ}, Mu: mu[:]})
				sd := math.Sqrt(trigamma(mu[0])+trigamma(mu[1])) / β
				want := logBeta(mu[0], mu[1]) - math.Log(β)
				near(t, "log norm", p.LogNorm(), want, 1e-12, 10+math.Abs(want)+1e-2*(mu[0]+mu[1]))
				near(t, "mode", p.Mode(), γ+math.Log(mu[1]/mu[0])/β, 1e-13, sd+math.Abs(γ))
				near(t, "mean", p.Mean(), γ+(digamma(mu[1])-digamma(mu[0]))/β, 1e-13, sd+math.Abs(γ)+0.1/β)
				near(t, "variance", p.Variance(), sd*sd, 1e-9, sd*sd)
				for _, v := range []float64{1e-9, 1e-3, 0.2, 0.5, 0.8, 1 - 1e-6} {
					q := mathext.InvRegIncBeta(mu[0], mu[1], v)
					if z := γ + math.Log(1/q-1)/β; !math.IsInf(z, 0) && q > 1e-200 && q < 1-1e-6 {
						// The map falls: P(Z ≤ z) = P(V ≥ q).
						near(t, fmt.Sprintf("CDF(%v)", z), p.CDF(z), 1-mathext.RegIncBeta(mu[0], mu[1], q), 2e-8, 1)
					}
				}
			})
		}
	}
}

// Reference: Corollary S.1.2: the density is valid if and only if there are a
// positive and a negative slope with positive multiplicities.
func TestValidOnlyWithSlopesOfBothSigns(t *testing.T) {
	for _, c := range []struct {
		d  Density
		ok bool
	}{
		{Density{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1, 1}}, true},
		{Density{Beta: []float64{1, 2}, Gamma: []float64{0, 0}, Mu: []float64{1, 1}}, false},
		{Density{Beta: []float64{-1}, Gamma: []float64{0}, Mu: []float64{1}}, false},
		{Density{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1, 0}}, false},
		{Density{Beta: []float64{1, 0, -1}, Gamma: []float64{0, 0, 0}, Mu: []float64{0, 1, 1}}, false},
		{Density{Beta: []float64{1, 0, -1}, Gamma: []float64{0, 0, 0}, Mu: []float64{1, 5, 1}}, true},
		{Density{}, false},
	} {
		if _, err := New(c.d); (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrImproper) {
			t.Errorf("New(%v): error %v, want valid %v", c.d, err, c.ok)
		}
	}
}

// Reference: Lemmas S.1.3, S.1.4: ln p is concave and has one critical point, the
// maximum; here against a golden section search (S.5.1) on g.
func TestModeIsTheMaximum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		d := ordinary(r)
		mode := d.Mode()
		lo, hi := -400.0, 400.0
		for range 200 {
			a, b := lo+0.382*(hi-lo), lo+0.618*(hi-lo)
			if d.LogAt(a) < d.LogAt(b) {
				lo = a
			} else {
				hi = b
			}
		}
		// A search on values sees the maximum to √ulp at best.
		near(t, fmt.Sprintf("mode of %v", d), mode, (lo+hi)/2, 2e-6, 1+math.Abs(mode))
		for _, z := range []float64{-3, -1, -0.1, 0.1, 1, 3} {
			a, b, m := d.LogAt(mode+z), d.LogAt(mode+z+0.5), d.LogAt(mode+z+0.25)
			if m < (a+b)/2-1e-12*math.Abs(a) {
				t.Errorf("ln f of %v is not concave at %v", d, mode+z)
			}
		}
	}
}

// Reference: section 3, eqs. 3–5: given labels y with P(y|z) = σ(yθ(z−φ)), the
// posterior of z is the v-Log with the terms (−yθ, φ, 1) appended.
func TestConjugateToTheBinaryLogistic(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		prior := ordinary(r)
		post := Density{Beta: slices.Clone(prior.Beta), Gamma: slices.Clone(prior.Gamma), Mu: slices.Clone(prior.Mu)}
		likelihood := func(z float64) float64 { return 0 }
		for range 1 + r.IntN(5) {
			y, θ, φ := float64(2*r.IntN(2)-1), r.NormFloat64(), r.NormFloat64()
			before := likelihood
			likelihood = func(z float64) float64 { return before(z) - math.Log1p(math.Exp(-y*θ*(z-φ))) }
			post.Beta, post.Gamma, post.Mu = append(post.Beta, -y*θ), append(post.Gamma, φ), append(post.Mu, 1)
		}
		p, q := mustNew(t, prior), mustNew(t, post)
		evidence := q.LogNorm() - p.LogNorm()
		for _, z := range []float64{-2, 0, 0.7, 5} {
			near(t, "log posterior", q.LogPDF(z), p.LogPDF(z)+likelihood(z)-evidence, 1e-11, 10)
		}
	}
}

// Reference: S.1.2, eqs. 33–37: an exponential family with natural parameters −μ
// and statistics ln(1+exp(βₖ(z−γₖ))), whose means are the negative derivatives of
// the log normaliser.
func TestStatisticsAreDerivativesOfTheLogNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		d := ordinary(r)
		d.Mu[len(d.Mu)-1] += 0.5
		got := make([]float64, len(d.Mu))
		mustNew(t, d).StatisticsTo(got)
		for k, m := range d.Mu {
			const h = 1e-3
			at := func(m float64) float64 {
				e := Density{Beta: d.Beta, Gamma: d.Gamma, Mu: slices.Clone(d.Mu)}
				e.Mu[k] = m
				return mustNew(t, e).LogNorm()
			}
			// Central differences, extrapolated once.
			d1 := (at(m-h) - at(m+h)) / (2 * h)
			d2 := (at(m-2*h) - at(m+2*h)) / (4 * h)
			near(t, fmt.Sprintf("E[t%d] of %v", k, d), got[k], (4*d1-d2)/3, 1e-7, 1+math.Abs(got[k]))
		}
	}
}

// Reference: eq. 17 and ERRATA: with all knots equal, τ = ½ gives the mode and
// τ = 1 half of the way to it.
func TestApproximateModeAtTheKnots(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		d := random(r, 2+r.IntN(6), func() float64 { return math.Copysign(1.5, r.NormFloat64()) })
		γ := r.NormFloat64()
		for k := range d.Gamma {
			d.Gamma[k] = γ
		}
		half, ok := d.ApproxMode(0.5)
		one, _ := d.ApproxMode(1)
		if !ok {
			t.Fatal("no approximate mode for slopes of one magnitude")
		}
		near(t, "τ = ½", half, d.Mode(), 1e-12, 10)
		near(t, "τ = 1", one-γ, (d.Mode()-γ)/2, 1e-12, 10)
	}
}

// Reference: eq. 70, by its two sums, for any τ; and none for slopes of different
// magnitude.
func TestApproximateModeIsItsFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		d := random(r, 2+r.IntN(6), func() float64 { return math.Copysign(0.8, r.NormFloat64()) })
		for _, τ := range []float64{0.1, 0.5, 1, 3} {
			var falls, rises float64
			for k, b := range d.Beta {
				if b < 0 {
					falls += d.Mu[k] * math.Exp(+τ*0.8*d.Gamma[k])
				} else {
					rises += d.Mu[k] * math.Exp(-τ*0.8*d.Gamma[k])
				}
			}
			got, ok := d.ApproxMode(τ)
			if !ok {
				t.Fatal("no approximate mode")
			}
			near(t, fmt.Sprintf("approximate mode, τ = %v", τ), got, math.Log(falls/rises)/(2*τ*0.8), 1e-13, 10)
		}
		d.Beta[0] *= 2
		if _, ok := d.ApproxMode(1); ok {
			t.Error("an approximate mode for slopes of different magnitudes")
		}
	}
	far := Density{Beta: []float64{1, -1, 1, -1}, Gamma: []float64{800, -800, 790, -801}, Mu: []float64{1, 1, 2, 2}}
	got, _ := far.ApproxMode(1)
	near(t, "approximate mode with knots at ±800", got,
		(math.Log(math.Exp(0)+2*math.Exp(-1))-math.Log(math.Exp(0)+2*math.Exp(10)))/2, 1e-12, 800)
}

// Reference: S.5.1 and ERRATA to eq. 97: the normaliser needs a scale and short
// panels. The wanted values were computed by mpmath 1.3.0 with 40 digits:
//
//	m=findroot(dg, guess); B=quad(lambda z: exp(g(m)-g(z)), panels of ½ sd or 1/max|β|)
//	log norm = log(B)-g(m), mean and variance by the same rule
func TestNormaliserFarFromUnitScale(t *testing.T) {
	for _, c := range farCases {
		t.Run(c.name, func(t *testing.T) {
			p := mustNew(t, c.d)
			near(t, "log norm", p.LogNorm(), c.logNorm, 2e-15, 100+math.Abs(c.logNorm))
			near(t, "mode", p.Mode(), c.mode, 1e-13, math.Sqrt(c.variance)+math.Abs(c.mode))
			near(t, "mean", p.Mean(), c.mean, 1e-13, math.Sqrt(c.variance)+math.Abs(c.mean))
			near(t, "variance", p.Variance(), c.variance, 1e-11, c.variance)
		})
	}
}

// Reference: section 3 (sampling is what algorithm 2 needs) against the CDF:
// Kolmogorov–Smirnov with 20,000 draws, level 0.001: √n·D ≤ 1.9495.
func TestDrawsFollowTheCDF(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	cases := []Density{
		{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1, 1}},
		{Beta: []float64{1, -1}, Gamma: []float64{800, -800}, Mu: []float64{1, 1}},
		{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1e6, 3e5}},
		{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1e-3, 2}},
		{Beta: []float64{1000, -0.01}, Gamma: []float64{3, 0}, Mu: []float64{1, 1}},
	}
	for range 5 {
		cases = append(cases, ordinary(r))
	}
	for i, d := range cases {
		p := mustNew(t, d)
		s, err := NewSampler(d)
		if err != nil {
			t.Fatal(err)
		}
		const n = 20000
		src := rand.NewPCG(13, uint64(i))
		u := make([]float64, n)
		for j := range u {
			u[j] = p.CDF(s.Draw(src))
		}
		slices.Sort(u)
		worst := 0.0
		for j, v := range u {
			worst = max(worst, v-float64(j)/n, float64(j+1)/n-v)
		}
		t.Logf("√n·D = %.3f", worst*math.Sqrt(n))
		if worst*math.Sqrt(n) > 1.9495 {
			t.Errorf("√n·D = %v for %v, above the level of 0.001", worst*math.Sqrt(n), d)
		}
	}
}
