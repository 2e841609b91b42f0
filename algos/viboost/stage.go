package viboost

import (
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/vlog"
)

// A stage is the model of one round: H and h are given, and q(c)·q(ξ)·q(θ)·Πq(wₙ)
// approximates the posterior of the weight c of h, the noise grade ξ, the fraction θ of
// true labels and the types w.
type stage struct {
	prior  Prior
	y      []float64 // labels ±1
	weight []float64 // sample weights
	before []float64 // H(xₙ) without h
	h      []float64 // h(xₙ), ±1

	phi   []float64  // q(wₙ = 1), the probability that the label is true
	omega [2]float64 // q(ξ) = v-Log([1,−1], 0, ω)
	eta   [2]float64 // q(θ) = Beta(η)

	density   vlog.Density // q(c): β(h), γ(H, h), μ(φ), the prior's two terms first
	posterior vlog.Distribution
	expected  []float64 // E_c of the statistics of density
}

func newStage(prior Prior, y, weight []float64) stage {
	n := len(y)
	memory := make([]float64, 4*(n+2)+3*n)
	next := func(k int) []float64 {
		v := memory[:k:k]
		memory = memory[k:]
		return v
	}
	s := stage{prior: prior, y: y, weight: weight}
	s.density = vlog.Density{Beta: next(n + 2), Gamma: next(n + 2), Mu: next(n + 2)}
	s.expected = next(n + 2)
	s.before, s.h, s.phi = next(n), next(n), next(n)
	copy(s.density.Beta, []float64{1, -1})
	copy(s.density.Mu, []float64{prior.Mu0, prior.Mu0})
	return s
}

// place writes slopes and knots for the current h and H (68).
func (s *stage) place() {
	for i, h := range s.h {
		s.density.Beta[2+i] = -s.y[i] * h
		s.density.Gamma[2+i] = -s.before[i] * h
	}
}

// count writes the multiplicities for the current φ (68), 0 for those too small for
// v-Log.
func (s *stage) count() {
	for i, p := range s.phi {
		m := p * s.weight[i]
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

// noisy returns ω for the current φ (73, 74).
func (s *stage) noisy() [2]float64 {
	ω := [2]float64{s.prior.Mu0Prime, s.prior.Mu0Prime}
	for i, p := range s.phi {
		ω[index(s.y[i])] += float64(s.weight[i] * (1 - p))
	}
	return ω
}

// index returns 0 for −1 and 1 for +1. In a loop it costs less than a branch that
// cannot be predicted.
func index(sign float64) int { return int(1+sign) / 2 }

// trusted returns η for the current φ (82, 83).
func (s *stage) trusted() [2]float64 {
	η := s.prior.Zeta
	for i, p := range s.phi {
		η[0] += float64(s.weight[i] * p)
		η[1] += float64(s.weight[i] * (1 - p))
	}
	return η
}

// odds returns the part of ln κ (79) that depends only on the label, for y = −1 and +1:
// ψ(η₁) − ψ(η₂) + ψ(ω₀) − ψ(ω₁ or ω₂).
func (s *stage) odds() [2]float64 {
	common := digamma(s.eta[0]) - digamma(s.eta[1]) + digamma(s.omega[0]+s.omega[1])
	return [2]float64{common - digamma(s.omega[0]), common - digamma(s.omega[1])}
}

// classify sets φ by (78), with the expectation under posterior, and returns how
// far the furthest φ has moved: ln κ = odds − E_c[ln(1+exp(−y(H+ch)))].
func (s *stage) classify() float64 {
	s.posterior.StatisticsTo(s.expected)
	odds := s.odds()
	moved := 0.0
	for i, y := range s.y {
		p := logistic.Sigmoid(odds[index(y)] - s.expected[2+i])
		moved = max(moved, math.Abs(p-s.phi[i]))
		s.phi[i] = p
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
	fresh := s.noisy()
	ω, η := s.omega, s.eta
	elbo := s.posterior.LogNorm() + logBeta(ω[0], ω[1]) + logBeta(η[0], η[1])
	if stale := [2]float64{ω[0] - fresh[0], ω[1] - fresh[1]}; stale != [2]float64{} {
		elbo += float64((stale[0]+stale[1])*digamma(ω[0]+ω[1])) -
			(float64(stale[0]*digamma(ω[0])) + float64(stale[1]*digamma(ω[1])))
	}
	entropy := 0.0
	for i, p := range s.phi {
		if p > 0 && p < 1 {
			h := float64(p*logistic.Log(p)) + float64((1-p)*logistic.Log1p(-p))
			entropy -= float64(s.weight[i] * h)
		}
	}
	return elbo + entropy
}
