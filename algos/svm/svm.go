// Laboratory: dual coordinate descent.

package svm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"hamlet/algos/internal/logistic"
)

// A Config says what to fit. Zero fields mean the defaults.
type Config struct {
	C    float64 // weight of the losses against the penalty; 1
	Bias float64 // value of one more column, penalised like the others; 0 is none
	Gap  float64 // a fit ends when P − D ≤ Gap·max(P, 1); 10⁻⁶
	// Passes bounds the passes over the rows; 200,000. Then the fit ends with the gap
	// that it has.
	Passes int
	Seed   uint64 // of the order of the rows
}

// A Report says how a fit went. Invariant: Primal ≥ Dual but for rounding.
type Report struct {
	Primal, Dual float64   // P(w) and D(α)
	Alpha        []float64 // α, a number for each row
	Support      int       // rows with α > 0
	Errors       int       // rows with y·f(x) ≤ 0
	Passes       int
}

// Gap returns P − D, which bounds P(w) − min P.
func (r Report) Gap() float64 { return r.Primal - r.Dual }

// A Linear is the classifier f(x) = wᵀx + b.
type Linear struct {
	weights []float64
	bias    float64
}

// ErrTooLarge says that sums of the rows overflow. Scale the columns.
var ErrTooLarge = errors.New("the rows are too large")

// Check reports all that is wrong with cfg.
func (cfg Config) Check() error {
	var errs []error
	for _, f := range []struct {
		name string
		v    float64
	}{{"C", cfg.C}, {"Gap", cfg.Gap}} {
		if !(f.v >= 0 && f.v <= math.MaxFloat64) {
			errs = append(errs, fmt.Errorf("svm: %s is %v: want 0 for the default, or positive and finite", f.name, f.v))
		}
	}
	if math.IsNaN(cfg.Bias) || math.IsInf(cfg.Bias, 0) {
		errs = append(errs, fmt.Errorf("svm: Bias is %v: want a finite number", cfg.Bias))
	}
	if cfg.Passes < 0 {
		errs = append(errs, fmt.Errorf("svm: Passes is %d: want 0 for the default, or positive", cfg.Passes))
	}
	return errors.Join(errs...)
}

func (cfg Config) withDefaults() Config {
	if cfg.C == 0 {
		cfg.C = 1
	}
	if cfg.Gap == 0 {
		cfg.Gap = 1e-6
	}
	if cfg.Passes == 0 {
		cfg.Passes = 200_000
	}
	return cfg
}

// Fit fits a machine to rows with labels y = ±1. Row i counts weight[i] ≥ 0 times; nil
// weights are 1. The error says what is wrong with cfg, is ErrTooLarge, or is ctx's.
func Fit(ctx context.Context, cfg Config, x *Rows, y, weight []float64) (*Linear, Report, error) {
	if err := cfg.Check(); err != nil {
		return nil, Report{}, err
	}
	if n := x.Len(); n == 0 || len(y) != n || weight != nil && len(weight) != n {
		panic(fmt.Sprintf("svm: %d rows, %d labels, %d weights", n, len(y), len(weight)))
	}
	cfg = cfg.withDefaults()
	d, err := newDual(cfg, x, y, weight)
	if err != nil {
		return nil, Report{}, err
	}
	r, err := d.solve(ctx, cfg)
	if err != nil {
		return nil, Report{}, err
	}
	m := &Linear{weights: d.w[:x.columns], bias: float64(cfg.Bias * d.w[x.columns])}
	return m, r, nil
}

// Weights returns w, to read only, and b.
func (m *Linear) Weights() (w []float64, bias float64) { return m.weights, m.bias }

// Decision returns f(x) = wᵀx + b. x has as many entries as a row of the fit.
func (m *Linear) Decision(x []float64) float64 {
	if len(x) != len(m.weights) {
		panic(fmt.Sprintf("svm: a row of %d entries for %d weights", len(x), len(m.weights)))
	}
	sum := 0.0
	for j, v := range x {
		sum += float64(m.weights[j] * v)
	}
	return sum + m.bias
}

// DecisionOf returns f of row i.
func (m *Linear) DecisionOf(x *Rows, i int) float64 { return x.dot(i, m.weights) + m.bias }

// Label returns +1 where f(x) > 0, else −1.
func (m *Linear) Label(x []float64) float64 {
	if m.Decision(x) > 0 {
		return 1
	}
	return -1
}

// Prob returns σ(2f(x)), as boosters do. f is no log-odds here, since the hinge loss
// models no probability: take it as an order of rows.
func (m *Linear) Prob(x []float64) float64 { return logistic.Sigmoid(2 * m.Decision(x)) }

// A dual is the state of a fit. Invariant between steps: w = Σ αᵢyᵢxᵢ but for rounding.
type dual struct {
	x      *Rows
	y      []float64
	upper  []float64 // Uᵢ
	norm   []float64 // |xᵢ|², with the bias
	bias   float64
	w      []float64 // the last entry is the bias column's
	alpha  []float64
	active []int // rows that the passes visit
	random *rand.Rand
}

