package fit

import (
	"context"

	"hamlet/algos/boost"
)

func init() { registerClassifier("anyboost", anyBoost) }

type anyBoostRequest struct {
	examples
	tested
	Rounds int    `json:"rounds" default:"50" in:"[1,1048576]"`
	Cost   string `json:"cost" in:"exp|logit|tanh"`
	Step   string `json:"step" in:"line|theorem"`
}

// Stopped is in the last round alone. From f = 0 the line search with tanh finds
// no minimum, whatever the data: it ends after one round with α = 64.
type anyBoostRound struct {
	Feature   int     `json:"feature"`
	Threshold float64 `json:"threshold"`
	Polarity  int     `json:"polarity"`
	Alpha     float64 `json:"alpha"`
	Cost      float64 `json:"cost"`
	Stopped   *string `json:"stopped,omitempty"`
}

type anyBoostReply struct {
	Rounds []anyBoostRound `json:"rounds"`
	F      []float64       `json:"f"`
}

func anyBoost(ctx context.Context, q *anyBoostRequest) (*anyBoostReply, Classifier, error) {
	cfg := boost.AnyBoostConfig{Rounds: q.Rounds}
	switch q.Cost {
	case "logit":
		cfg.Cost = boost.LogitCost
	case "tanh":
		cfg.Cost = boost.TanhCost
	}
	if q.Step == "theorem" {
		cfg.Step = boost.TheoremStep
		if cfg.Cost == boost.ExpCost {
			return nil, nil, wrong("step", "theorem is not for the cost exp, whose curvature has no bound")
		}
	}
	data, err := boost.NewData(q.X)
	if err != nil {
		return nil, nil, wrong("x", "%w", err)
	}
	b, err := boost.NewAnyBoost(data, q.Y, cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := b.Train(ctx); err != nil {
		return nil, nil, err
	}
	r := &anyBoostReply{F: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		r.Rounds = append(r.Rounds, anyBoostRound{
			Feature: o.Stump.Feature, Threshold: o.Stump.Threshold, Polarity: o.Stump.Polarity,
			Alpha: o.Alpha, Cost: o.Cost,
		})
	}
	if n := len(r.Rounds); n > 0 {
		reason := b.Stopped().String()
		r.Rounds[n-1].Stopped = &reason
	}
	b.FTo(r.F)
	return r, b.Ensemble(), nil
}
