package svm

import (
	"context"
	"math"
	"math/rand/v2"
)

// A dual is the state of a fit.
type dual struct {
	space
	y      []float64
	upper  []float64 // Uᵢ
	norm   []float64 // |xᵢ|²
	alpha  []float64
	active []int // rows that the passes visit
	random *rand.Rand
}

// A space holds w = Σ αᵢyᵢxᵢ, where x may be mapped by a kernel and has the bias column.
// Invariant between steps: w belongs to the dual's α but for rounding.
type space interface {
	square(i int) float64   // |xᵢ|²
	decision(i int) float64 // wᵀxᵢ
	add(s float64, i int)   // w ← w + s·xᵢ
	clear()                 // w ← 0
}

// newDual returns the state before the first pass. cfg has its defaults.
func newDual(cfg Config, x space, y, weight []float64) (*dual, error) {
	n := len(y)
	d := &dual{
		space: x, y: y, upper: make([]float64, n), norm: make([]float64, n), alpha: make([]float64, n),
		random: rand.New(rand.NewPCG(cfg.Seed, 0)),
	}
	total := 0.0
	for i := range n {
		d.upper[i] = cfg.C
		if weight != nil {
			d.upper[i] = float64(cfg.C * weight[i])
		}
		d.norm[i] = x.square(i)
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
	for _, i := range d.active {
		y, a, u := d.y[i], d.alpha[i], d.upper[i]
		g := float64(y*d.decision(i)) - 1
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
		d.add(float64((next-a)*y), i)
	}
	d.active = kept
	if len(kept) == 0 {
		return 0, 0
	}
	return most, least
}

// measure computes w from α again, so that rounding does not add up, and sets the values
// of r that depend on both, with |w|² = Σ αᵢyᵢ·wᵀxᵢ. The error is ErrTooLarge.
func (d *dual) measure(r *Report) error {
	d.clear()
	r.Support, r.Errors = 0, 0
	for i, a := range d.alpha {
		if a > 0 {
			r.Support++
			d.add(float64(a*d.y[i]), i)
		}
	}
	sum, square, loss := 0.0, 0.0, 0.0
	for i, y := range d.y {
		m := float64(y * d.decision(i))
		if !(m > 0) {
			r.Errors++
		}
		sum += d.alpha[i]
		square += float64(d.alpha[i] * m)
		loss += float64(d.upper[i] * max(0, 1-m))
	}
	r.Primal, r.Dual = float64(0.5*square)+loss, sum-float64(0.5*square)
	if math.IsNaN(r.Gap()) || math.IsInf(r.Primal, 0) {
		return ErrTooLarge
	}
	return nil
}
