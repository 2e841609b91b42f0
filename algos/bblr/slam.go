// Laboratory: BBLR3, which chooses constants on held-out rows (SLAM).

package bblr

import (
	"context"
	"slices"
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
	train, held := f.problem.split(5)
	if held == nil {
		return nil
	}
	t := &trials{
		objective: newObjective(train, l.rough(), f.Lambda), descent: newDescent(train.d),
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
	*objective // of the rows to fit
	descent    *descent
	likelihood Likelihood
	held       *problem
	start      []float64 // w₀ of every trial
	ways       []way
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
	t.lambda = λ
	const enough = 10 // a descent ends when two steps in a row gain less than 10·ε_L each
	r := s.quick(t.total, enough*s.LossTolerance)
	at := way{lambda: λ, w: t.start}
	for level := range s.levels {
		at.gammas = append(at.gammas, level.gamma)
		if w := t.known(at); w != nil {
			at.w = w
			continue
		}
		at.w = slices.Clone(at.w)
		t.gamma = level.gamma
		if _, err := t.descent.minimise(ctx, t.objective, at.w, r); err != nil {
			return cost{}, err
		}
		if len(t.ways) < mostWays {
			t.ways = append(t.ways, way{λ, slices.Clone(at.gammas), at.w})
		}
	}
	l := t.likelihood
	l.Gamma = s.last()
	return t.held.cost(at.w, l), nil
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
func (p *problem) split(k int) (train, held *problem) {
	var seen, out [2]int
	take := [2]*problem{{d: p.d}, {d: p.d}}
	var rows [2][]int
	for i, y := range p.y {
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
		part.n++
		rows[which] = append(rows[which], i)
		part.y = append(part.y, y)
		part.weight = append(part.weight, p.weight[i])
		part.total += p.weight[i]
	}
	if out[0] == 0 || out[1] == 0 || take[0].total == 0 || take[1].total == 0 {
		return p, nil
	}
	for which, part := range take {
		part.design = p.part(rows[which])
	}
	return take[0], take[1]
}

// cost returns the errors and the log loss of w on p.
func (p *problem) cost(w []float64, l Likelihood) (c cost) {
	scratch := make([]float64, p.d)
	for i, y := range p.y {
		z := dot(w, p.row(scratch, i))
		if !(float64(y*z) > 0) {
			c.errors += p.weight[i]
		}
		c.loss += float64(p.weight[i] * l.Loss(z, y))
	}
	return c
}

// rough is curve with derivative 0 where the computed loss is constant. There the
// derivative is below e⁻⁴⁰, and the rows cost a descent almost nothing.
func (l Likelihood) rough() curve {
	c := l.curve()
	c.plus.cut, c.minus.cut = c.plus.flat, c.minus.flat
	return c
}
