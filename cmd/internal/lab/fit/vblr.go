package fit

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/lab/vblr"
)

func init() {
	registerClassifier("blr.batch", blrBatch)
	registerClassifier("blr.ard", blrARD)
	registerClassifier("blr.predict", blrPredict)
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
// max_iterations is no error. With automatic relevance determination there is an α for each weight.
type vblrReply[Alpha float64 | []float64] struct {
	W          []float64   `json:"w"`
	V          [][]float64 `json:"v"`
	LogDetV    float64     `json:"log_det_v"`
	EAlpha     Alpha       `json:"e_alpha"`
	AN         float64     `json:"a_n"`
	BN         Alpha       `json:"b_n"`
	Bound      float64     `json:"bound"`
	BoundTrace []float64   `json:"bound_trace"`
	Xi         []float64   `json:"xi"`
	Iterations int         `json:"iterations"`
}

type (
	blrBatchReply = vblrReply[float64]
	blrARDReply   = vblrReply[[]float64]
)

func vblrReplyOf[Alpha float64 | []float64](b *vblr.Batch, eAlpha, bN Alpha) *vblrReply[Alpha] {
	return &vblrReply[Alpha]{
		W: meanOf(b), V: covarianceOf(b), LogDetV: b.LogDetV, EAlpha: eAlpha, AN: b.AN, BN: bN,
		Bound: b.Bound, BoundTrace: b.Trace, Xi: b.Xi, Iterations: b.Iterations,
	}
}

func blrBatch(ctx context.Context, q *blrBatchRequest) (*blrBatchReply, Classifier, error) {
	b, err := q.fit(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	return vblrReplyOf(b, b.EAlpha[0], b.BN[0]), exactOf(b), nil
}

func blrARD(ctx context.Context, q *blrBatchRequest) (*blrARDReply, Classifier, error) {
	b, err := q.fit(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	return vblrReplyOf(b, b.EAlpha, b.BN), exactOf(b), nil
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

// v must be symmetric to 1e-9 of its largest entry, and positive semidefinite to 1e-10
// of its diagonal. v and its transpose are averaged. With v = 0, p = σ(wᵀx).
type blrPredictRequest struct {
	W     []float64   `json:"w" shape:"D" in:"[-1e30,1e30]"`
	V     [][]float64 `json:"v" shape:"D×D" in:"[-1e30,1e30]"`
	XTest [][]float64 `json:"x_test" shape:"M×D" in:"[-1e30,1e30]"`
}

func (q *blrPredictRequest) testRows() [][]float64 { return q.XTest }

// Lists have an entry per row. p_test, at the end of the reply, is exact.
type blrPredictReply struct {
	BoundPlus  []float64 `json:"bound_plus"`
	BoundMinus []float64 `json:"bound_minus"`
	Normalised []float64 `json:"normalised"`
	Probit     []float64 `json:"probit"`
	Exact      []float64 `json:"exact"`
	IntervalLo []float64 `json:"interval_lo"`
	IntervalHi []float64 `json:"interval_hi"`
}

func blrPredict(ctx context.Context, q *blrPredictRequest) (*blrPredictReply, Classifier, error) {
	v, err := symmetric("v", q.V)
	if err != nil {
		return nil, nil, err
	}
	g, err := vblr.NewGaussian(q.W, v)
	if err != nil {
		return nil, nil, wrong("v", "%w", err)
	}
	r := &blrPredictReply{}
	for _, x := range q.XTest {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		m, a := g.Moments(x)
		p := vblr.Predict(m, a, 0.95)
		r.BoundPlus = append(r.BoundPlus, p.BoundPlus)
		r.BoundMinus = append(r.BoundMinus, p.BoundMinus)
		r.Normalised = append(r.Normalised, p.Normalised)
		r.Probit = append(r.Probit, p.Probit)
		r.Exact = append(r.Exact, p.Exact)
		r.IntervalLo = append(r.IntervalLo, p.Lo)
		r.IntervalHi = append(r.IntervalHi, p.Hi)
	}
	return r, exactOf(g), nil
}

// symmetric returns the mean of a square matrix and its transpose, which may differ by
// rounding.
func symmetric(field string, rows [][]float64) (*mat.SymDense, error) {
	largest := 0.0
	for _, row := range rows {
		for _, c := range row {
			largest = max(largest, math.Abs(c))
		}
	}
	s := mat.NewSymDense(len(rows), nil)
	for i, row := range rows {
		for j := i; j < len(row); j++ {
			if math.Abs(row[j]-rows[j][i]) > 1e-9*largest {
				return nil, wrong(field, "not symmetric: [%d][%d] is %v, [%d][%d] is %v", i, j, row[j], j, i, rows[j][i])
			}
			s.SetSym(i, j, row[j]/2+rows[j][i]/2)
		}
	}
	return s, nil
}
