package fit

import (
	"context"
	"fmt"

	"hamlet/algos/blr"
)

func init() { registerClassifier("blr.unlearn", blrUnlearn) }

// No event can be withdrawn twice. Withdrawing all leaves the prior. The sites are jj at
// the fixed point; withdrawing others does not change them.
type blrUnlearnRequest struct {
	blrRows
	blrPowers
	Forget []int `json:"forget" shape:"*"`
	blrPrior
}

type blrUnlearnReply struct {
	W        []float64    `json:"w"`
	V        [][]float64  `json:"v"`
	Receipts []blrReceipt `json:"receipts"`
}

type blrReceipt struct {
	Index int     `json:"index"`
	Xi    float64 `json:"xi"`
	KL    float64 `json:"kl"`
}

func blrUnlearn(ctx context.Context, q *blrUnlearnRequest) (*blrUnlearnReply, Classifier, error) {
	if err := q.check(); err != nil {
		return nil, nil, err
	}
	withdrawn := make(map[int]bool)
	for k, n := range q.Forget {
		if n < 0 || n >= len(q.X) {
			return nil, nil, wrong(fmt.Sprintf("forget[%d]", k), "%d is not from 0 to %d", n, len(q.X)-1)
		}
		if withdrawn[n] {
			return nil, nil, wrong(fmt.Sprintf("forget[%d]", k), "%d is forgotten already", n)
		}
		withdrawn[n] = true
	}
	d := len(q.X[0])
	p, err := blr.New(blr.Config{Dim: d, Precision: q.vector(d), Approximation: blr.JaakkolaJordan})
	if err != nil {
		return nil, nil, err
	}
	records := make([]blr.Site, len(q.X))
	for n, x := range q.X {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		records[n] = p.Update(x, q.Y[n], q.of(n))
	}
	r := &blrUnlearnReply{}
	for k, n := range q.Forget {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		receipt, err := p.Unlearn(records[n])
		if err != nil {
			return nil, nil, wrong(fmt.Sprintf("forget[%d]", k), "event %d: %w", n, err)
		}
		r.Receipts = append(r.Receipts, blrReceipt{Index: n, Xi: receipt.Xi, KL: receipt.KL})
	}
	r.W, r.V = meanOf(p), covarianceOf(p)
	return r, exactOf(p), nil
}
