package fit

import (
	"context"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
)

func init() { register("boosting.bounds", boostingBounds) }

// AdaBoost over stumps with what the slides say of its errors. Theta are margins, chosen
// before the data are seen. The bounds on new examples fail with probability at most delta.
type boostingBoundsRequest struct {
	examples
	Rounds int       `json:"rounds" default:"50" in:"[1,1048576]"`
	Theta  []float64 `json:"theta" shape:"*" default:"[0.05,0.1,0.2,0.5]" in:"(0,1]"`
	Delta  float64   `json:"delta" default:"0.05" in:"(0,1]"`
}

// Of each round, train_error ≤ bound ≤ gamma_bound up to rounding. Vc_bound is one on
// the error on new examples; above 1 it says nothing.
type boostingBoundsRound struct {
	Epsilon    float64 `json:"epsilon"`
	Gamma      float64 `json:"gamma"` // ½ − ε
	Z          float64 `json:"z"`
	TrainError float64 `json:"train_error"`
	Bound      float64 `json:"bound"`       // ∏Z
	GammaBound float64 `json:"gamma_bound"` // exp(−2Σγ²)
	VCBound    float64 `json:"vc_bound"`
}

// Of each theta, share is the part of the rows whose margin is at most theta, bound is
// e^(θΣα)∏Z ≥ share, and error_bound is one on the error on new examples that does not
// depend on the rounds.
type boostingBoundsMargin struct {
	Theta      float64 `json:"theta"`
	Share      float64 `json:"share"`
	Bound      float64 `json:"bound"`
	ErrorBound float64 `json:"error_bound"`
}

type boostingBoundsReply struct {
	Rounds    []boostingBoundsRound  `json:"rounds"`
	Margins   []float64              `json:"margins"` // of the rows, normalised
	Thetas    []boostingBoundsMargin `json:"thetas"`
	LeastEdge *float64               `json:"least_edge"` // null without rounds
	Margin    float64                `json:"margin"`     // the least
}

func boostingBounds(ctx context.Context, q *boostingBoundsRequest) (*boostingBoundsReply, error) {
	b, err := train(ctx, q.X, q.Y, boost.NewAdaBoost, boost.AdaBoostConfig{Rounds: q.Rounds})
	if err != nil {
		return nil, err
	}
	r := &boostingBoundsReply{Margins: make([]float64, len(q.X))}
	for t, o := range b.Rounds() {
		edge := 1 - 2*o.Epsilon
		if r.LeastEdge == nil || edge < *r.LeastEdge {
			r.LeastEdge = &edge
		}
		r.Rounds = append(r.Rounds, boostingBoundsRound{
			Epsilon: o.Epsilon, Gamma: 0.5 - o.Epsilon, Z: o.Z,
			TrainError: o.TrainError, Bound: o.Bound, GammaBound: o.GammaBound,
			VCBound: boosting.VCBound(o.TrainError, t+1, len(q.X), len(q.X[0]), q.Delta),
		})
	}
	m := boosting.MarginsOf(b, q.Y, nil)
	m.To(r.Margins)
	r.Margin = m.Min()
	for _, θ := range q.Theta {
		r.Thetas = append(r.Thetas, boostingBoundsMargin{
			Theta: θ, Share: m.Share(θ), Bound: m.Bound(θ), ErrorBound: m.ErrorBound(θ, q.Delta),
		})
	}
	return r, nil
}
