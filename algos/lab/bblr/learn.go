package bblr

import (
	"context"
	"slices"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/sla"
	"hamlet/algos/internal/triangle"
)

// learn fits the mixture, γ and w to the rows, for BBLR4. It runs two descents. One
// starts at the w and γ of SLA without probes. The other starts at w₀ with γ = 1, which
// is near logistic regression. At both starts a and a+b, the extremes of μ, come from
// the true positive and true negative rates (section 3.2). Probes search around the
// lower end; after a gain of ε_L there is one more descent and search. If w₀ is still
// better, the last search starts from w₀. w is set to the result.
//
// λ is not learnt: SLAM chose it on the held-out fifth. The derivative of
// (39) by λ is |w|²/2 ≥ 0, so that 0 would be best. With the prior's normaliser,
// −(D/2)·ln λ, the optimum is D/|w|². But then γ → ∞ and |w| → 0, because only their
// product matters.
func (f *fitter) learn(ctx context.Context, γ float64, w0, w []float64) (Likelihood, *sla.Search, error) {
	const rounds = 2 // of a descent and a search, at most: MEASURED.md
	other := slices.Clone(w0)
	l, value, err := f.descendAll(ctx, ratesOf(f.problem, w, γ), w)
	if err != nil {
		return l, nil, err
	}
	soft, softValue, err := f.descendAll(ctx, ratesOf(f.problem, other, 1), other)
	if err != nil {
		return l, nil, err
	}
	if softValue < value {
		l, value = soft, softValue
		copy(w, other)
	}
	var s *sla.Search
	for round := 1; ; round++ {
		s = f.newSLA(curveOf(l))
		s.Rates = f.Schedule.quick(s.Total, f.LossTolerance)
		found, err := s.SearchRange(ctx, w, f.only(l))
		if err != nil {
			return l, nil, err
		}
		if round == rounds || !(value-found >= f.LossTolerance) {
			value = found
			break
		}
		if l, value, err = f.descendAll(ctx, l, w); err != nil {
			return l, nil, err
		}
	}
	if s.Value(w0) < value {
		copy(w, w0)
		_, err = s.SearchRange(ctx, w, f.only(l))
	}
	return l, s, err
}

// only returns the one level to search when γ is learnt and not raised in steps.
func (f *fitter) only(l Likelihood) sla.Level {
	return sla.Level{Gamma: l.Gamma, Radius: f.Radius, Spacing: f.Spacing}
}

// descendAll lowers equation 39: first it changes l alone, then l and w together. It
// sets w, and returns l and the value. Equation 39 has no minimum in (γ, w): if γ → ∞
// at constant γw, the penalty goes to 0. So the number of steps is small.
func (f *fitter) descendAll(ctx context.Context, l Likelihood, w []float64) (Likelihood, float64, error) {
	const (
		steps  = 40 // at most; fits usually take up to 30
		enough = 10 // it ends when two steps in a row gain less than 10·ε_L each
	)
	j := fullObjective{sla.NewObjective(f.problem, curveOf(l), f.Lambda)}
	j.Margins(j.M, w)
	v := append(slices.Clone(w), j.at(l)...)
	r := f.Schedule.quick(j.Total, f.LossTolerance)
	r.Max, r.Min = 1/j.Total, 0x1p-24/j.Total
	if _, err := sla.NewDescent(3).Minimise(ctx, j, v[j.D:], r); err != nil {
		return l, 0, err
	}
	r = f.Schedule.quick(j.Total, enough*f.LossTolerance)
	r.Most = steps
	value, err := sla.NewDescent(len(v)).Minimise(ctx, j, v, r)
	copy(w, v)
	return j.of(v[j.D:]), value, err
}

// A fullObjective is equation 39 as a function of the coefficients, logit Mix, logit θ
// and ln γ, in this order. Each of them may be any real number. If the coefficients are
// left out, the margins j.m stay as they are and there is no penalty.
type fullObjective struct {
	*sla.Objective // only gradient sets its curve
}

