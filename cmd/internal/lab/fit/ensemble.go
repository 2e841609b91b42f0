package fit

import (
	"context"
	"errors"
	"math"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/ensemble"
)

func init() {
	registerClassifier("ensemble", buildEnsemble)
	registerClassifier("logit-trees", logitTrees)
}

// The live boosters by their names in --ensembles, built as the learner builds them from a
// window: inputs as float32, in quantile bins of the rows, one round for each ten rows and
// at most rounds. Both labels must occur.
type ensembleRequest struct {
	X        [][]float64 `json:"x" shape:"N×D" in:"[-1e38,1e38]"`
	Y        []float64   `json:"y" shape:"N" in:"±1"`
	weighted             // the learner has label trust here
	tested
	Kind   string `json:"kind" in:"logit-trees|realadaboost|poeboost.ds|poeboost.cs|adaboost|bhboost|viboost|bblr"`
	Rounds int    `json:"rounds" default:"100" in:"[1,1048576]"`
}

// Log_odds are the ensemble's on x. Those of viboost are about half of the true ones.
type ensembleReply struct {
	Kind    string    `json:"kind"`
	LogOdds []float64 `json:"log_odds"`
	P       []float64 `json:"p"`
}

func buildEnsemble(ctx context.Context, q *ensembleRequest) (*ensembleReply, Classifier, error) {
	w := &ensemble.Window{Dim: len(q.X[0]), Labels: q.Y, Weights: q.Weights, Rounds: q.Rounds}
	if w.Weights == nil {
		w.Weights = slices.Repeat([]float64{1}, len(q.X))
	}
	for _, row := range q.X {
		for _, v := range row {
			w.Inputs = append(w.Inputs, float32(v))
		}
	}
	built := ensemble.Build(ctx, []ensemble.Kind{ensemble.Kind(q.Kind)}, w)[0]
	switch err := built.Err; {
	case err == nil:
	case errors.Is(err, ensemble.ErrOneClass):
		return nil, nil, wrong("y", "%w", err)
	case ctx.Err() != nil:
		return nil, nil, err
	default:
		return nil, nil, wrong("x", "%w", err)
	}
	e := built.Ensemble
	r := &ensembleReply{Kind: q.Kind}
	for _, x := range q.X {
		r.LogOdds = append(r.LogOdds, e.LogOdds(x))
		r.P = append(r.P, e.Prob(x))
	}
	return r, e, nil
}

// The default rounds are N/10, at least 1 and at most 100. The prior of a leaf counts as
// one row of weight 1. Columns are those that most rounds search: a third of them, at
// least 8, if not given. Bins are quantiles of the rows, whatever their weights.
type logitTreesRequest struct {
	examples
	weighted
	tested
	Rounds  *int    `json:"rounds" default:"null" in:"[1,1048576]"`
	Bins    int     `json:"bins" default:"32" in:"[2,255]"`
	Depth   int     `json:"depth" default:"4" in:"[1,5]"`
	Clip    float64 `json:"clip" default:"2" in:"(0,100]"`
	Shrink  float64 `json:"shrink" default:"0.3" in:"(0,1]"`
	Columns *int    `json:"columns" default:"null" in:"[1,1048576]"`
	Trim    float64 `json:"trim" default:"0.02" in:"(0,1)"`
}

// Splits stand by heap order: split k leads to 2k+1, where x_feature ≤ threshold, and to
// 2k+2. Feature −1 does not divide: all rows go left. Leaves stand from the left.
type logitTreesRound struct {
	Splits []logitTreesSplit `json:"splits"`
	Leaves []float64         `json:"leaves"`
}

type logitTreesSplit struct {
	Feature   int     `json:"feature"`
	Threshold float64 `json:"threshold"`
}

type logitTreesReply struct {
	Rounds []logitTreesRound `json:"rounds"`
	F      []float64         `json:"f"`
	D      []float64         `json:"d"` // for the round after the last
}

func logitTrees(ctx context.Context, q *logitTreesRequest) (*logitTreesReply, Classifier, error) {
	data, err := boost.Quantise(q.X, q.Bins)
	if err != nil {
		return nil, nil, wrong("x", "%w", err)
	}
	cfg := boost.LogitTreesConfig{Weights: q.Weights, Depth: q.Depth, Clip: q.Clip, Shrink: q.Shrink, Trim: q.Trim}
	if q.Rounds != nil {
		cfg.Rounds = *q.Rounds
	}
	if q.Columns != nil {
		cfg.Columns = *q.Columns
	}
	b, err := boost.NewLogitTrees(data, q.Y, cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := b.Train(ctx); err != nil {
		return nil, nil, err
	}
	r := &logitTreesReply{F: make([]float64, len(q.X)), D: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		round := logitTreesRound{Leaves: o.Leaves[:1<<o.Depth]}
		for _, s := range o.Splits[:1<<o.Depth-1] {
			round.Splits = append(round.Splits, logitTreesSplit{s.Feature, s.Threshold})
		}
		r.Rounds = append(r.Rounds, round)
	}
	b.FTo(r.F)
	b.WeightsTo(r.D)
	for i, d := range r.D {
		r.F[i] += 0 // −0 becomes 0
		if math.IsNaN(d) {
			r.D[i] = 0 // every p is the label to the last digit, and no weight is left
		}
	}
	return r, b.Ensemble(), nil
}
