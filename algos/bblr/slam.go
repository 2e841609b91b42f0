package bblr

import "context"

// A cost is what a held-out part says of a fit: errors, and of equal errors the
// log loss.
type cost struct{ errors, loss float64 }

func (c cost) below(d cost) bool {
	return c.errors < d.errors || c.errors == d.errors && c.loss < d.loss
}

// tune chooses λ, r_γ, γ_MIN and γ_MAX on a held-out fifth (SLAM, section 4.1),
// one after the other: λ among itself and 10⁻², 10⁻¹, 1 and 10, r_γ among itself,
// 10, 5 and 2, the ends of γ's range by a bracket search from where they are, in
// factors of 2. Held out is every fifth row of each label, in the order given;
// the paper does not say which subset it takes. Where a label has fewer than 5
// rows there is nothing to choose by and all stays as it is.
func (f *fitter) tune(ctx context.Context, l Likelihood) error {
	train, held := f.problem.split(5)
	if held == nil {
		return nil
	}
	starts := map[float64][]float64{}                         // the logistic regression, by λ
	search := newSLA(train, f.curve(l), f.Lambda, f.Schedule) // its tables hold for any λ and γ
	try := func(λ float64, s Schedule) (cost, error) {
		w := f.Start
		if w == nil {
			λ := max(λ, leastRidge)
			if starts[λ] == nil {
				var err error
				if starts[λ], err = logisticRegression(ctx, train, λ); err != nil {
					return cost{}, err
				}
			}
			w = starts[λ]
		}
		w = append([]float64(nil), w...)
		l := l
		l.Gamma = s.last()
		search.lambda, search.schedule = λ, s
		if _, err := search.anneal(ctx, w); err != nil {
			return cost{}, err
		}
		return held.cost(w, l), nil
	}

	λ, s := f.Lambda, f.Schedule
	best, err := try(λ, s)
	better := func(λʹ float64, sʹ Schedule) bool {
		if err != nil || λʹ == λ && sʹ == s || sʹ.Check() != nil {
			return false
		}
		var c cost
		if c, err = try(λʹ, sʹ); err != nil || !c.below(best) {
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

// split holds out every k-th row of each label; held is nil where a label has
// fewer than k.
func (p *problem) split(k int) (train, held *problem) {
	var seen, out [2]int
	take := [2]*problem{{d: p.d}, {d: p.d}}
	for i, y := range p.y {
		class := 0
		if y > 0 {
			class = 1
		}
		seen[class]++
		part := take[0]
		if seen[class]%k == 0 {
			part = take[1]
			out[class]++
		}
		part.n++
		part.rows = append(part.rows, p.row(i)...)
		part.y = append(part.y, y)
		part.weight = append(part.weight, p.weight[i])
		part.total += p.weight[i]
	}
	if out[0] == 0 || out[1] == 0 || take[0].total == 0 || take[1].total == 0 {
		return p, nil
	}
	for _, part := range take {
		part.layColumns()
	}
	return take[0], take[1]
}

// cost returns the errors and the log loss of w on p.
func (p *problem) cost(w []float64, l Likelihood) (c cost) {
	for i, y := range p.y {
		z := dot(w, p.row(i))
		if !(float64(y*z) > 0) {
			c.errors += p.weight[i]
		}
		c.loss += float64(p.weight[i] * l.Loss(z, y))
	}
	return c
}

// learn learns the mixture and γ from the rows for BBLR4, by turns with w, from two
// starts: w and γ as SLA left them, near a minimum of the 0-1 loss, and w₀ with γ = 1,
// which is near logistic regression. The lower objective wins; w is set to it. On
// the UCI sets that is now the one and now the other, and the log loss on test
// rows falls by up to a fifth.
//
// λ stays what the held-out fifth chose: by the rows themselves it cannot be
// learnt. The gradient of (39) by λ is |w|²/2, never negative; with the prior's
// normaliser −(D/2)·ln λ the optimum is λ = D/|w|², but then γ and |w|, which only
// matter as a product, run to ∞ and 0.
func (f *fitter) learn(ctx context.Context, γ float64, s *sla, w0, w []float64) (Likelihood, *sla, error) {
	other := append([]float64(nil), w0...)
	l, sharp, err := f.alternate(ctx, γ, w)
	if err != nil {
		return l, s, err
	}
	soft, s, err := f.alternate(ctx, 1, other)
	if err != nil {
		return l, s, err
	}
	if s.value(other) < sharp.value(w) {
		l = soft
		copy(w, other)
	} else {
		s = sharp
	}
	if s.value(w0) < s.value(w) {
		copy(w, w0)
		_, err = s.searchRange(ctx, w, f.only(l.Gamma))
	}
	return l, s, err
}

// only is the single level that is searched at a γ that was learnt.
func (f *fitter) only(γ float64) level {
	return level{gamma: γ, radius: f.Radius, spacing: f.Spacing}
}

// alternate moves the likelihood and w by turns, from w and γ and the rates of true
// positives and negatives as the ends of μ (section 3.2), each short of 1 by half a
// row, because a mixture without plateaus would never get them back. It ends when a
// round gains less than ε_L.
func (f *fitter) alternate(ctx context.Context, γ float64, w []float64) (l Likelihood, s *sla, err error) {
	const (
		rounds = 5    // at most
		steps  = 100  // of the descent in three parameters
		tiny   = 1e-6 // of a mean gradient
	)
	p := f.problem
	m := make([]float64, p.n)
	p.margins(m, w)
	l = p.rates(m, γ)
	c := &calibration{problem: p, scores: make([]float64, p.n)}
	descent := newDescent(3)
	last := 0.0
	for round := range rounds {
		for i := range c.scores {
			c.scores[i] = dot(w, p.row(i))
		}
		v := c.at(l)
		if _, err := descent.minimise(ctx, c, v, rates{
			max: 1 / p.total, min: 1e-9 / p.total, shrink: 0.5, tolerance: tiny * p.total, most: steps,
		}); err != nil {
			return l, s, err
		}
		l = c.of(v)
		s = newSLA(p, l.curve(), f.Lambda, f.Schedule)
		value, err := s.searchRange(ctx, w, f.only(l.Gamma))
		if err != nil {
			return l, s, err
		}
		if round > 0 && last-value < f.LossTolerance {
			break
		}
		last = value
	}
	return l, s, nil
}

// rates returns the likelihood between the rates of true positives and negatives
// at the margins m, short of 1 by half a row's weight.
func (p *problem) rates(m []float64, γ float64) Likelihood {
	var right, all [2]float64
	for i, y := range p.y {
		class := 0
		if y > 0 {
			class = 1
		}
		all[class] += p.weight[i]
		if m[i] > 0 {
			right[class] += p.weight[i]
		}
	}
	half := float64(0.5 * p.total / float64(p.n))
	rate := func(class int) float64 {
		least := min(half, all[class]/2) // all rows of a label may weigh less
		return min(max(right[class], least), all[class]-least) / all[class]
	}
	l := Rates(rate(1), rate(0))
	l.Mix = min(l.Mix, 1-half/p.total)
	l.Gamma = γ
	return l
}