// of returns the likelihood with the parameters v = (logit Mix, logit θ, ln γ). If a
// plane separates the labels, a larger γ is always better; so γ is at most e⁴⁰.
func (fullObjective) of(v []float64) Likelihood {
	const most = 40
	γ := logistic.Exp(min(max(v[2], -most), most))
	return Likelihood{Mix: logistic.Sigmoid(v[0]), Theta: logistic.Sigmoid(v[1]), Gamma: γ}
}

// At is the inverse of of: it returns the parameters of l.
func (fullObjective) at(l Likelihood) []float64 {
	return []float64{logistic.Logit(l.Mix), logistic.Logit(l.Theta), logistic.Log(l.Gamma)}
}

// Gradient returns the value at v and sets grad to the gradient, by equations 25, 26
// and 31 to 35 and the chain rule.
func (j fullObjective) Gradient(grad, v []float64) float64 {
	last := len(v) - 3
	w, l := v[:last], j.of(v[last:])
	for k, c := range w {
		grad[k] = float64(j.Lambda * c)
	}
	if last > 0 {
		j.Margins(j.M, w)
	}
	j.Curve = curveOf(l)
	sum, g := 0.0, HyperGradient{}
	for i, y := range j.Y {
		loss, slope, h := partials(l, j.Side(y), j.M[i], y)
		sum += float64(j.Weight[i] * loss)
		g.add(h, j.Weight[i])
		j.Scale[i] = float64(float64(float64(j.Weight[i]*slope)*l.Gamma) * y)
	}
	if last > 0 {
		j.AddRows(grad[:last], j.Scale)
	}
	grad[last] = -float64(g.Mix * l.Mix * (1 - l.Mix))
	grad[last+1] = -float64(g.Theta * l.Theta * (1 - l.Theta))
	grad[last+2] = -float64(g.Gamma * l.Gamma)
	return sum + float64(0.5*float64(j.Lambda*triangle.Dot(w, w)))
}

// ratesOf returns Rates of the linear classifier w, with γ. It keeps both rates half
// the mean weight of a row away from 0 and 1. A rate of 1 would mean no plateau, and no
// descent from there would find one.
func ratesOf(p *sla.Problem, w []float64, γ float64) Likelihood {
	m := make([]float64, p.N)
	p.Margins(m, w)
	var right, all [2]float64
	for i, y := range p.Y {
		class := 0
		if y > 0 {
			class = 1
		}
		all[class] += p.Weight[i]
		if m[i] > 0 {
			right[class] += p.Weight[i]
		}
	}
	half := float64(0.5 * p.Total / float64(p.N))
	rate := func(class int) float64 {
		least := min(half, all[class]/2) // the rows of a label may weigh less than half in all
		return min(max(right[class], least), all[class]-least) / all[class]
	}
	l := Rates(rate(1), rate(0))
	l.Mix = min(l.Mix, 1-half/p.Total)
	l.Gamma = γ
	return l
}

// Rates returns the mixture whose extreme probabilities are the rates of a hard
// classifier (equations 27 to 30): a + b is the true positive rate and 1 − a the
// true negative rate, so that
//
//	w = 2 − (TNR+TPR),   θ = (1−TNR)/(2 − (TNR+TPR)).
//
// w is the Mix of the likelihood, not the coefficients. θ is the fraction of the two
// error rates that is the false positive rate, and ½ for a perfect classifier, where the
// equation is 0/0. A classifier worse than chance would have w > 1: w is then 1. γ is 1.
func Rates(tpr, tnr float64) Likelihood {
	miss, alarm := 1-tpr, 1-tnr
	l := Likelihood{Mix: min(miss+alarm, 1), Theta: 0.5, Gamma: 1}
	if miss+alarm > 0 {
		l.Theta = alarm / (miss + alarm)
	}
	return l
}
