package fit

import (
	"context"

	"hamlet/algos/lab/information"
	"hamlet/algos/lab/poe"
	"hamlet/algos/poeboost"
)

func init() {
	registerClassifier("poeboost.ds", poeBoostDS)
	registerClassifier("poeboost.cs", poeBoostCS)
	register("poe.algebra", poeAlgebra)
}

type poeBoostDSRequest struct {
	examples
	weighted
	tested
	Rounds    int  `json:"rounds" default:"50" in:"[1,∞)"`
	HalfAlpha bool `json:"half_alpha" default:"false"`
}

type poeBoostDSRound struct {
	stump
	Epsilon           float64 `json:"epsilon"`
	Alpha             float64 `json:"alpha"`
	Constraint        float64 `json:"constraint"`
	MeanLogLikelihood float64 `json:"mean_log_likelihood"`
	TrainError        float64 `json:"train_error"`
}

type poeBoostDSReply struct {
	Rounds  []poeBoostDSRound `json:"rounds"`
	LogOdds []float64         `json:"log_odds"`
	D       []float64         `json:"d"` // for the round after the last
}

func poeBoostDS(ctx context.Context, q *poeBoostDSRequest) (*poeBoostDSReply, Classifier, error) {
	rate := poeboost.Greedy
	if q.HalfAlpha {
		rate = poeboost.Minimising
	}
	b, err := train(ctx, q.X, q.Y, poeboost.NewDiscrete, poeboost.DiscreteConfig{
		Rounds: q.Rounds, Weights: q.relative(), ErrorRate: rate,
	})
	if err != nil {
		return nil, nil, err
	}
	r := &poeBoostDSReply{LogOdds: make([]float64, len(q.X)), D: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		r.Rounds = append(r.Rounds, poeBoostDSRound{
			stump:   stumpOf(o.Stump),
			Epsilon: o.Epsilon, Alpha: o.Alpha, Constraint: o.Constraint,
			MeanLogLikelihood: o.MeanLogLikelihood, TrainError: o.TrainError,
		})
	}
	b.LogOddsTo(r.LogOdds)
	b.WeightsTo(r.D)
	return r, b.Ensemble(), nil
}

// Features are standardised by the rows, whatever their weights.
type poeBoostCSRequest struct {
	examples
	weighted
	tested
	Rounds  int     `json:"rounds" default:"50" in:"[1,∞)"`
	Learner string  `json:"learner" in:"step|newton"`
	Rate    float64 `json:"rate" default:"1" in:"(0,∞)"` // newton does not use it
}

// Weight and bias are on the standardised scale of the feature.
type poeBoostCSRound struct {
	Feature           int     `json:"feature"`
	Weight            float64 `json:"weight"`
	Bias              float64 `json:"bias"`
	EpsilonC          float64 `json:"epsilon_c"`
	PE                float64 `json:"p_e"`
	Constraint        float64 `json:"constraint"`
	MeanLogLikelihood float64 `json:"mean_log_likelihood"`
	TrainError        float64 `json:"train_error"`
}

type poeBoostCSReply struct {
	Rounds  []poeBoostCSRound `json:"rounds"`
	LogOdds []float64         `json:"log_odds"`
	D       []float64         `json:"d"` // for the round after the last
}

func poeBoostCS(ctx context.Context, q *poeBoostCSRequest) (*poeBoostCSReply, Classifier, error) {
	learner := poeboost.Step
	if q.Learner == "newton" {
		learner = poeboost.Newton
	}
	b, err := train(ctx, q.X, q.Y, poeboost.NewContinuous, poeboost.ContinuousConfig{
		Rounds: q.Rounds, Weights: q.relative(), Learner: learner, Rate: q.Rate,
	})
	if err != nil {
		return nil, nil, err
	}
	r := &poeBoostCSReply{LogOdds: make([]float64, len(q.X)), D: make([]float64, len(q.X))}
	for _, o := range b.Rounds() {
		r.Rounds = append(r.Rounds, poeBoostCSRound{
			Feature: o.Hypothesis.Feature, Weight: o.Hypothesis.Weight, Bias: o.Hypothesis.Bias,
			EpsilonC: o.ConfidenceError, PE: o.ErrorRate, Constraint: o.Constraint,
			MeanLogLikelihood: o.MeanLogLikelihood, TrainError: o.TrainError,
		})
	}
	b.LogOddsTo(r.LogOdds)
	b.WeightsTo(r.D)
	return r, b.Ensemble(), nil
}

type poeAlgebraRequest struct {
	D        []float64 `json:"d" shape:"N" in:"[0,1]"`
	PCorrect []float64 `json:"p_correct" shape:"N" in:"[0,1]"`
	PE       float64   `json:"p_e" in:"(0,1)"`
	PPrev    []float64 `json:"p_prev" shape:"N" in:"[0,1]"`
}

// Equation numbers are the paper's: (32), (13), (6), (30), (7) and (8).
type poeAlgebraReply struct {
	EpsilonC   float64   `json:"epsilon_c"`
	ExpertP    []float64 `json:"expert_p"`
	Constraint float64   `json:"constraint"`
	Bound      float64   `json:"bound"`
	DFromPrev  []float64 `json:"d_from_prev"`
	DNext      []float64 `json:"d_next"`
}

func poeAlgebra(_ context.Context, q *poeAlgebraRequest) (*poeAlgebraReply, error) {
	n := len(q.D)
	r := &poeAlgebraReply{ExpertP: make([]float64, n), DFromPrev: make([]float64, n), DNext: make([]float64, n)}
	var problems []error
	if err := information.Check(q.D); err != nil {
		problems = append(problems, wrong("d", "%w", err))
	}
	if !poe.WeightsTo(r.DFromPrev, q.PPrev) {
		problems = append(problems, wrong("p_prev", "1 everywhere: an ensemble that is certain leaves no weights"))
	}
	if err := joined(problems); err != nil {
		return nil, err
	}
	r.EpsilonC = poe.ConfidenceError(q.D, q.PCorrect)
	poeboost.ExpertTo(r.ExpertP, q.PCorrect, q.PE)
	r.Constraint = poeboost.Constraint(q.D, r.ExpertP)
	r.Bound = poe.Bound(q.D, q.PCorrect, q.PE)
	if !poe.NextWeightsTo(r.DNext, r.DFromPrev, r.ExpertP, q.PPrev) {
		return nil, wrong("p_e", "so near 0 or 1 that the expert leaves no weights")
	}
	return r, nil
}
