package fit

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/blr"
)

func init() {
	register("blr.site", blrSite)
	registerClassifier("blr.incremental", blrIncremental)
	registerClassifier("blr.merge", blrMerge)
	registerClassifier("blr.unlearn", blrUnlearn)
}

// Common parts of the algorithms of package blr. p_test is the exact predictive
// probability, E σ(z) under z ~ N(wᵀx, xᵀVx).

// blrRows are labelled rows, and rows to classify. Inputs beyond ±1e30 are refused:
// package blr would shorten such rows.
type blrRows struct {
	X     [][]float64 `json:"x" shape:"N×D" in:"[-1e30,1e30]"`
	Y     []float64   `json:"y" shape:"N" in:"±1"`
	XTest [][]float64 `json:"x_test" shape:"M×D" in:"[-1e30,1e30]" default:"null"`
}

func (r *blrRows) testRows() [][]float64 { return r.XTest }

// blrPowers are the powers of the rows' likelihoods, as label trust sets them. A row makes
// one site, whatever its power, so a weight of 2 is not quite a row that stands there twice.
type blrPowers struct {
	Weights []float64 `json:"weights" shape:"N" in:"[1e-6,2]" default:"null"`
}

// of returns the power of row n.
func (p *blrPowers) of(n int) float64 {
	if p.Weights == nil {
		return 1
	}
	return p.Weights[n]
}

// blrMaxDim bounds D: a reply holds D×D matrices.
const blrMaxDim = 4096

func (r *blrRows) check() error {
	if d := len(r.X[0]); d > blrMaxDim {
		return wrong("x", "%d columns where %d are the most", d, blrMaxDim)
	}
	return nil
}

// blrPrior is the precision of each weight in the prior.
type blrPrior struct {
	PriorPrecision *float64 `json:"prior_precision" in:"[1e-30,1e30]" default:"null"` // default: D
}

// vector returns the precision of all d weights.
func (p *blrPrior) vector(d int) []float64 {
	v := make([]float64, d)
	for j := range v {
		v[j] = float64(d)
		if p.PriorPrecision != nil {
			v[j] = *p.PriorPrecision
		}
	}
	return v
}

// A belief is N(w, V).
type belief interface {
	Dim() int
	MeanTo(dst []float64)
	CovarianceTo(dst *mat.SymDense)
	Moments(x []float64) (m, a float64)
}

func meanOf(b belief) []float64 {
	w := make([]float64, b.Dim())
	b.MeanTo(w)
	return w
}

func covarianceOf(b belief) [][]float64 {
	var v mat.SymDense
	b.CovarianceTo(&v)
	return rowsOf(&v)
}

// naturalOf returns η and Λ.
func naturalOf(p *blr.Posterior) (eta []float64, lambda [][]float64) {
	eta = make([]float64, p.Dim())
	var m mat.SymDense
	p.NaturalTo(eta, &m)
	return eta, rowsOf(&m)
}

// exactOf is the classifier of a belief.
func exactOf(b belief) Classifier {
	return classifierFunc(func(x []float64) float64 { return blr.Exact(b.Moments(x)) })
}

// A blrSiteRequest is one event, σ(y·z) under the belief z ~ N(m, a), in nats and
// nats². At a = 0, ξ = |m| and the bound is ln σ(ym). Squares of moments beyond 1e100
// overflow float64, so they are refused.
type blrSiteRequest struct {
	M float64 `json:"m" in:"[-1e100,1e100]"`
	A float64 `json:"a" in:"[0,1e100]"`
	Y float64 `json:"y" in:"±1"`
}

type blrSiteReply struct {
	Xi       float64 `json:"xi"`
	Lambda   float64 `json:"lambda"`
	LogBound float64 `json:"log_bound"`
	RVGAH    float64 `json:"rvga_h"`
	RVGAR    float64 `json:"rvga_r"`
}

func blrSite(_ context.Context, q *blrSiteRequest) (*blrSiteReply, error) {
	jj := blr.JaakkolaJordan.Solve(q.M, q.A, q.Y, 1)
	rvga := blr.ExactRVGA.Solve(q.M, q.A, q.Y, 1)
	return &blrSiteReply{
		Xi:       jj.Xi,
		Lambda:   blr.Lambda(jj.Xi),
		LogBound: jj.Evidence,
		RVGAH:    rvga.H,
		RVGAR:    rvga.R,
	}, nil
}

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
	for _, rec := range p.UpdateAll(q.X, q.Y, q.Weights) {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
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
