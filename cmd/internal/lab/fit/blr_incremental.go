package fit

import (
	"context"

	"hamlet/algos/blr"
)

func init() { registerClassifier("blr.incremental", blrIncremental) }

// xi_tolerance is for the site jj; 0 asks for the fixed point. With block K ≤ 64, V and
// the precision are updated once in K events; results differ only by rounding. Larger
// blocks count as 64.
type blrIncrementalRequest struct {
	blrRows
	blrPowers
	blrPrior
	XiTolerance float64 `json:"xi_tolerance" in:"[0,∞)" default:"0"`
	Site        string  `json:"site" in:"jj|rvga"`
	Block       int     `json:"block" in:"[1,∞)" default:"1"`
}

// Lists with an entry per event hold the values after that event.
type blrIncrementalReply struct {
	W           []float64   `json:"w"`
	V           [][]float64 `json:"v"`
	Precision   [][]float64 `json:"precision"`
	Eta         []float64   `json:"eta"`
	Xi          []float64   `json:"xi,omitempty"`
	RVGAH       []float64   `json:"rvga_h,omitempty"`
	RVGAR       []float64   `json:"rvga_r,omitempty"`
	LogDetV     []float64   `json:"log_det_v"`
	LogEvidence []float64   `json:"log_evidence"`
	WTrace      [][]float64 `json:"w_trace"`
}

func blrIncremental(ctx context.Context, q *blrIncrementalRequest) (*blrIncrementalReply, Classifier, error) {
	if err := q.check(); err != nil {
		return nil, nil, err
	}
	d := len(q.X[0])
	cfg := blr.Config{Dim: d, Precision: q.vector(d), Approximation: blr.ExactRVGA, Block: min(q.Block, blr.MaxBlock)}
	if q.Site == "jj" {
		cfg.Approximation, cfg.XiTolerance = blr.JaakkolaJordan, q.XiTolerance
	}
	p, err := blr.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	r := &blrIncrementalReply{}
	for n, x := range q.X {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		rec := p.Update(x, q.Y[n], q.of(n))
		if q.Site == "jj" {
			r.Xi = append(r.Xi, rec.Xi)
		} else {
			r.RVGAH, r.RVGAR = append(r.RVGAH, rec.H), append(r.RVGAR, rec.R)
		}
		r.LogDetV = append(r.LogDetV, p.LogDetV())
		r.LogEvidence = append(r.LogEvidence, p.LogEvidence())
		r.WTrace = append(r.WTrace, meanOf(p))
	}
	r.W, r.V = meanOf(p), covarianceOf(p)
	r.Eta, r.Precision = naturalOf(p)
	return r, exactOf(p), nil
}
