package fit

import (
	"context"

	"hamlet/algos/lab/boosting"
)

func init() { registerClassifier("anyboost", anyBoost) }

type anyBoostRequest struct {
	examples
	weighted
	tested
	Rounds int    `json:"rounds" default:"50" in:"[1,1048576]"`
	Cost   string `json:"cost" in:"exp|logit|tanh"`
	Step   string `json:"step" in:"line|theorem"`
}

// Only the last round has Stopped. With tanh the line search from f = 0 finds no
// minimum; the fit ends after one round with α = 64.
type anyBoostRound struct {
	stump
	Alpha   float64 `json:"alpha"`
	Cost    float64 `json:"cost"`
	Stopped *string `json:"stopped,omitempty"`
}

type anyBoostReply struct {
	Rounds []anyBoostRound `json:"rounds"`
	F      []float64       `json:"f"`
}

func anyBoost(ctx context.Context, q *anyBoostRequest) (*anyBoostReply, Classifier, error) {
	cfg := boosting.AnyBoostConfig{Rounds: q.Rounds, Weights: q.relative()}
	switch q.Cost {
	case "logit":
		cfg.Cost = boosting.LogitCost
	case "tanh":
		cfg.Cost = boosting.TanhCost
	}
	if q.Step == "theorem" {
		cfg.Step = boosting.TheoremStep
		if cfg.Cost == boosting.ExpCost {
			return nil, nil, wrong("step", "theorem is not for the cost exp, whose curvature has no bound")
		}
	}
	b, err := train(ctx, q.X, q.Y, boosting.NewAnyBoost, cfg)
	if err != nil {
		return nil, nil, err
	}
	r := &anyBoostReply{F: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		r.Rounds = append(r.Rounds, anyBoostRound{
			stump: stumpOf(o.Stump),
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
