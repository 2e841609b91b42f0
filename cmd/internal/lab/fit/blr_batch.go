package fit

import (
	"context"

	"hamlet/algos/lab/vblr"
)

func init() {
	registerClassifier("blr.batch", blrBatch)
	registerClassifier("blr.ard", blrARD)
}

type blrBatchRequest struct {
	blrRows
	weighted              // powers of the likelihoods
	A0            float64 `json:"a0" in:"[1e-30,1e30]" default:"1e-2"`
	B0            float64 `json:"b0" in:"[1e-30,1e30]" default:"1e-4"`
	Tolerance     float64 `json:"tolerance" in:"(0,∞)" default:"1e-11"`
	MaxIterations int     `json:"max_iterations" in:"[1,∞)" default:"100000"`
}

// bound_trace has the bound after each iteration; bound is the last. Reaching
// max_iterations is no error.
type blrBatchReply struct {
	W          []float64   `json:"w"`
	V          [][]float64 `json:"v"`
	LogDetV    float64     `json:"log_det_v"`
	EAlpha     float64     `json:"e_alpha"`
	AN         float64     `json:"a_n"`
	BN         float64     `json:"b_n"`
	Bound      float64     `json:"bound"`
	BoundTrace []float64   `json:"bound_trace"`
	Xi         []float64   `json:"xi"`
	Iterations int         `json:"iterations"`
}

// A blrARDReply is a blrBatchReply with an α for each weight.
type blrARDReply struct {
	W          []float64   `json:"w"`
	V          [][]float64 `json:"v"`
	LogDetV    float64     `json:"log_det_v"`
	EAlpha     []float64   `json:"e_alpha"`
	AN         float64     `json:"a_n"`
	BN         []float64   `json:"b_n"`
	Bound      float64     `json:"bound"`
	BoundTrace []float64   `json:"bound_trace"`
	Xi         []float64   `json:"xi"`
	Iterations int         `json:"iterations"`
}

func blrBatch(ctx context.Context, q *blrBatchRequest) (*blrBatchReply, Classifier, error) {
	b, err := q.fit(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	return &blrBatchReply{
		W: meanOf(b), V: covarianceOf(b), LogDetV: b.LogDetV,
		EAlpha: b.EAlpha[0], AN: b.AN, BN: b.BN[0],
		Bound: b.Bound, BoundTrace: b.Trace, Xi: b.Xi, Iterations: b.Iterations,
	}, exactOf(b), nil
}

func blrARD(ctx context.Context, q *blrBatchRequest) (*blrARDReply, Classifier, error) {
	b, err := q.fit(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	return &blrARDReply{
		W: meanOf(b), V: covarianceOf(b), LogDetV: b.LogDetV,
		EAlpha: b.EAlpha, AN: b.AN, BN: b.BN,
		Bound: b.Bound, BoundTrace: b.Trace, Xi: b.Xi, Iterations: b.Iterations,
	}, exactOf(b), nil
}

func (q *blrBatchRequest) fit(ctx context.Context, ard bool) (*vblr.Batch, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	// r is the initial precision.
	if r := q.A0 / q.B0; r < 1e-30 || r > 1e30 {
		return nil, wrong("a0", "a0/b0 is %v, which is not in [1e-30,1e30]", r)
	}
	return vblr.Fit(ctx, q.X, q.Y, vblr.Config{
		ARD: ard, A0: q.A0, B0: q.B0, Tolerance: q.Tolerance, MaxIterations: q.MaxIterations, Weights: q.Weights,
	})
}
