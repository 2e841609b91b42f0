package model

import (
	"cmp"
	"math"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
)

// A Prediction is a Gaussian of the log-odds of spam, in nats, with its Mean and Variance.
// LogOdds is the log-odds of the predicted probability, moderated by the variance:
// Mean/√(1+π·Variance/8). It also ranks better than Mean.
type Prediction struct {
	LogOdds, Mean, Variance float64
}

// P returns the probability of spam.
func (p Prediction) P() float64 { return logistic.Sigmoid(p.LogOdds) }

// Interval returns the interval of the probability of spam at ±z standard deviations of
// the log-odds. z = 1.645 covers 90 %.
func (p Prediction) Interval(z float64) (lo, hi float64) {
	s := float64(z * math.Sqrt(p.Variance))
	return logistic.Sigmoid(p.Mean - s), logistic.Sigmoid(p.Mean + s)
}

// A Contribution is what one input adds to the Mean of a Prediction, with its
// posterior standard deviation, in nats.
type Contribution struct {
	Name             string
	Contribution, SD float64
}

// A Predictor predicts by a model. It owns the buffers for reading a body, and allocates
// nothing in the steady state. It is not safe for concurrent use.
type Predictor struct {
	m             *Model
	reader        *reader
	contributions []blr.Contribution // scratch of explain
}

// NewPredictor returns a Predictor of m. It always uses m's current state.
func (m *Model) NewPredictor() *Predictor { return &Predictor{m: m, reader: newReader(m.specs)} }

// Predict returns the model's prediction for b, or a *RefusedError. It does not change the
// model.
func (p *Predictor) Predict(b *Body) (Prediction, error) {
	if err := p.m.Check(b); err != nil {
		return Prediction{}, err
	}
	s := p.m.submodel(b)
	return predict(s, p.reader.read(b, s)), nil
}

// Explain is Predict with the contributions of the head's inputs and of the ensembles,
// largest absolute value first. They sum to Mean, up to rounding.
func (p *Predictor) Explain(b *Body) (Prediction, []Contribution, error) {
	if err := p.m.Check(b); err != nil {
		return Prediction{}, nil, err
	}
	s := p.m.submodel(b)
	prediction, all := p.explain(s, p.reader.read(b, s))
	return prediction, all, nil
}

// explain is predict with the contributions, largest absolute value first.
func (p *Predictor) explain(s *submodel, in *features) (Prediction, []Contribution) {
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
	all := make([]Contribution, len(names))
	for j, c := range contributions {
		all[j] = Contribution{Name: names[j], Contribution: c.Mean + 0, SD: c.SD} // +0 turns −0 into 0
	}
	slices.SortStableFunc(all, func(a, b Contribution) int {
		return cmp.Compare(math.Abs(b.Contribution), math.Abs(a.Contribution))
	})
	return prediction, all
}

// predict returns the prediction of s's stack if it serves, else of its head; of the prior
// if s is nil. It sets in.head and in.stacked.
func predict(s *submodel, in *features) Prediction {
	var mean, variance float64
	if s != nil {
		mean, variance = s.head.Moments(in.x)
	} else {
		before := in.spec.layout.prior
		for j, x := range in.x {
			mean += float64(before.mean[j] * x)
			variance += x * x / before.precision[j]
		}
	}
	in.head = moderated(mean, variance)
	in.stacked = s != nil && s.stack != nil && s.stack.Serves()
	if !in.stacked {
		return in.head
	}
	return moderated(s.stack.Predict(&in.scratch, in.event()))
}

// moderated returns the Prediction with this mean and variance.
func moderated(mean, variance float64) Prediction {
	return Prediction{LogOdds: blr.Moderate(mean, variance), Mean: mean, Variance: variance}
}
