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

// A Contribution is one input's share of the Mean of a Prediction, with its
// posterior standard deviation, in nats.
type Contribution struct {
	Name             string
	Contribution, SD float64
}

// A Predictor asks a model. It holds the scratch that reading a body takes, so
// that it allocates nothing in the steady state, and serves one goroutine.
type Predictor struct {
	m                   *Model
	reader              *reader
	textPrior, vecPrior prior
	textNames, vecNames []string
	contributions       []blr.Contribution
}

// NewPredictor returns a Predictor of m that sees what m learns.
func (m *Model) NewPredictor() *Predictor {
	p := &Predictor{m: m, reader: newReader(m.cfg), textPrior: textPrior(m.cfg), vecPrior: vectorPrior(m.cfg)}
	p.textNames, p.vecNames = inputNames(m.cfg)
	return p
}

// Predict returns what the model thinks of b, or a *RefusedError. It changes
// nothing that any model's bytes or answers depend on.
func (p *Predictor) Predict(b *Body) (Prediction, error) {
	if err := p.m.Check(b); err != nil {
		return Prediction{}, err
	}
	return p.predict(p.halfOf(b), p.read(b)), nil
}

// Explain is Predict with the contributions of the head's inputs and of the
// ensembles, largest absolute value first. Their sum is Mean, to rounding.
func (p *Predictor) Explain(b *Body) (Prediction, []Contribution, error) {
	if err := p.m.Check(b); err != nil {
		return Prediction{}, nil, err
	}
	prediction, all := p.explain(p.halfOf(b), p.read(b))
	return prediction, all, nil
}

// explain is predict with the contributions, largest absolute value first.
func (p *Predictor) explain(h *half, in *reading) (Prediction, []Contribution) {
	names, before := p.textNames, p.textPrior
	if in == &p.reader.vector {
		names, before = p.vecNames, p.vecPrior
	}
	p.contributions = p.contributions[:0]
	if h != nil {
		p.contributions = h.head.Contributions(p.contributions, in.x)
	} else {
		for j, x := range in.x {
			p.contributions = append(p.contributions, blr.Contribution{
				Mean: before.mean[j] * x, SD: math.Abs(x) / math.Sqrt(before.precision[j]),
			})
		}
	}
	prediction := p.predict(h, in)
	contributions := p.contributions
	if in.joined {
		contributions = h.stack.contributions(nil, in, contributions)
		for _, k := range h.stack.kinds {
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

// halfOf returns the half that knows bodies like b; nil if there is none yet.
func (p *Predictor) halfOf(b *Body) *half {
	if b.Message != nil {
		return p.m.text
	}
	return p.m.vector
}

// read brings b, which has passed Check, before the half that knows bodies like it.
func (p *Predictor) read(b *Body) *reading {
	if b.Message != nil {
		return p.reader.readMessage(b.Message, p.m.text)
	}
	return p.reader.readVector(b.Vector, p.m.cfg.Dense, p.m.vector)
}

// predict returns the answer of h's stack, or else of its head, or of the prior
// where h is nil. It leaves what the head said, and how they were joined, in in.
func (p *Predictor) predict(h *half, in *reading) Prediction {
	var mean, variance float64
	if h != nil {
		mean, variance = h.head.Moments(in.x)
	} else {
		before := p.textPrior
		if in == &p.reader.vector {
			before = p.vecPrior
		}
		for j, x := range in.x {
			mean += float64(before.mean[j] * x)
			variance += x * x / before.precision[j]
		}
	}
	in.head = Prediction{LogOdds: blr.Moderate(mean, variance), Mean: mean, Variance: variance}
	in.joined = h != nil && h.stack != nil && h.stack.serves()
	if !in.joined {
		return in.head
	}
	return h.stack.predict(in)
}
