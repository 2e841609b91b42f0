package bblr

import "slices"

// A problem is the labelled rows of a fit, stored so that sums over rows and over
// columns are fast. Row i counts weight_i times. Every sum runs in the rows' order.
type problem struct {
	n, d   int
	rows   []float64 // N×D by rows
	cols   []float64 // D×N by rows: the transpose of rows, so that a column of x is contiguous
	y      []float64
	weight []float64
	total  float64 // Σ weight
}

// newProblem copies x. It does not copy y and weight, which must not change later.
// A nil weight is 1 for each row.
func newProblem(x [][]float64, y, weight []float64) *problem {
	p := &problem{n: len(x), d: len(x[0]), y: y, weight: weight}
	p.rows = make([]float64, p.n*p.d)
	for i, row := range x {
		copy(p.row(i), row)
	}
	p.layColumns()
	p.weigh()
	return p
}

// weigh sets the total weight, and all weights to 1 if there are none.
func (p *problem) weigh() {
	if p.weight == nil {
		p.weight = slices.Repeat([]float64{1}, p.n)
	}
	for _, v := range p.weight {
		p.total += v
	}
}

// layColumns sets cols to the transpose of rows.
func (p *problem) layColumns() {
	p.cols = make([]float64, p.n*p.d)
	for i := range p.n {
		for j, v := range p.row(i) {
			p.cols[j*p.n+i] = v
		}
	}
}

func (p *problem) row(i int) []float64    { return p.rows[i*p.d : (i+1)*p.d] }
func (p *problem) column(j int) []float64 { return p.cols[j*p.n : (j+1)*p.n] }

// margins sets dst_i to y_i·wᵀx_i. If more than three quarters of the coefficients w
// are 0, it adds up only the columns of the others.
func (p *problem) margins(dst, w []float64) {
	support := 0
	for _, v := range w {
		if v != 0 {
			support++
		}
	}
	if 4*support >= p.d {
		i := 0
		for ; i+2 <= len(dst); i += 2 {
			a, b := dot2(w, p.row(i), p.row(i+1))
			dst[i], dst[i+1] = p.y[i]*a, p.y[i+1]*b
		}
		if i < len(dst) {
			dst[i] = p.y[i] * dot(w, p.row(i))
		}
		return
	}
	clear(dst)
	for j, v := range w {
		if v != 0 {
			addScaled(dst, v, p.column(j))
		}
	}
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
}

// A prior is a distribution of the coefficients.
type prior interface {
	LogDensity(coef []float64) float64
	logDensity(a float64) float64 // of one coefficient; it decreases with |a|
}

func newObjective(p *problem, c curve, λ float64) *objective {
	return &objective{problem: p, curve: c, lambda: λ, m: make([]float64, p.n)}
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
	rows := rowSum{dst: grad}
	sum := 0.0
	for i, y := range o.y {
		loss, slope := o.side(y).at(float64(o.gamma * o.m[i]))
		sum += float64(o.weight[i] * loss)
		if s := float64(float64(float64(o.weight[i]*slope)*o.gamma) * y); s != 0 {
			rows.add(s, o.row(i))
		}
	}
	rows.finish()
	return sum + float64(0.5*float64(o.lambda*dot(w, w)))
}
