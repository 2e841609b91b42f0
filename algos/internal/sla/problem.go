package sla

import (
	"slices"

	"hamlet/algos/internal/triangle"
)

// A Problem is the labelled rows of a fit. Row i counts weight_i times. Every sum
// runs in the rows' order.
type Problem struct {
	Design
	N, D   int
	Y      []float64
	Weight []float64
	Total  float64 // Σ weight
}

// NewProblem copies x. It does not copy y and weight, which must not change later.
// A nil weight is 1 for each row.
func NewProblem(x [][]float64, y, weight []float64) *Problem {
	return ProblemOf(NewDense(x), len(x), len(x[0]), y, weight)
}

// ProblemOf is NewProblem for an n×d design.
func ProblemOf(m Design, n, d int, y, weight []float64) *Problem {
	p := &Problem{Design: m, N: n, D: d, Y: y, Weight: weight}
	if p.Weight == nil {
		p.Weight = slices.Repeat([]float64{1}, n)
	}
	for _, v := range p.Weight {
		p.Total += v
	}
	return p
}

// Margins sets dst_i to y_i·wᵀx_i.
func (p *Problem) Margins(dst, w []float64) {
	p.Products(dst, w)
	for i, y := range p.Y {
		dst[i] *= y
	}
}

// An Objective is the function of w that a fit minimises. Without a prior it is
// equation 39, Σ weight·loss + λ/2·|w|². With a prior it is the negative of equation
// 41, Σ weight·loss − Σ ln π(w_j). It belongs to one goroutine.
type Objective struct {
	*Problem
	Curve
	Lambda float64
	Prior  Prior     // if not nil, value and penaltyOf use it and not λ; gradient ignores it
	M      []float64 // scratch of length N: y_i·wᵀx_i, not yet multiplied by γ
	Scale  []float64 // scratch of length N: a row's factor in the gradient
}

// A Prior is a distribution of the coefficients.
type Prior interface {
	LogDensity(coef []float64) float64
	LogDensityOf(a float64) float64 // of one coefficient; it decreases with |a|
}

// NewObjective returns the objective with the losses of c and no prior.
func NewObjective(p *Problem, c Curve, λ float64) *Objective {
	return &Objective{Problem: p, Curve: c, Lambda: λ, M: make([]float64, p.N), Scale: make([]float64, p.N)}
}

// Value returns the objective at w.
func (o *Objective) Value(w []float64) float64 {
	o.Margins(o.M, w)
	return o.Sum() + o.penalty(w)
}

func (o *Objective) penalty(w []float64) float64 {
	if o.Prior != nil {
		return -o.Prior.LogDensity(w)
	}
	return float64(0.5 * float64(o.Lambda*triangle.Dot(w, w)))
}

// penaltyOf returns what a coefficient v adds to the penalty. It increases with |v|.
func (o *Objective) penaltyOf(v float64) float64 {
	if o.Prior != nil {
		return -o.Prior.LogDensityOf(v)
	}
	return float64(0.5 * float64(o.Lambda*float64(v*v)))
}

// Sum returns the sum of the losses at the margins o.m: the objective without penalty.
func (o *Objective) Sum() float64 {
	sum := 0.0
	for i, m := range o.M {
		loss, _ := o.Side(o.Y[i]).At(float64(o.Gamma * m))
		sum += float64(o.Weight[i] * loss)
	}
	return sum
}

// Gradient returns equation 39 at w and sets grad to its gradient. It ignores the
// prior: the penalty is λ/2·|w|².
func (o *Objective) Gradient(grad, w []float64) float64 {
	for j := range grad {
		grad[j] = float64(o.Lambda * w[j])
	}
	o.Margins(o.M, w)
	sum := 0.0
	for i, y := range o.Y {
		loss, slope := o.Side(y).At(float64(o.Gamma * o.M[i]))
		sum += float64(o.Weight[i] * loss)
		o.Scale[i] = float64(float64(float64(o.Weight[i]*slope)*o.Gamma) * y)
	}
	o.AddRows(grad, o.Scale)
	return sum + float64(0.5*float64(o.Lambda*triangle.Dot(w, w)))
}
