package bblr

import (
	"context"
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/sla"
	"hamlet/algos/internal/triangle"
)

const (
	mostNewton   = 20  // Newton steps at most; 1 or 2 are usual
	widestNewton = 256 // columns; a step costs N·D²/2
)

// polish moves w to the minimum of o, a penalised logistic regression, by Newton's
// method. w must be near it. A descent stops where values no longer differ, at a
// mean gradient near 10⁻⁸ or, if columns differ much in scale, far above. polish
// ends before a step that does not halve the gradient. The error is ctx's.
func polish(ctx context.Context, o *sla.Objective, w []float64) error {
	if o.D > widestNewton {
		return nil
	}
	grad, next, trial := make([]float64, o.D), make([]float64, o.D), make([]float64, o.D)
	hessian := make([]float64, o.D*o.D)
	o.Gradient(grad, w)
	for range mostNewton {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !(sla.Norm(grad) > float64(1e-13*o.Total)) {
			return nil
		}
		hessianTo(hessian, o, w)
		copy(trial, grad)
		if !solve(hessian, trial) {
			return nil
		}
		for j, v := range w {
			trial[j] = v - trial[j]
		}
		o.Gradient(next, trial)
		if !(sla.Norm(next) <= float64(0.5*sla.Norm(grad))) {
			return nil
		}
		copy(w, trial)
		grad, next = next, grad
	}
	return nil
}

// hessianTo sets the lower triangle of h, D×D by rows, to Σ weight·σ(v)σ(−v)·xxᵀ + λ
// at v = wᵀx.
func hessianTo(h []float64, o *sla.Objective, w []float64) {
	clear(h)
	for j := range o.D {
		h[j*o.D+j] = o.Lambda
	}
	scratch := make([]float64, o.D)
	for i := range o.N {
		row := o.Row(scratch, i)
		e := logistic.Exp(-math.Abs(triangle.Dot(w, row)))
		big := 1 / (1 + e)
		s := float64(o.Weight[i] * float64(float64(e*big)*big))
		if s == 0 {
			continue
		}
		for j, v := range row {
			sla.AddScaled(h[j*o.D:j*o.D+j+1], float64(s*v), row[:j+1])
		}
	}
}

// solve replaces b by a⁻¹b and the lower triangle of the symmetric a by its
// Cholesky factor. It returns false if a is not positive definite.
func solve(a, b []float64) bool {
	d := len(b)
	for j := range d {
		row := a[j*d : j*d+d]
		for k := range j {
			other := a[k*d : k*d+d]
			row[k] = (row[k] - triangle.Dot(row[:k], other[:k])) / other[k]
		}
		pivot := row[j] - triangle.Dot(row[:j], row[:j])
		if !(pivot > 0 && pivot <= math.MaxFloat64) {
			return false
		}
		row[j] = math.Sqrt(pivot)
		b[j] = (b[j] - triangle.Dot(row[:j], b[:j])) / row[j]
	}
	for j := d - 1; j >= 0; j-- {
		b[j] /= a[j*d+j]
		sla.AddScaled(b[:j], -b[j], a[j*d:j*d+j])
	}
	return true
}

// logisticRegression returns the w that minimises Σ ln(1+e^−ywᵀx) + λ/2·|w|², λ >
// 0: equation 39 with Mix 0 and γ = 1. It descends to a mean gradient of 10⁻⁸ and
// then calls polish.
func logisticRegression(ctx context.Context, p *sla.Problem, λ float64) ([]float64, error) {
	o := sla.NewObjective(p, curveOf(Likelihood{Theta: 0.5, Gamma: 1}), λ)
	w := make([]float64, p.D)
	_, err := sla.NewDescent(p.D).Minimise(ctx, o, w, sla.Rates{
		Max: 1 / p.Total, Min: 1e-12 / p.Total, Shrink: 0.5, Tolerance: 1e-8 * p.Total, Most: sla.MaxDescent,
	})
	if err == nil {
		err = polish(ctx, o, w)
	}
	return w, err
}
