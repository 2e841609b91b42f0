package model

import (
	"errors"

	"hamlet/algos/blr"
)

// A Join is a way in which the models of several partitions could answer as one,
// to be compared with what a [Joint] does.
type Join string

const (
	MeanLogOdds  Join = "mean"    // the mean of the models' own log-odds and variances
	JointExperts Join = "experts" // what Joint.Predict does
	MergedHead   Join = "head"    // the heads merged in natural parameters, the mean of their inputs
	MergedModel  Join = "model"   // the merged heads, the joint tables
)

// Joins are all of them.
var Joins = []Join{MeanLogOdds, JointExperts, MergedHead, MergedModel}

// PredictBy is Predict by one of the Joins. It merges heads anew each time, O(D³)
// for D inputs, and leaves stacks out of merged ones. The models must have one
// configuration; an error that is no *RefusedError says where they have not.
func (j *Joint) PredictBy(join Join, b *Body) (Prediction, error) {
	if join == JointExperts {
		return j.Predict(b)
	}
	j.answers = j.answers[:0]
	if err := j.askEach(b, false); err != nil {
		return Prediction{}, err
	}
	if join == MeanLogOdds || !j.findHalves(b) {
		return average(j.answers), nil
	}
	if !j.same {
		return Prediction{}, errors.New("merge heads: the models read bodies in different ways")
	}
	heads := make([]*blr.Posterior, len(j.halves))
	for k, h := range j.halves {
		heads[k] = h.head
	}
	head, err := blr.Merge(heads...)
	if err != nil {
		return Prediction{}, err
	}
	x := make([]float64, head.Dim())
	for _, p := range j.predictors {
		if p.halfOf(b) == nil {
			continue
		}
		for i, v := range p.read(b).x {
			x[i] += v / float64(len(j.halves))
		}
	}
	if join == MergedModel {
		in, experts := j.read(b), 1
		if b.Vector != nil {
			experts += len(in.dense)
		}
		for k := range in.scores {
			x[experts+k] = in.scores[k].Input
		}
	}
	mean, variance := head.Moments(x)
	return Prediction{LogOdds: blr.Moderate(mean, variance), Mean: mean, Variance: variance}, nil
}
