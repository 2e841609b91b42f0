package fit

import (
	"context"

	"hamlet/algos/lab/information"
	"hamlet/algos/lab/poe"
	"hamlet/algos/poeboost"
)

func init() { register("poe.algebra", poeAlgebra) }

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
