package bblr

import "context"

// An sla is the smooth loss approximation of algorithms 1 and 2 on one problem.
type sla struct {
	*objective
	descent  *descent
	prober   *prober // made when it is needed
	schedule Schedule
	rates    rates // of the descents
	blind    bool  // there are no probes
}

// newSLA prepares to minimise equation 39 with the curve's losses, whatever its γ.
func newSLA(p *problem, c curve, λ float64, s Schedule) *sla {
	o := newObjective(p, c, λ)
	return &sla{objective: o, descent: newDescent(p.d), schedule: s, rates: s.rates(p.total)}
}

// anneal moves w from where it is to a minimum at the last level's γ, by minima at
// all levels before it (algorithm 1). The value there, which it returns, is at
// most that at the start: if the way over lower levels ends above it, the last
// level is searched from the start once more.
func (s *sla) anneal(ctx context.Context, w []float64) (value float64, err error) {
	start := append([]float64(nil), w...)
	var last level
	for last = range s.schedule.levels {
		if value, err = s.searchRange(ctx, w, last); err != nil {
			return value, err
		}
	}
	if s.value(start) < value {
		copy(w, start)
		return s.searchRange(ctx, w, last)
	}
	return value, nil
}

// searchRange is algorithm 2: a descent to a local minimum, then probes; the
// first probe that improves by ε_L restarts the descent from where it is. (The
// printed "break" would leave only the inner of two loops.)
func (s *sla) searchRange(ctx context.Context, w []float64, l level) (value float64, err error) {
	s.gamma = l.gamma
	for range maxProbes {
		if value, err = s.descent.minimise(ctx, s.objective, w, s.rates); err != nil {
			return value, err
		}
		if s.blind {
			return value, nil
		}
		if s.prober == nil {
			s.prober = newProber(s.objective, s.schedule.LossTolerance)
		}
		better, err := s.prober.improve(ctx, w, value, l.radius, l.spacing, s.schedule.LossTolerance)
		if err != nil || !better {
			return value, err
		}
	}
	return s.value(w), nil
}
