package fit

import (
	"context"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
	"hamlet/algos/lab/poe"
	"hamlet/algos/poeboost"
)

func init() {
	registerClassifier("adaboost", adaBoost)
	registerClassifier("realadaboost", realAdaBoost)
	registerClassifier("bhboost", bhBoost)
	registerClassifier("anyboost", anyBoost)
}

// A trainer is a booster.
type trainer interface {
	Train(ctx context.Context) error
}

// train builds a booster of labelled rows and runs it.
func train[B trainer, C any](ctx context.Context, x [][]float64, y []float64,
	build func(*boost.Data, []float64, C) (B, error), cfg C) (B, error) {
	var b B
	data, err := boost.NewData(x)
	if err != nil {
		return b, wrong("x", "%w", err)
	}
	if b, err = build(data, y, cfg); err != nil {
		return b, err
	}
	return b, b.Train(ctx)
}

// A stump is h(x) = polarity if x_feature > threshold, else −polarity.
type stump struct {
	Feature   int     `json:"feature"`
	Threshold float64 `json:"threshold"`
	Polarity  int     `json:"polarity"`
}

func stumpOf(s boost.Stump) stump { return stump{s.Feature, s.Threshold, s.Polarity} }

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
	// the largest Σ D P(y | x, h), as in the paper, or the least z
	Criterion string `json:"criterion" in:"p|z"`
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
