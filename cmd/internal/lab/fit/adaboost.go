package fit

import (
	"context"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
)

func init() { registerClassifier("adaboost", adaBoost) }

type adaBoostRequest struct {
	examples
	weighted
	tested
	Rounds int `json:"rounds" default:"50" in:"[1,1048576]"`
}

type adaBoostRound struct {
	stump
	Epsilon    float64 `json:"epsilon"`
	Alpha      float64 `json:"alpha"`
	Z          float64 `json:"z"`
	TrainError float64 `json:"train_error"`
	Bound      float64 `json:"bound"`
	GammaBound float64 `json:"gamma_bound"`
}

// Margins are 0 if no round was run.
type adaBoostReply struct {
	Rounds  []adaBoostRound `json:"rounds"`
	F       []float64       `json:"f"`
	Margins []float64       `json:"margins"`
	P       []float64       `json:"p"`
}

func adaBoost(ctx context.Context, q *adaBoostRequest) (*adaBoostReply, Classifier, error) {
	b, err := train(ctx, q.X, q.Y, boost.NewAdaBoost, boost.AdaBoostConfig{Rounds: q.Rounds, Weights: q.relative()})
	if err != nil {
		return nil, nil, err
	}
	n := len(q.X)
	r := &adaBoostReply{F: make([]float64, n), Margins: make([]float64, n), P: make([]float64, n)}
	for _, o := range b.Rounds() {
		r.Rounds = append(r.Rounds, adaBoostRound{
			stump:   stumpOf(o.Stump),
			Epsilon: o.Epsilon, Alpha: o.Alpha, Z: o.Z,
			TrainError: o.TrainError, Bound: o.Bound, GammaBound: o.GammaBound,
		})
	}
	b.FTo(r.F)
	boosting.MarginsOf(b, q.Y, q.relative()).To(r.Margins)
	e := b.Ensemble()
	for i, x := range q.X {
		r.P[i] = e.Prob(x)
	}
	return r, e, nil
}
