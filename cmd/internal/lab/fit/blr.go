package fit

import (
	"hamlet/algos/blr"

	"gonum.org/v1/gonum/mat"
)

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
	return ClassifierFunc(func(x []float64) float64 { return blr.Exact(b.Moments(x)) })
}
