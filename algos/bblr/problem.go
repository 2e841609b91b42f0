package bblr

import "slices"

// A problem is the labelled rows of a fit. Row i counts weight_i times. Every sum
// runs in the rows' order.
type problem struct {
	design
	n, d   int
	y      []float64
	weight []float64
	total  float64 // Σ weight
}

// newProblem copies x. It does not copy y and weight, which must not change later.
// A nil weight is 1 for each row.
func newProblem(x [][]float64, y, weight []float64) *problem {
	return problemOf(newDense(x), len(x), len(x[0]), y, weight)
}

// problemOf is newProblem for an n×d design.
func problemOf(m design, n, d int, y, weight []float64) *problem {
	p := &problem{design: m, n: n, d: d, y: y, weight: weight}
	if p.weight == nil {
		p.weight = slices.Repeat([]float64{1}, n)
	}
	for _, v := range p.weight {
		p.total += v
	}
	return p
}

// margins sets dst_i to y_i·wᵀx_i.
func (p *problem) margins(dst, w []float64) {
	p.products(dst, w)
	for i, y := range p.y {
		dst[i] *= y
	}
}

// A curve is the loss as a function of the margin v = yγz. Each label has its own
// function, a side.
type curve struct {
	plus, minus side
	gamma       float64
}

func (l Likelihood) curve() curve {
	c := curve{plus: l.side(1), minus: l.side(-1), gamma: l.Gamma}
	c.plus.levelOff()
	c.minus.levelOff()
	return c
}

func (c *curve) side(y float64) *side {
	if y > 0 {
		return &c.plus
	}
	return &c.minus
}

// An objective is the function of w that a fit minimises. Without a prior it is
// equation 39, Σ weight·loss + λ/2·|w|². With a prior it is the negative of equation
// 41, Σ weight·loss − Σ ln π(w_j). It belongs to one goroutine.
type objective struct {
	*problem
	curve
	lambda float64
	prior  prior     // if not nil, value and penaltyOf use it and not λ; gradient ignores it
	m      []float64 // scratch of length N: y_i·wᵀx_i, not yet multiplied by γ
	scale  []float64 // scratch of length N: a row's factor in the gradient
}

// A prior is a distribution of the coefficients.
type prior interface {
	LogDensity(coef []float64) float64
	logDensity(a float64) float64 // of one coefficient; it decreases with |a|
}

func newObjective(p *problem, c curve, λ float64) *objective {
	return &objective{problem: p, curve: c, lambda: λ, m: make([]float64, p.n), scale: make([]float64, p.n)}
}

// value returns the objective at w.
func (o *objective) value(w []float64) float64 {
	o.margins(o.m, w)
	return o.sum() + o.penalty(w)
}

func (o *objective) penalty(w []float64) float64 {
	if o.prior != nil {
		return -o.prior.LogDensity(w)
	}
	return float64(0.5 * float64(o.lambda*dot(w, w)))
}

// penaltyOf returns what a coefficient v adds to the penalty. It increases with |v|.
func (o *objective) penaltyOf(v float64) float64 {
	if o.prior != nil {
		return -o.prior.logDensity(v)
	}
	return float64(0.5 * float64(o.lambda*float64(v*v)))
}

// sum returns the sum of the losses at the margins o.m: the objective without penalty.
func (o *objective) sum() float64 {
	sum := 0.0
	for i, m := range o.m {
		loss, _ := o.side(o.y[i]).at(float64(o.gamma * m))
		sum += float64(o.weight[i] * loss)
	}
	return sum
}

// gradient returns equation 39 at w and sets grad to its gradient. It ignores the
// prior: the penalty is λ/2·|w|².
func (o *objective) gradient(grad, w []float64) float64 {
	for j := range grad {
		grad[j] = float64(o.lambda * w[j])
	}
	o.margins(o.m, w)
	sum := 0.0
	for i, y := range o.y {
		loss, slope := o.side(y).at(float64(o.gamma * o.m[i]))
		sum += float64(o.weight[i] * loss)
		o.scale[i] = float64(float64(float64(o.weight[i]*slope)*o.gamma) * y)
	}
	o.addRows(grad, o.scale)
	return sum + float64(0.5*float64(o.lambda*dot(w, w)))
}
