package viboost

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// A Fit is a stage of variational inference run to convergence.
type Fit struct {
	// ELBO is a lower bound of the log evidence ln p(y | h, H), in nats: (91) with the
	// prior's normalisers. Trace holds it after each pass and never falls.
	ELBO  float64
	Trace []float64
	Phi   []float64  // q(wₙ = 1)
	Omega [2]float64 // q(ξ) = v-Log([1,−1], 0, ω)
	Eta   [2]float64 // q(θ) = Beta(η)
}

const (
	settled    = 1e-12   // no φ moves further
	mostPasses = 100_000 // far beyond what settled takes
)

// Infer runs one stage of the dynamic model (15), (16) to convergence: labels
// y = ±1, a base classifier's answers h = ±1 and the log-odds H so far, for each
// example. From φ = ½ every pass sets ω, η, and then φ with the exact expectation
// under q(c): coordinate ascent, by which the ELBO never falls, to a local
// maximum. It ends when no φ moves by 10⁻¹², or with ctx's error between passes.
// A pass costs one normalised v-Log: O(N) for each of some hundred nodes.
func Infer(ctx context.Context, prior Prior, y, h, before []float64) (*Fit, error) {
	errs := []error{prior.fill(), checkLabels(y)}
	if len(h) != len(y) || len(before) != len(y) {
		panic(fmt.Sprintf("viboost: %d labels, %d answers, %d log-odds", len(y), len(h), len(before)))
	}
	weight := make([]float64, len(y))
	for i := range y {
		weight[i] = 1
		if h[i] != 1 && h[i] != -1 {
			errs = append(errs, fmt.Errorf("viboost: h[%d] is %v: want +1 or -1", i, h[i]))
		}
		if !(math.Abs(before[i]) <= widest) {
			errs = append(errs, fmt.Errorf("viboost: log-odds %d are %v: want a magnitude up to %g", i, before[i], widest))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s := newStage(prior, y, weight)
	copy(s.H, h)
	copy(s.Before, before)
	s.place()
	for i := range s.Phi {
		s.Phi[i] = 0.5
	}
	fit := &Fit{}
	constant := prior.logNorm()
	for range mostPasses {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("viboost: stopped between passes: %w", context.Cause(ctx))
		}
		s.Omega, s.Eta = s.Noisy(), s.Trusted()
		s.normalise()
		fit.ELBO = s.bound() - constant
		fit.Trace = append(fit.Trace, fit.ELBO)
		if s.classify() < settled {
			fit.Phi, fit.Omega, fit.Eta = s.Phi, s.Omega, s.Eta
			return fit, nil
		}
	}
	return nil, fmt.Errorf("viboost: no convergence in %d passes", mostPasses)
}

// logNorm returns the logs of the prior's normalisers, ln B(μ₀,μ₀) + ln B(μ₀′,μ₀′)
// + ln B(ζ₁,ζ₂), which (91) leaves in its constant.
func (p *Prior) logNorm() float64 {
	return logBeta(p.Mu0, p.Mu0) + logBeta(p.Mu0Prime, p.Mu0Prime) + logBeta(p.Zeta[0], p.Zeta[1])
}

// checkLabels returns an error unless all of y are ±1 and there is one.
func checkLabels(y []float64) error {
	if len(y) == 0 {
		return errors.New("viboost: no labels: want at least one")
	}
	for i, v := range y {
		if v != 1 && v != -1 {
			return fmt.Errorf("viboost: label %d is %v: want +1 or -1", i, v)
		}
	}
	return nil
}
