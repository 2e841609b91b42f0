package model

import (
	"cmp"
	"math"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
)

// Z90 is the normal distribution's 95 % quantile: Interval(Z90) is the 90 % interval.
const Z90 = 1.6448536269514722

// A Prediction is a Gaussian belief about the log-odds of spam, in nats, with its Mean and
// Variance. LogOdds is the log-odds of the predictive probability E[σ(z)] under this
// belief ([blr.Predictive]). It also ranks better than Mean.
//
// Variance is 1.5 times the variance a that the heads compute: a is too small on mail. So
// probability, interval and the standard deviations of contributions are of one belief.
type Prediction struct {
	LogOdds, Mean, Variance float64
}

// Inflation is κ, Variance over a. A larger one lowers the log loss on SpamAssassin and
// raises it on sms and spambase. At 1.5 the intervals of at most 4 % of a stream's answers
// must be widened to contain p (MEASURED.md).
const Inflation = 1.5

// P returns the probability of spam.
func (p Prediction) P() float64 { return logistic.Sigmoid(p.LogOdds) }

// Interval returns the interval of the probability of spam at ±z standard deviations of
// the log-odds, z ≥ 0, widened to contain P if [Prediction.Skewed].
// lo ≤ P ≤ hi holds to the last bit.
func (p Prediction) Interval(z float64) (lo, hi float64) {
	s := float64(z * math.Sqrt(p.Variance))
	mean := p.P()
	return min(logistic.Sigmoid(p.Mean-s), mean), max(logistic.Sigmoid(p.Mean+s), mean)
}

// Skewed reports whether P lies outside ±z standard deviations of the log-odds. It can if
// Variance is large: the mean of σ(z) then depends on a tail of z.
func (p Prediction) Skewed(z float64) bool {
	return math.Abs(p.LogOdds-p.Mean) > float64(z*math.Sqrt(p.Variance))
}

// A belief is a head's Gaussian of the log-odds as it learnt it, without inflation. LogOdds
// is its moderated mean ([blr.Moderate]). Label trust and the alarms use it.
type belief struct {
	LogOdds, Mean, Variance float64
}

// A Contribution is what one input adds to the Mean of a Prediction, in nats, with its
// standard deviation. Like Variance, SD² is 1.5 times what the heads compute. The
// contribution of an expert's input includes the input's products with facts; the standard
// deviation treats them as independent.
type Contribution struct {
	Name             string
	Contribution, SD float64
}

// A Predictor predicts by a model. It owns the buffers for reading a body, and allocates
// nothing in the steady state. It is not safe for concurrent use.
type Predictor struct {
	m             *Model
	vectorizer    *vectorizer
	contributions []blr.Contribution // scratch of explain
}

// NewPredictor returns a Predictor of m. It always uses m's current state.
func (m *Model) NewPredictor() *Predictor {
	return &Predictor{m: m, vectorizer: newVectorizer(m.specs)}
}

// Predict returns the model's prediction for b, or a *RefusedError, or a *Defect: a panic,
// whatever of. It does not change the model.
func (p *Predictor) Predict(b *Body) (prediction Prediction, err error) {
	if err := p.m.Check(b); err != nil {
		return Prediction{}, err
	}
	defer p.defect(&err)
	s := p.m.submodel(b)
	return predict(s, p.vectorizer.read(b, s)), nil
}

// Head is Predict with the head's inputs, which are valid until the next call, and the head,
// nil before the first event.
func (p *Predictor) Head(b *Body) (prediction Prediction, x []float64, head *blr.Posterior, err error) {
	if err := p.m.Check(b); err != nil {
		return Prediction{}, nil, nil, err
	}
	defer p.defect(&err)
	s := p.m.submodel(b)
	in := p.vectorizer.read(b, s)
	if s != nil {
		head = s.head
	}
	return predict(s, in), in.x, head, nil
}

// Explain is Predict with the contributions of the head's inputs and of the ensembles,
// largest absolute value first. They sum to Mean, up to rounding.
func (p *Predictor) Explain(b *Body) (prediction Prediction, all []Contribution, err error) {
	if err := p.m.Check(b); err != nil {
		return Prediction{}, nil, err
	}
	defer p.defect(&err)
	s := p.m.submodel(b)
	prediction, all = p.explain(s, p.vectorizer.read(b, s))
	return prediction, all, nil
}

// defect is deferred: it turns a panic into err and makes the buffers again.
func (p *Predictor) defect(err *error) {
	if value := recover(); value != nil {
		doing := "answer about this body"
		if p.vectorizer.reading {
			doing = readBody
		}
		*err = Recovered(doing, value)
		p.vectorizer, p.contributions = newVectorizer(p.m.specs), nil
	}
}

// explain is predict with the contributions, largest absolute value first.
func (p *Predictor) explain(s *submodel, in *features) (Prediction, []Contribution) {
	prediction, names, contributions := p.contributed(s, in)
	return prediction, joined(names, contributions)
}

// contributed is predict with the contribution of each input of the head and of each
// ensemble, in order, and their names.
func (p *Predictor) contributed(s *submodel, in *features) (Prediction, []string, []blr.Contribution) {
	p.contributions = p.contributions[:0]
	if s != nil {
		p.contributions = s.head.Contributions(p.contributions, in.x)
	} else {
		before := in.spec.layout.prior
		for j, x := range in.x {
			p.contributions = append(p.contributions, blr.Contribution{
				Mean: before.mean[j] * x, SD: math.Abs(x) / math.Sqrt(before.precision[j]),
			})
		}
	}
	prediction := predict(s, in)
	names, contributions := in.spec.layout.names, p.contributions
	if in.stacked {
		contributions = s.stack.Contributions(nil, &in.scratch, in.x, contributions)
		for _, k := range s.stack.Kinds() {
			names = append(names[:len(names):len(names)], "ensemble: "+string(k))
		}
	}
	return prediction, names, contributions
}

// joined adds contributions of one name and sorts by absolute value, largest first.
func joined(names []string, contributions []blr.Contribution) []Contribution {
	all := make([]Contribution, 0, len(names))
	for j, c := range contributions {
		i := slices.IndexFunc(all, func(a Contribution) bool { return a.Name == names[j] })
		if i < 0 {
			i = len(all)
			all = append(all, Contribution{Name: names[j]})
		}
		all[i].Contribution += c.Mean
		all[i].SD += float64(c.SD * c.SD)
	}
	for i := range all {
		all[i].SD = math.Sqrt(Inflation * all[i].SD)
	}
	slices.SortStableFunc(all, func(a, b Contribution) int {
		return cmp.Compare(math.Abs(b.Contribution), math.Abs(a.Contribution))
	})
	return all
}
