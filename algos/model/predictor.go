package model

import (
	"cmp"
	"math"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
)

// A Prediction is what a model thinks of a body: the log-odds of spam are
// Gaussian with mean Mean and variance Variance, and LogOdds are the log-odds of
// the probability that follows from it, moderated by the doubt:
// Mean/√(1+π·Variance/8). All in nats. LogOdds also rank better than Mean.
type Prediction struct {
	LogOdds, Mean, Variance float64
}

// P returns the probability of spam.
func (p Prediction) P() float64 { return logistic.Sigmoid(p.LogOdds) }

// Interval returns the central interval of the probability of spam that reaches
// z standard deviations of the log-odds to each side: z = 1.645 covers 90 %.
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

// A Predictor asks a model. It holds the scratch that reading a body takes, so
// that it allocates nothing in the steady state, and serves one goroutine.
type Predictor struct {
	m             *Model
	reader        *reader
	contributions []blr.Contribution // scratch of explain
}

// NewPredictor returns a Predictor of m that sees what m learns.
func (m *Model) NewPredictor() *Predictor { return &Predictor{m: m, reader: newReader(m.specs)} }

// Predict returns what the model thinks of b, or a *RefusedError. It changes
// nothing that any model's bytes or answers depend on.
func (p *Predictor) Predict(b *Body) (Prediction, error) {
	if err := p.m.Check(b); err != nil {
		return Prediction{}, err
	}
	s := p.m.submodel(b)
	return predict(s, p.reader.read(b, s)), nil
}

// Explain is Predict with the contributions of the head's inputs and of the
// ensembles, largest absolute value first. Their sum is Mean, to rounding.
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
		all[j] = Contribution{Name: names[j], Contribution: c.Mean + 0, SD: c.SD} // +0: no −0 for people
	}
	slices.SortStableFunc(all, func(a, b Contribution) int {
		return cmp.Compare(math.Abs(b.Contribution), math.Abs(a.Contribution))
	})
	return prediction, all
}

// predict returns the answer of the stack of s, or else of its head, or of the prior
// where s is nil. It leaves in in what the head said, and whether the stack was asked.
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

// moderated is the Prediction of log-odds of this mean and variance.
func moderated(mean, variance float64) Prediction {
	return Prediction{LogOdds: blr.Moderate(mean, variance), Mean: mean, Variance: variance}
}
