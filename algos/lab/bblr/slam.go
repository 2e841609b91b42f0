package bblr

import (
	"context"
	"slices"

	"hamlet/algos/internal/sla"
	"hamlet/algos/internal/triangle"
)

// A cost holds the errors and the log loss on held-out rows. Fewer errors are
// better, then less loss.
type cost struct{ errors, loss float64 }

func (c cost) below(d cost) bool {
	return c.errors < d.errors || c.errors == d.errors && c.loss < d.loss
}

// tune chooses λ, r_γ, γ_MIN and γ_MAX in turn on a held-out fifth (SLAM, section
// 4.1). It tries 10⁻², 10⁻¹, 1 and 10 for λ, 10, 5 and 2 for r_γ, and a bracket
// search in factors of 2 for the ends of γ's range. Every fifth row of each label
// is held out; the paper does not say which. If a label has fewer than 5 rows,
// nothing changes.
func (f *fitter) tune(ctx context.Context, l Likelihood) error {
	train, held := split(f.problem, 5)
	if held == nil {
		return nil
	}
	t := &trials{
		Objective: sla.NewObjective(train, rough(l), f.Lambda), descent: sla.NewDescent(train.D),
		likelihood: l, held: held, start: f.Start,
	}
	if t.start == nil {
		var err error
		if t.start, err = logisticRegression(ctx, train, max(f.Lambda, leastRidge)); err != nil {
			return err
		}
	}

	λ, s := f.Lambda, f.Schedule
	best, err := t.try(ctx, λ, s)
	better := func(λʹ float64, sʹ Schedule) bool {
		if err != nil || λʹ == λ && sʹ == s || sʹ.Check() != nil {
			return false
		}
		var c cost
		if c, err = t.try(ctx, λʹ, sʹ); err != nil || !c.below(best) {
			return false
		}
		λ, s, best = λʹ, sʹ, c
		return true
	}
	for _, v := range [...]float64{1e-2, 1e-1, 1, 10} {
		better(v, s)
	}
	for _, v := range [...]float64{10, 5, 2} {
		sʹ := s
		sʹ.GammaGrowth = v
		better(λ, sʹ)
	}
	for _, end := range [...]func(*Schedule) *float64{
		func(s *Schedule) *float64 { return &s.GammaMin },
		func(s *Schedule) *float64 { return &s.GammaMax },
	} {
		for _, factor := range [...]float64{2, 0.5} {
			moved := false
			for range 4 {
				sʹ := s
				*end(&sʹ) *= factor
				if !better(λ, sʹ) {
					break
				}
				moved = true
			}
			if moved {
				break
			}
		}
	}
	f.Lambda, f.Schedule = λ, s
	return err
}

// trials are short fits to the other rows: algorithm 1 with quick descents and
// without probes, which gain only thousandths of a nat. Whole fits cost five times
// as much and choose no better (MEASURED.md). Trials with equal λ and first levels
// share the descents of those levels.
type trials struct {
	*sla.Objective // of the rows to fit
	descent        *sla.Descent
	likelihood     Likelihood
	held           *sla.Problem
	start          []float64 // w₀ of every trial
	ways           []way
}

// A way is the result of a trial after one of its levels.
type way struct {
	lambda float64
	gammas []float64 // γ of the levels up to this one
	w      []float64
}

// mostWays bounds the memory for a schedule of many levels; 30 are usual.
const mostWays = 64

// try returns the cost on the held-out rows of a fit with λ and s.
func (t *trials) try(ctx context.Context, λ float64, s Schedule) (cost, error) {
	t.Lambda = λ
	const enough = 10 // a descent ends when two steps in a row gain less than 10·ε_L each
	r := s.quick(t.Total, enough*s.LossTolerance)
	at := way{lambda: λ, w: t.start}
	for level := range s.levels {
		at.gammas = append(at.gammas, level.Gamma)
		if w := t.known(at); w != nil {
			at.w = w
			continue
		}
		at.w = slices.Clone(at.w)
		t.Gamma = level.Gamma
		if _, err := t.descent.Minimise(ctx, t.Objective, at.w, r); err != nil {
			return cost{}, err
		}
		if len(t.ways) < mostWays {
			t.ways = append(t.ways, way{λ, slices.Clone(at.gammas), at.w})
		}
	}
	l := t.likelihood
	l.Gamma = s.last()
	return costOf(t.held, at.w, l), nil
}

// known returns the w of a stored way with the λ and the levels of at, or nil.
func (t *trials) known(at way) []float64 {
	for _, w := range t.ways {
		if w.lambda == at.lambda && slices.Equal(w.gammas, at.gammas) {
			return w.w
		}
	}
	return nil
}

// split holds out every k-th row of each label. held is nil if a label has fewer
// than k.
func split(p *sla.Problem, k int) (train, held *sla.Problem) {
	var seen, out [2]int
	take := [2]*sla.Problem{{D: p.D}, {D: p.D}}
	var rows [2][]int
	for i, y := range p.Y {
		class := 0
		if y > 0 {
			class = 1
		}
		seen[class]++
		which := 0
		if seen[class]%k == 0 {
			which = 1
			out[class]++
		}
		part := take[which]
		part.N++
		rows[which] = append(rows[which], i)
		part.Y = append(part.Y, y)
		part.Weight = append(part.Weight, p.Weight[i])
		part.Total += p.Weight[i]
	}
	if out[0] == 0 || out[1] == 0 || take[0].Total == 0 || take[1].Total == 0 {
		return p, nil
	}
	for which, part := range take {
		part.Design = p.Part(rows[which])
	}
	return take[0], take[1]
}

// costOf returns the errors and the log loss of w on p.
func costOf(p *sla.Problem, w []float64, l Likelihood) (c cost) {
	scratch := make([]float64, p.D)
	for i, y := range p.Y {
		z := triangle.Dot(w, p.Row(scratch, i))
		if !(float64(y*z) > 0) {
			c.errors += p.Weight[i]
		}
		c.loss += float64(p.Weight[i] * Loss(l, z, y))
	}
	return c
}

// rough is curveOf with derivative 0 where the computed loss is constant. There the
// derivative is below e⁻⁴⁰, and the rows cost a descent almost nothing.
func rough(l Likelihood) sla.Curve {
	c := curveOf(l)
	c.Plus.Cut, c.Minus.Cut = c.Plus.Flat, c.Minus.Flat
	return c
}
