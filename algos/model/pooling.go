package model

import (
	"errors"

	"hamlet/algos/blr"
)

// A Pooling is a way to combine the answers of several partitions' models. All but
// PooledExperts are for experiments: hamlet bench partitions compares them.
type Pooling string

const (
	MeanLogOdds   Pooling = "mean"    // the mean of the models' own log-odds and variances
	PooledExperts Pooling = "experts" // what Pool.Predict does
	MergedHead    Pooling = "head"    // the heads merged in natural parameters, the mean of their inputs
	MergedModel   Pooling = "model"   // the merged heads, with the experts pooled
)

// Poolings lists all Poolings.
var Poolings = []Pooling{MeanLogOdds, PooledExperts, MergedHead, MergedModel}

// PredictBy is Predict with the given Pooling. Merging heads costs O(D³) for D inputs at
// each call and ignores stacks. It is an error, not a *RefusedError, if the models read
// bodies differently.
func (p *Pool) PredictBy(pooling Pooling, b *Body) (Prediction, error) {
	if pooling == PooledExperts {
		return p.Predict(b)
	}
	p.answers = p.answers[:0]
	if err := p.askEach(b, bare); err != nil {
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
		clear(x)
		for _, s := range p.submodels {
			in.spec.layout.fill(in, s)
			for i, v := range in.x {
				x[i] += v / float64(len(p.submodels))
			}
		}
	}
	return inflated(head.Moments(x)), nil
}
