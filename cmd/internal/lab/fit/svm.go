package fit

import (
	"context"
	"errors"

	"hamlet/algos/lab/svm"
)

func init() { registerClassifier("svm.fit", svmFit) }

type svmFitRequest struct {
	examples
	tested
	weighted
	seeded         // the order of the rows
	C      float64 `json:"c" default:"1" in:"(0,∞)"`
	Gap    float64 `json:"gap" default:"1e-6" in:"(0,1]"` // of max(primal, 1)
	Passes int     `json:"passes" default:"200000" in:"[1,1048576]"`
}

// F is wᵀx, no log-odds: Prob of package svm says what p_test means.
type svmFitReply struct {
	W       []float64 `json:"w"`
	Alpha   []float64 `json:"alpha"`
	F       []float64 `json:"f"`
	Primal  float64   `json:"primal"`
	Dual    float64   `json:"dual"`
	Gap     float64   `json:"gap"`
	Support []int     `json:"support"`
	Errors  int       `json:"errors"`
	Passes  int       `json:"passes"`
}

func svmFit(ctx context.Context, q *svmFitRequest) (*svmFitReply, Classifier, error) {
	cfg := svm.Config{C: q.C, Gap: q.Gap, Passes: q.Passes, Seed: q.Seed}
	m, report, err := svm.Fit(ctx, cfg, svm.DenseRows(q.X), q.Y, q.Weights)
	if errors.Is(err, svm.ErrTooLarge) {
		return nil, nil, wrong("x", "%w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	r := &svmFitReply{
		Alpha: report.Alpha, F: make([]float64, len(q.X)),
		Primal: report.Primal, Dual: report.Dual, Gap: report.Gap(), Errors: report.Errors, Passes: report.Passes,
	}
	r.W, _ = m.Weights()
	for i, x := range q.X {
		r.F[i] = m.Decision(x)
		if report.Alpha[i] > 0 {
			r.Support = append(r.Support, i)
		}
	}
	return r, m, nil
}
