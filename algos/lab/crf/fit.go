package crf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"
)

// ErrOneKind says that all measured pairs match, or that none does.
var ErrOneKind = errors.New("all pairs match, or none does")

// FitMatch returns v₀ and v₁ of the two normals that fit D best: the paper's way, which
// learns p(D | y) apart from p(y | x). The normals share their variance.
func FitMatch(samples []Sample) ([2]float64, error) {
	var n, sum, squares [2]float64
	each := func(visit func(kind int, d float64)) {
		for _, s := range samples {
			for l := range s.Graph.pairs {
				if !s.exclusive(l) {
					visit(int(s.matched(l)), s.D[l])
				}
			}
		}
	}
	each(func(kind int, d float64) { n[kind]++; sum[kind] += d })
	if n[0] == 0 || n[1] == 0 {
		return [2]float64{}, ErrOneKind
	}
	m0, m1 := sum[0]/n[0], sum[1]/n[1]
	each(func(kind int, d float64) {
		δ := d - sum[kind]/n[kind]
		squares[kind] += float64(δ * δ)
	})
	variance := (squares[0] + squares[1]) / (n[0] + n[1])
	if variance == 0 {
		return [2]float64{}, fmt.Errorf("crf: pairs of one kind all measure %v and %v", m0, m1)
	}
	slope := (m1 - m0) / variance
	return [2]float64{-float64(slope * (m0 + m1) / 2), slope}, nil
}

// A Report says how a fit went.
type Report struct {
	LossStart, LossEnd float64 // Σ Loss + λ/2·|(w, b, v)|² at the start and at the end
	Gradient           float64 // the largest entry of the gradient at the end
	Evaluations        int
}

// Fit returns the model that starts at start, keeps its likelihood, and has the (w, b, v)
// of a minimum of
//
//	Σ −ln p(y | x, D) + λ/2·|(w, b, v)|².
//
// With Mix = 0 that is the maximum-likelihood conditional random field, and the minimum is
// the only one for λ > 0. Otherwise it depends on start. A graph without pairs gives a
// classifier of sites alone. The error is ctx's.
func Fit(ctx context.Context, samples []Sample, start Model, λ float64) (Model, Report, error) {
	d := len(start.W)
	j := &objective{samples: samples, model: start, lambda: λ, grad: make([]float64, d+2)}
	j.model.W = make([]float64, d)
	at := append(slices.Clone(start.W), start.V[:]...)
	r := Report{LossStart: j.value(at)}
	problem := optimize.Problem{
		Func: j.value,
		Grad: func(grad, v []float64) {
			j.value(v)
			copy(grad, j.grad)
		},
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, ctx.Err() },
	}
	settings := &optimize.Settings{GradientThreshold: 1e-7 * float64(j.sites()), MajorIterations: 500}
	result, err := optimize.Minimize(problem, at, settings, &optimize.LBFGS{})
	if ctx.Err() != nil {
		return Model{}, Report{}, ctx.Err()
	}
	if result == nil { // an error with a result means that no step is better any more
		return Model{}, Report{}, fmt.Errorf("crf: learn the energy: %w", err)
	}
	r.LossEnd, r.Evaluations = j.value(result.X), j.evaluations
	for _, v := range j.grad {
		r.Gradient = max(r.Gradient, math.Abs(v))
	}
	return j.model, r, nil
}

// An objective is the function that Fit minimises.
type objective struct {
	samples     []Sample
	model       Model     // at at
	lambda      float64   // λ
	at          []float64 // where grad and loss are right; nil at first
	grad        []float64
	loss        float64
	field       Field
	slopes      []float64
	evaluations int
}

func (j *objective) sites() (n int) {
	for _, s := range j.samples {
		n += s.Graph.sites
	}
	return n
}

// value returns the objective at v = (w, b, v₀, v₁), and sets grad and model.
func (j *objective) value(v []float64) float64 {
	if j.at != nil && slices.Equal(j.at, v) {
		return j.loss
	}
	j.at = append(j.at[:0], v...)
	j.evaluations++
	d := len(j.model.W)
	copy(j.model.W, v)
	j.model.V = [2]float64{v[d], v[d+1]}
	j.loss = 0
	for k, x := range v {
		j.grad[k] = float64(j.lambda * x)
		j.loss += float64(0.5 * j.lambda * x * x)
	}
	for _, s := range j.samples {
		if len(j.slopes) < s.Graph.sites {
			j.slopes = make([]float64, s.Graph.sites)
		}
		j.loss += j.model.gradient(j.grad, s, &j.field, j.slopes)
	}
	return j.loss
}
