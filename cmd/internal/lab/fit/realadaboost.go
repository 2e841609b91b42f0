package fit

import (
	"context"

	"hamlet/algos/boost"
)

func init() { registerClassifier("realadaboost", realAdaBoost) }

type realAdaBoostRequest struct {
	examples
	tested
	Rounds    int      `json:"rounds" default:"50" in:"[1,1048576]"`
	Smoothing *float64 `json:"smoothing" default:"null" in:"(0,∞)"` // 1/N; 0 would make leaves infinite
}

type realAdaBoostRound struct {
	Feature    int     `json:"feature"`
	Threshold  float64 `json:"threshold"`
	Left       float64 `json:"left"`
	Right      float64 `json:"right"`
	Z          float64 `json:"z"`
	TrainError float64 `json:"train_error"`
}

type realAdaBoostReply struct {
	Rounds []realAdaBoostRound `json:"rounds"`
	F      []float64           `json:"f"`
}

func realAdaBoost(ctx context.Context, q *realAdaBoostRequest) (*realAdaBoostReply, Classifier, error) {
	cfg := boost.RealAdaBoostConfig{Rounds: q.Rounds}
	if q.Smoothing != nil {
		cfg.Smoothing = *q.Smoothing
	}
	b, err := train(ctx, q.X, q.Y, boost.NewRealAdaBoost, cfg)
	if err != nil {
		return nil, nil, err
	}
	r := &realAdaBoostReply{F: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		r.Rounds = append(r.Rounds, realAdaBoostRound{
			Feature: o.Tree.Root.Feature, Threshold: o.Tree.Root.Threshold,
			Left: o.Tree.Leaves[0], Right: o.Tree.Leaves[3],
			Z: o.Z, TrainError: o.TrainError,
		})
	}
	b.FTo(r.F)
	return r, b.Ensemble(), nil
}
