// Laboratory: logistic regression, from which the paper's variants start.

package bblr

import (
	"context"
	"math"

	"hamlet/algos/internal/logistic"
)

const (
	mostNewton   = 20  // Newton steps at most; 1 or 2 are usual
	widestNewton = 256 // columns; a step costs N·D²/2
)

// polish moves w to the minimum of o, a penalised logistic regression, by Newton's
// method. w must be near it. A descent stops where values no longer differ, at a
// mean gradient near 10⁻⁸ or, if columns differ much in scale, far above. polish
// ends before a step that does not halve the gradient. The error is ctx's.
func (o *objective) polish(ctx context.Context, w []float64) error {
	if o.d > widestNewton {
		return nil
	}
	grad, next, trial := make([]float64, o.d), make([]float64, o.d), make([]float64, o.d)
	hessian := make([]float64, o.d*o.d)
	o.gradient(grad, w)
	for range mostNewton {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !(norm(grad) > float64(1e-13*o.total)) {
			return nil
		}
		o.hessianTo(hessian, w)
		copy(trial, grad)
		if !solve(hessian, trial) {
			return nil
		}
		for j, v := range w {
			trial[j] = v - trial[j]
		}
		o.gradient(next, trial)
		if !(norm(next) <= float64(0.5*norm(grad))) {
			return nil
		}
		copy(w, trial)
		grad, next = next, grad
	}
	return nil
}

// hessianTo sets the lower triangle of h, D×D by rows, to Σ weight·σ(v)σ(−v)·xxᵀ + λ
// at v = wᵀx.
func (o *objective) hessianTo(h, w []float64) {
	clear(h)
	for j := range o.d {
		h[j*o.d+j] = o.lambda
	}
	scratch := make([]float64, o.d)
	for i := range o.n {
		row := o.row(scratch, i)
		e := logistic.Exp(-math.Abs(dot(w, row)))
		big := 1 / (1 + e)
		s := float64(o.weight[i] * float64(float64(e*big)*big))
		if s == 0 {
			continue
		}
		for j, v := range row {
			addScaled(h[j*o.d:j*o.d+j+1], float64(s*v), row[:j+1])
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
			row[k] = (row[k] - dot(row[:k], other[:k])) / other[k]
		}
		pivot := row[j] - dot(row[:j], row[:j])
		if !(pivot > 0 && pivot <= math.MaxFloat64) {
			return false
		}
		row[j] = math.Sqrt(pivot)
		b[j] = (b[j] - dot(row[:j], b[:j])) / row[j]
	}
	for j := d - 1; j >= 0; j-- {
		b[j] /= a[j*d+j]
		addScaled(b[:j], -b[j], a[j*d:j*d+j])
	}
	return true
}

// logisticRegression returns the w that minimises Σ ln(1+e^−ywᵀx) + λ/2·|w|², λ >
// 0: equation 39 with Mix 0 and γ = 1. It descends to a mean gradient of 10⁻⁸ and
// then calls polish.
func logisticRegression(ctx context.Context, p *problem, λ float64) ([]float64, error) {
	o := newObjective(p, Likelihood{Theta: 0.5, Gamma: 1}.curve(), λ)
	w := make([]float64, p.d)
	_, err := newDescent(p.d).minimise(ctx, o, w, rates{
		max: 1 / p.total, min: 1e-12 / p.total, shrink: 0.5, tolerance: 1e-8 * p.total, most: maxDescent,
	})
	if err == nil {
		err = o.polish(ctx, w)
	}
	return w, err
}
