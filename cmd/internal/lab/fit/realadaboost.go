package fit

import (
	"context"

	"hamlet/algos/boost"
	"hamlet/algos/lab/poe"
	"hamlet/algos/poeboost"
)

func init() { registerClassifier("realadaboost", realAdaBoost) }

// The learner stump partitions a feature by a threshold. The learner logistic is logistic
// regression on one feature, Real AdaBoost as POEBoost's table 2 has it; fitted, rate and
// criterion are for it alone, smoothing is for stumps alone. The default smoothing 1/N
// counts rows and not weights, and features are standardised by the rows.
type realAdaBoostRequest struct {
	examples
	weighted
	tested
	Rounds    int      `json:"rounds" default:"50" in:"[1,1048576]"`
	Smoothing *float64 `json:"smoothing" default:"null" in:"(0,∞)"` // 1/N; 0 would make leaves infinite
	Learner   string   `json:"learner" in:"stump|logistic"`
	Fitted    string   `json:"fitted" in:"step|newton"`         // as in poeboost.cs
	Rate      float64  `json:"rate" default:"1" in:"(0,1e200]"` // newton does not use it
	Criterion string   `json:"criterion" in:"p|z"`              // the largest Σ D P(y | x, h), as in the paper, or the least z
}

// A round with stumps has threshold, left and right. One with logistic regression has
// weight and bias, on the standardised scale of the feature, and mean_p = Σ D P(y | x, h).
type realAdaBoostRound struct {
	Feature    int      `json:"feature"`
	Threshold  *float64 `json:"threshold,omitempty"`
	Left       *float64 `json:"left,omitempty"`
	Right      *float64 `json:"right,omitempty"`
	Weight     *float64 `json:"weight,omitempty"`
	Bias       *float64 `json:"bias,omitempty"`
	MeanP      *float64 `json:"mean_p,omitempty"`
	Z          float64  `json:"z"`
	TrainError float64  `json:"train_error"`
}

type realAdaBoostReply struct {
	Rounds []realAdaBoostRound `json:"rounds"`
	F      []float64           `json:"f"`
}

func realAdaBoost(ctx context.Context, q *realAdaBoostRequest) (*realAdaBoostReply, Classifier, error) {
	if q.Learner == "logistic" {
		return q.logistic(ctx)
	}
	cfg := boost.RealAdaBoostConfig{Rounds: q.Rounds, Weights: q.relative()}
	if q.Smoothing != nil {
		cfg.Smoothing = *q.Smoothing
	}
	b, err := train(ctx, q.X, q.Y, boost.NewRealAdaBoost, cfg)
	if err != nil {
		return nil, nil, err
	}
	r := &realAdaBoostReply{F: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		t := o.Tree
		r.Rounds = append(r.Rounds, realAdaBoostRound{
			Feature: t.Root.Feature, Threshold: &t.Root.Threshold,
			Left: &t.Leaves[0], Right: &t.Leaves[3],
			Z: o.Z, TrainError: o.TrainError,
		})
	}
	b.FTo(r.F)
	return r, b.Ensemble(), nil
}

func (q *realAdaBoostRequest) logistic(ctx context.Context) (*realAdaBoostReply, Classifier, error) {
	if q.Smoothing != nil {
		return nil, nil, wrong("smoothing", "only stumps have leaves to smooth")
	}
	cfg := poe.RealAdaBoostConfig{Rounds: q.Rounds, Weights: q.relative(), Learner: poeboost.Step, Rate: q.Rate}
	if q.Fitted == "newton" {
		cfg.Learner = poeboost.Newton
	}
	if q.Criterion == "z" {
		cfg.Criterion = poe.LeastZ
	}
	b, err := train(ctx, q.X, q.Y, poe.NewRealAdaBoost, cfg)
	if err != nil {
		return nil, nil, err
	}
	r := &realAdaBoostReply{F: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		h := o.Hypothesis
		r.Rounds = append(r.Rounds, realAdaBoostRound{
			Feature: h.Feature, Weight: &h.Weight, Bias: &h.Bias, MeanP: &o.MeanProbability,
			Z: o.Z, TrainError: o.TrainError,
		})
	}
	b.LogOddsTo(r.F)
	for i := range r.F {
		r.F[i] /= 2
	}
	return r, b.Ensemble(), nil
}