func newDual(cfg Config, x *Rows, y, weight []float64) (*dual, error) {
	n := x.Len()
	d := &dual{
		x: x, y: y, bias: cfg.Bias, upper: make([]float64, n), norm: make([]float64, n),
		w: make([]float64, x.columns+1), alpha: make([]float64, n),
		random: rand.New(rand.NewPCG(cfg.Seed, 0)),
	}
	total := 0.0
	for i := range n {
		d.upper[i] = cfg.C
		if weight != nil {
			d.upper[i] = float64(cfg.C * weight[i])
		}
		d.norm[i] = float64(cfg.Bias * cfg.Bias)
		_, value := x.row(i)
		for _, v := range value {
			d.norm[i] += float64(v * v)
		}
		total += float64(d.upper[i] * (1 + d.norm[i]))
		if d.norm[i] == 0 { // its loss is 1 whatever w is, and D grows with α
			d.alpha[i] = d.upper[i]
		}
	}
	if !(total <= math.Sqrt(math.MaxFloat64)) {
		return nil, ErrTooLarge
	}
	d.wake()
	return d, nil
}

// wake makes all rows active that can move, and returns their number.
func (d *dual) wake() int {
	d.active = d.active[:0]
	for i, v := range d.norm {
		if v > 0 && d.upper[i] > 0 {
			d.active = append(d.active, i)
		}
	}
	return len(d.active)
}

// solve runs passes until the gap is small enough.
func (d *dual) solve(ctx context.Context, cfg Config) (Report, error) {
	const measureEvery = 50 // passes at most between two measurements of the gap
	tolerance := 0.1        // of the projected gradient, until the next measurement
	most, least := math.Inf(1), math.Inf(-1)
	r := Report{Alpha: d.alpha}
	for r.Passes < cfg.Passes {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		r.Passes++
		most, least = d.pass(most, least)
		if most-least > tolerance && r.Passes%measureEvery != 0 {
			if most <= 0 {
				most = math.Inf(1)
			}
			if least >= 0 {
				least = math.Inf(-1)
			}
			continue
		}
		if d.measure(&r); r.Gap() <= float64(cfg.Gap*max(r.Primal, 1)) {
			break
		}
		if shrunk := len(d.active); d.wake() == shrunk {
			tolerance = max(float64(0.1*tolerance), 1e-15)
		}
		most, least = math.Inf(1), math.Inf(-1)
	}
	return r, d.measure(&r)
}

// pass visits every active row once, in a new order. It returns the extremes of the
// projected gradient. A row leaves if its α is at an end and its gradient points beyond
// the extremes of the pass before.
func (d *dual) pass(mostBefore, leastBefore float64) (most, least float64) {
	most, least = math.Inf(-1), math.Inf(1)
	d.random.Shuffle(len(d.active), func(i, j int) { d.active[i], d.active[j] = d.active[j], d.active[i] })
	kept := d.active[:0]
	last := len(d.w) - 1
	for _, i := range d.active {
		y, a, u := d.y[i], d.alpha[i], d.upper[i]
		z := d.x.dot(i, d.w) + float64(d.bias*d.w[last])
		g := float64(y*z) - 1
		projected := g
		switch {
		case a == 0:
			if g > mostBefore {
				continue
			}
			projected = min(g, 0)
		case a == u:
			if g < leastBefore {
				continue
			}
			projected = max(g, 0)
		}
		kept = append(kept, i)
		most, least = max(most, projected), min(least, projected)
		if projected == 0 {
			continue
		}
		next := min(max(a-g/d.norm[i], 0), u)
		d.alpha[i] = next
		s := float64((next - a) * y)
		d.x.addScaled(d.w, s, i)
		d.w[last] += float64(s * d.bias)
	}
	d.active = kept
	if len(kept) == 0 {
		return 0, 0
	}
	return most, least
}

// measure computes w from α anew, so that rounding does not add up, and sets the values
// of r that depend on both. The error is ErrTooLarge.
func (d *dual) measure(r *Report) error {
	clear(d.w)
	last := len(d.w) - 1
	sum := 0.0
	r.Support, r.Errors = 0, 0
	for i, a := range d.alpha {
		if a == 0 {
			continue
		}
		r.Support++
		sum += a
		s := float64(a * d.y[i])
		d.x.addScaled(d.w, s, i)
		d.w[last] += float64(s * d.bias)
	}
	square := 0.0
	for _, v := range d.w {
		square += float64(v * v)
	}
	loss := 0.0
	for i, y := range d.y {
		m := float64(y * (d.x.dot(i, d.w) + float64(d.bias*d.w[last])))
		if !(m > 0) {
			r.Errors++
		}
		loss += float64(d.upper[i] * max(0, 1-m))
	}
	r.Primal, r.Dual = float64(0.5*square)+loss, sum-float64(0.5*square)
	if math.IsNaN(r.Gap()) || math.IsInf(r.Primal, 0) {
		return ErrTooLarge
	}
	return nil
}
