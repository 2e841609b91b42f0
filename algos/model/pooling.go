package model

import (
	"errors"

	"hamlet/algos/blr"
)

// A Pooling is a way in which the models of several partitions can answer as one. All
// but PooledExperts are for experiments: hamlet bench partitions compares them.
type Pooling string

const (
	MeanLogOdds   Pooling = "mean"    // the mean of the models' own log-odds and variances
	PooledExperts Pooling = "experts" // what Pool.Predict does
	MergedHead    Pooling = "head"    // the heads merged in natural parameters, the mean of their inputs
	MergedModel   Pooling = "model"   // the merged heads, with the experts pooled
)

// Poolings are all of them.
var Poolings = []Pooling{MeanLogOdds, PooledExperts, MergedHead, MergedModel}

// PredictBy is Predict by one of the Poolings. It merges heads at each call, O(D³)
// for D inputs, and leaves stacks out of merged ones. The models must have one
// configuration: an error that is not a *RefusedError says that they have not.
func (p *Pool) PredictBy(pooling Pooling, b *Body) (Prediction, error) {
	if pooling == PooledExperts {
		return p.Predict(b)
	}
	p.answers = p.answers[:0]
	if err := p.askEach(b, false); err != nil {
		return Prediction{}, err
	}
	if pooling == MeanLogOdds || !p.find(b) {
		return average(p.answers), nil
	}
	if !p.alike {
		return Prediction{}, errors.New("merge heads: the models read bodies in different ways")
	}
	heads := make([]*blr.Posterior, len(p.submodels))
	for k, s := range p.submodels {
		heads[k] = s.head
	}
	head, err := blr.Merge(heads...)
	if err != nil {
		return Prediction{}, err
	}
	x := make([]float64, head.Dim())
	for k, s := range p.submodels {
		for i, v := range p.predictors[k].reader.read(b, s).x {
			x[i] += v / float64(len(p.submodels))
		}
	}
	if pooling == MergedModel {
		in := p.read(b)
		in.spec.layout.fillExperts(x, in)
	}
	return moderated(head.Moments(x)), nil
}
