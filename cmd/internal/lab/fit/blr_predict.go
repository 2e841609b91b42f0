package fit

import (
	"context"
	"math"

	"hamlet/algos/lab/vblr"

	"gonum.org/v1/gonum/mat"
)

func init() { registerClassifier("blr.predict", blrPredict) }

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
