package fit

import (
	"context"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
)

func init() { registerClassifier("bhboost", bhBoost) }

// Its smoothing e = 1/(N·bins) counts rows and not weights, so a weight of k is not quite
// a row that stands there k times.
type bhBoostRequest struct {
	examples
	weighted
	tested
	Rounds int `json:"rounds" default:"50" in:"[1,1048576]"`
	Bins   int `json:"bins" default:"16" in:"[1,255]"`
}

// A constant feature has all edges at its value and all rows in the last bin. It is
// chosen only if every feature is constant.
type bhBoostRound struct {
	Feature    int       `json:"feature"`
	Edges      []float64 `json:"edges"`
	Scores     []float64 `json:"scores"`
	BC         float64   `json:"bc"`
	Z          float64   `json:"z"`
	TrainError float64   `json:"train_error"`
}

type bhBoostReply struct {
	Rounds []bhBoostRound `json:"rounds"`
	F      []float64      `json:"f"`
}

func bhBoost(ctx context.Context, q *bhBoostRequest) (*bhBoostReply, Classifier, error) {
	over := func(d *boost.Data, y []float64, cfg boost.BHBoostConfig) (*boost.BHBoost, error) {
		return boost.NewBHBoostOver(d, y, boosting.EqualWidths(d, q.Bins), cfg)
	}
	b, err := train(ctx, q.X, q.Y, over, boost.BHBoostConfig{Rounds: q.Rounds, Weights: q.relative()})
	if err != nil {
		return nil, nil, err
	}
	r := &bhBoostReply{F: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		r.Rounds = append(r.Rounds, bhBoostRound{
			Feature: o.Profile.Feature, Edges: o.Profile.Edges, Scores: o.Profile.Scores,
			BC: o.BC, Z: o.Z, TrainError: o.TrainError,
		})
	}
	b.FTo(r.F)
	return r, b.Ensemble(), nil
}
