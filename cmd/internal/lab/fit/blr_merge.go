package fit

import (
	"context"
	"fmt"

	"hamlet/algos/blr"
)

func init() { registerClassifier("blr.merge", blrMerge) }

// cuts ascend, and every part has a row. Without cuts there is one part. The sites are
// jj at the fixed point.
type blrMergeRequest struct {
	blrRows
	blrPowers
	Cuts []int `json:"cuts" shape:"*"`
	blrPrior
}

type blrMergeReply struct {
	W         []float64   `json:"w"`
	V         [][]float64 `json:"v"`
	Precision [][]float64 `json:"precision"`
	Eta       []float64   `json:"eta"`
}

// blrMergeAtOnce bounds the numbers in the matrices of parts that are not yet merged.
// Merging is associative up to rounding.
const blrMergeAtOnce = 1 << 24

func blrMerge(ctx context.Context, q *blrMergeRequest) (*blrMergeReply, Classifier, error) {
	if err := q.check(); err != nil {
		return nil, nil, err
	}
	for k, first := range q.Cuts {
		if first < 1 || first >= len(q.X) {
			return nil, nil, wrong(fmt.Sprintf("cuts[%d]", k), "%d is not from 1 to %d", first, len(q.X)-1)
		}
		if k > 0 && first <= q.Cuts[k-1] {
			return nil, nil, wrong(fmt.Sprintf("cuts[%d]", k), "%d is not above the one before", first)
		}
	}
	d := len(q.X[0])
	var parts []*blr.Posterior
	first := 0
	for _, end := range append(q.Cuts, len(q.X)) {
		p, err := blr.New(blr.Config{Dim: d, Precision: q.vector(d), Approximation: blr.JaakkolaJordan})
		if err != nil {
			return nil, nil, err
		}
		for ; first < end; first++ {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			p.Update(q.X[first], q.Y[first], q.of(first))
		}
		parts = append(parts, p)
		if end == len(q.X) || len(parts)*d*d > blrMergeAtOnce {
			merged, err := blr.Merge(parts...)
			if err != nil {
				return nil, nil, err
			}
			parts = []*blr.Posterior{merged}
		}
	}
	r := &blrMergeReply{W: meanOf(parts[0]), V: covarianceOf(parts[0])}
	r.Eta, r.Precision = naturalOf(parts[0])
	return r, exactOf(parts[0]), nil
}
