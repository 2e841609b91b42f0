package bblr

import "context"

const (
	maxProbes  = 10_000 // improving probes at one level; at most about 300 were seen
	maxDescent = 1000   // steps of one descent
)

// A level is one iteration of algorithm 1.
type level struct{ gamma, radius, spacing float64 }

// An sla is the smooth loss approximation of algorithms 1 and 2 on one problem.
type sla struct {
	*objective
	descent *descent
	prober  *prober // nil until searchRange first probes
	gain    float64 // ε_L, what a probe must gain
	rates   rates   // of the descents
	blind   bool    // there are no probes
}

// newSLA prepares to minimise equation 39 with the losses of c; searchRange sets γ.
func newSLA(p *problem, c curve, λ, gain float64, r rates) *sla {
	return &sla{objective: newObjective(p, c, λ), descent: newDescent(p.d), gain: gain, rates: r}
}

// searchRange is algorithm 2: a descent to a local minimum, then probes. The first
// probe that improves by ε_L restarts the descent from there. (The printed
// "break" would leave only the inner of two loops.)
func (s *sla) searchRange(ctx context.Context, w []float64, l level) (value float64, err error) {
	s.gamma = l.gamma
	for range maxProbes {
		if value, err = s.descent.minimise(ctx, s.objective, w, s.rates); err != nil || s.blind {
			return value, err
		}
		if s.prober == nil {
			s.prober = newProber(s.objective, s.gain)
		}
		better, err := s.prober.improve(ctx, w, value, l.radius, l.spacing, s.gain)
		if err != nil || !better {
			return value, err
		}
	}
	return s.value(w), nil
}
