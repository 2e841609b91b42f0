package viboost

import (
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/vi"
	"hamlet/algos/lab/vlog"
)

// A stage has the exact q(c) beside the approximate one.
type stage struct {
	vi.Stage
	density   vlog.Density // q(c): β(h), γ(H, h), μ(φ), the prior's two terms first
	posterior vlog.Distribution
	expected  []float64 // E_c of the statistics of density
}

func newStage(prior Prior, y, weight []float64) stage {
	k := len(y) + 2
	s := stage{Stage: vi.NewStage(y, weight), expected: make([]float64, k)}
	s.Mu0, s.Mu0Prime, s.Zeta = prior.Mu0, prior.Mu0Prime, prior.Zeta
	s.density = vlog.Density{Beta: make([]float64, k), Gamma: make([]float64, k), Mu: make([]float64, k)}
	copy(s.density.Beta, []float64{1, -1})
	copy(s.density.Mu, []float64{prior.Mu0, prior.Mu0})
	return s
}

// place writes slopes and knots for the current h and H (68).
func (s *stage) place() {
	for i, h := range s.H {
		s.density.Beta[2+i] = -s.Y[i] * h
		s.density.Gamma[2+i] = -s.Before[i] * h
	}
}

// count writes the multiplicities for the current φ (68), 0 for those too small for
// v-Log.
func (s *stage) count() {
	for i, p := range s.Phi {
		m := p * s.Weight[i]
		if m < 1/widest {
			m = 0
		}
		s.density.Mu[2+i] = m
	}
}

// normalise makes posterior the q(c) of the current φ.
func (s *stage) normalise() {
	s.count()
	if err := s.posterior.Reset(s.density); err != nil {
		panic("viboost: " + err.Error()) // the prior's terms make it proper
	}
}

// classify sets φ by (78), with the expectation under posterior, and returns how
// far the furthest φ has moved: ln κ = odds − E_c[ln(1+exp(−y(H+ch)))].
func (s *stage) classify() float64 {
	s.posterior.StatisticsTo(s.expected)
	odds := s.Odds()
	moved := 0.0
	for i, y := range s.Y {
		p := logistic.Sigmoid(odds[vi.Index(y)] - s.expected[2+i])
		moved = max(moved, math.Abs(p-s.Phi[i]))
		s.Phi[i] = p
	}
	return moved
}

// bound returns the ELBO (91) without its constant, in nats. η must be that of the
// current φ and posterior the q(c) of it. Where ω is as well, the terms in ψ cancel
// and ln B_c + ln B(ω) + ln B(η) + Σ H(φₙ) is left; for an older ω
//
//	(ω₀ − ω₀*)ψ(ω₀) − Σ (ωⱼ − ωⱼ*)ψ(ωⱼ)
//
// is added, with ω* that of the current φ.
func (s *stage) bound() float64 {
	fresh := s.Noisy()
	ω, η := s.Omega, s.Eta
	elbo := s.posterior.LogNorm() + logBeta(ω[0], ω[1]) + logBeta(η[0], η[1])
	if stale := [2]float64{ω[0] - fresh[0], ω[1] - fresh[1]}; stale != [2]float64{} {
		elbo += float64((stale[0]+stale[1])*vi.Digamma(ω[0]+ω[1])) -
			(float64(stale[0]*vi.Digamma(ω[0])) + float64(stale[1]*vi.Digamma(ω[1])))
	}
	entropy := 0.0
	for i, p := range s.Phi {
		if p > 0 && p < 1 {
			h := float64(p*logistic.Log(p)) + float64((1-p)*logistic.Log1p(-p))
			entropy -= float64(s.Weight[i] * h)
		}
	}
	return elbo + entropy
}

// logBeta returns ln B(a, b) for positive a and b, with a relative error of some
// ulp also where both are large and the three lnΓ would cancel:
// B(a, b) = B(a+1, b)·(a+b)/a up to 10 in both, then Stirling's series with
//
//	ln B = ½ ln 2π + (a−½) ln a/(a+b) + b ln b/(a+b) − ½ ln b + δ(a) + δ(b) − δ(a+b).
func logBeta(a, b float64) float64 {
	s := 0.0
	for ; a < 10; a++ {
		s += logistic.Log1p(b / a)
	}
	for ; b < 10; b++ {
		s += logistic.Log1p(a / b)
	}
	const halfLog2Pi = 0.918938533204672741780329736405617639861
	s += halfLog2Pi - logistic.Log(b)/2
	s -= float64((a - 0.5) * logistic.Log1p(b/a))
	s -= float64(b * logistic.Log1p(a/b))
	return s + ((stirling(a) + stirling(b)) - stirling(a+b))
}

// stirling returns ln Γ(x) less (x−½) ln x − x + ½ ln 2π for x ≥ 10, to 10⁻¹⁷.
func stirling(x float64) float64 {
	u := 1 / float64(x*x)
	t := 1.0 / 156
	for _, c := range [...]float64{-691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12} {
		t = c + float64(u*t)
	}
	return t / x
}
