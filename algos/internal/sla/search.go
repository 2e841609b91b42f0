package sla

import "context"

const (
	maxProbes  = 10_000 // improving probes at one level; at most about 300 were seen
	MaxDescent = 1000   // the steps of one descent
)

// A Level is one iteration of algorithm 1.
type Level struct{ Gamma, Radius, Spacing float64 }

// A Search is the smooth loss approximation of algorithms 1 and 2 on one problem.
type Search struct {
	*Objective
	Descent *Descent
	prober  *Prober // nil until SearchRange first probes
	gain    float64 // ε_L, what a probe must gain
	Rates   Rates   // of the descents
	Blind   bool    // there are no probes
}

// NewSearch prepares to minimise equation 39 with the losses of c; SearchRange sets γ.
func NewSearch(p *Problem, c Curve, λ, gain float64, r Rates) *Search {
	return &Search{Objective: NewObjective(p, c, λ), Descent: NewDescent(p.D), gain: gain, Rates: r}
}

// SearchRange is algorithm 2: a descent to a local minimum, then probes. The first
// probe that improves by ε_L restarts the descent from there. (The printed
// "break" would leave only the inner of two loops.)
func (s *Search) SearchRange(ctx context.Context, w []float64, l Level) (value float64, err error) {
	s.Gamma = l.Gamma
	for range maxProbes {
		if value, err = s.Descent.Minimise(ctx, s.Objective, w, s.Rates); err != nil || s.Blind {
			return value, err
		}
		if s.prober == nil {
			s.prober = NewProber(s.Objective, s.gain)
		}
		better, err := s.prober.Improve(ctx, w, value, l.Radius, l.Spacing, s.gain)
		if err != nil || !better {
			return value, err
		}
	}
	return s.Value(w), nil
}
