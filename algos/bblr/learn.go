// Laboratory: BBLR4, which learns the mixture and γ.

package bblr

import (
	"context"
	"slices"

	"hamlet/algos/internal/logistic"
)

// learn learns the mixture and γ from the rows for BBLR4, together with w, from two
// starts: w and γ as SLA without probes left them, and w₀ with γ = 1, which is near
// logistic regression. Both begin with the rates of true positives and negatives as
// the ends of μ (section 3.2). The lower objective wins and is searched, and what a
// probe improves is learnt from again. w is set to where that ends.
//
// λ stays what the held-out fifth chose. The gradient of (39) by λ is |w|²/2, never
// negative; with the prior's normaliser −(D/2)·ln λ the optimum is λ = D/|w|², but
// then γ and |w|, which only matter as a product, run to ∞ and 0.
func (f *fitter) learn(ctx context.Context, γ float64, w0, w []float64) (Likelihood, *sla, error) {
	const rounds = 2 // of learning and search, at most: MEASURED.md
	other := slices.Clone(w0)
	l, value, err := f.descendAll(ctx, f.problem.rates(w, γ), w)
	if err != nil {
		return l, nil, err
	}
	soft, softValue, err := f.descendAll(ctx, f.problem.rates(other, 1), other)
	if err != nil {
		return l, nil, err
	}
	if softValue < value {
		l, value = soft, softValue
		copy(w, other)
	}
	var s *sla
	for round := 1; ; round++ {
		s = f.newSLA(l.curve())
		s.rates = f.Schedule.quick(s.total, f.LossTolerance)
		found, err := s.searchRange(ctx, w, f.only(l))
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
	if s.value(w0) < value {
		copy(w, w0)
		_, err = s.searchRange(ctx, w, f.only(l))
	}
	return l, s, err
}

// only is the single level that is searched at a γ that was learnt.
func (f *fitter) only(l Likelihood) level {
	return level{gamma: l.Gamma, radius: f.Radius, spacing: f.Spacing}
}

// descendAll moves l and w to where equation 39 is lower and returns it: first l alone,
// then both by one descent. There is no minimum to go to: γ → ∞ while γw stays takes
// the penalty away. So the steps are few.
func (f *fitter) descendAll(ctx context.Context, l Likelihood, w []float64) (Likelihood, float64, error) {
	const (
		steps  = 40 // the most; up to 30 are usual
		enough = 10 // of ε_L, what two of them must gain
	)
	j := fullObjective{newObjective(f.problem, l.curve(), f.Lambda)}
	j.margins(j.m, w)
	v := append(slices.Clone(w), j.at(l)...)
	r := f.Schedule.quick(j.total, f.LossTolerance)
	r.max, r.min = 1/j.total, 0x1p-24/j.total
	if _, err := newDescent(3).minimise(ctx, j, v[j.d:], r); err != nil {
		return l, 0, err
	}
	r = f.Schedule.quick(j.total, enough*f.LossTolerance)
	r.most = steps
	value, err := newDescent(len(v)).minimise(ctx, j, v, r)
	copy(w, v)
	return j.of(v[j.d:]), value, err
}

// A fullObjective is equation 39 as a function of w, logit w, logit θ and ln γ, in
// this order, all of which may be any numbers. Of fewer, the last three alone, it is
// that at the margins as they are, without the penalty.
type fullObjective struct {
	*objective // its curve is set by gradient
}

// of returns the likelihood with the parameters v. Where the rows can be separated
// γ has no best value; it ends at e⁴⁰.
func (fullObjective) of(v []float64) Likelihood {
	const most = 40
	γ := logistic.Exp(min(max(v[2], -most), most))
	return Likelihood{Mix: logistic.Sigmoid(v[0]), Theta: logistic.Sigmoid(v[1]), Gamma: γ}
}

// at returns the parameters of l.
func (fullObjective) at(l Likelihood) []float64 {
	return []float64{logistic.Logit(l.Mix), logistic.Logit(l.Theta), logistic.Log(l.Gamma)}
}

// gradient is equations 25, 26 and 31 to 35 and the chain rule.
func (j fullObjective) gradient(grad, v []float64) float64 {
	last := len(v) - 3
	w, l := v[:last], j.of(v[last:])
	for k, c := range w {
		grad[k] = float64(j.lambda * c)
	}
	if last > 0 {
		j.margins(j.m, w)
	}
	j.curve = l.curve()
	rows := rowSum{dst: grad[:last]}
	sum, g := 0.0, HyperGradient{}
	for i, y := range j.y {
		loss, slope, h := l.partials(j.side(y), j.m[i], y)
		sum += float64(j.weight[i] * loss)
		g.add(h, j.weight[i])
		if s := float64(float64(float64(j.weight[i]*slope)*l.Gamma) * y); last > 0 && s != 0 {
			rows.add(s, j.row(i))
		}
	}
	rows.finish()
	grad[last] = -float64(g.Mix * l.Mix * (1 - l.Mix))
	grad[last+1] = -float64(g.Theta * l.Theta * (1 - l.Theta))
	grad[last+2] = -float64(g.Gamma * l.Gamma)
	return sum + float64(0.5*float64(j.lambda*dot(w, w)))
}

// rates returns the likelihood between the rates of true positives and negatives of
// w, each short of 1 by half a row's weight, because a mixture without plateaus would
// never get them back.
func (p *problem) rates(w []float64, γ float64) Likelihood {
	m := make([]float64, p.n)
	p.margins(m, w)
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

// Rates returns the mixture whose extreme probabilities are the rates of a hard
// classifier (equations 27 to 30): a + b is the true positive rate and 1 − a the
// true negative rate, so that
//
//	w = 2 − (TNR+TPR),   θ = (1−TNR)/(2 − (TNR+TPR)).
//
// A perfect classifier makes that 0/0 and one worse than chance makes w > 1:
// then w is clipped to 1, and θ is the fraction (1−TNR)/((1−TNR)+(1−TPR)) of its
// mistakes that concern negatives, ½ without mistakes. γ is 1.
func Rates(tpr, tnr float64) Likelihood {
	miss, alarm := 1-tpr, 1-tnr
	l := Likelihood{Mix: min(miss+alarm, 1), Theta: 0.5, Gamma: 1}
	if miss+alarm > 0 {
		l.Theta = alarm / (miss + alarm)
	}
	return l
}
