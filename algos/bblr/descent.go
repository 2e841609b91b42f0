package bblr

import (
	"context"
	"math"
)

// A smooth is a function of d coordinates. gradient sets grad and returns the
// value.
type smooth interface {
	gradient(grad, w []float64) float64
}

// A descent is gradient descent with a learning rate that shrinks until a step
// improves ("vanilla", algorithm 2, stage 1). The gradient is multiplied by an
// estimate of the inverse Hessian from the last steps (limited-memory BFGS; J.
// Nocedal and S. J. Wright, Numerical Optimization, 2nd ed. 2006, algorithm 7.4).
// Without an estimate, or after one that did not improve, a step is rate·gradient.
//
// gonum's optimize has the same method, but its vector operations sum in another
// order on some CPUs, so the bits would depend on the machine. The tests compare
// with it.
type descent struct {
	rates                             rates
	first                             float64 // where a search begins, as a fraction of rates.max
	grad, trial, trialGrad, direction []float64
	taken                             int               // differences stored so far; the next goes to taken % memory
	s, y                              [memory][]float64 // rings of differences of points and of gradients
	ρ, α                              [memory]float64
}

// rates are the constants of a descent.
type rates struct {
	max, min  float64 // the first and the least learning rate of a search
	shrink    float64 // from one learning rate to the next
	tolerance float64 // the gradient's length at a minimum
	most      int     // the limit of steps
	gain      float64 // a descent ends after two steps in a row that gain less; 0 disables this
}

// factors yields the rates of one search, as fractions of max, from first down.
func (r rates) factors(first float64) func(yield func(t float64) bool) {
	return func(yield func(t float64) bool) {
		least := r.min / r.max * (1 - 1e-9) // .1·.1⁴ may fall short of 10⁻⁵
		t := first
		for range maxRates { // t may underflow to 0 or stay at the least positive number
			if !(t >= least && t > 0 && yield(t)) {
				return
			}
			t *= r.shrink
		}
	}
}

// armijo is the fraction of the improvement predicted by the slope that a step must
// gain: Nocedal and Wright, section 3.1.
const armijo = 1e-4

// maxRates bounds the learning rates of one step; the default has 5.
const maxRates = 2000

// memory is how many differences are stored; Nocedal and Wright (section 7.2) find
// 3 to 20 satisfactory.
const memory = 10

func newDescent(d int) *descent {
	l := &descent{}
	for _, v := range []*[]float64{&l.grad, &l.trial, &l.trialGrad, &l.direction} {
		*v = make([]float64, d)
	}
	for k := range l.s {
		l.s[k], l.y[k] = make([]float64, d), make([]float64, d)
	}
	return l
}

// minimise moves w to a local minimum of f and returns the value there. It ends
// when the gradient is within the tolerance, when steps gain too little, when no
// rate improves, or after r.most steps. The value never exceeds the first one. The
// error is ctx's.
func (l *descent) minimise(ctx context.Context, f smooth, w []float64, r rates) (float64, error) {
	return l.run(ctx, w, r, f.gradient(l.grad, w), func() []float64 { return l.grad },
		func(value float64) (float64, bool, error) { return l.search(ctx, f, w, value) })
}

// run is minimise, given the value at w and its gradient in l.grad. slope returns
// the gradient to bring to 0; search moves along −H·slope.
func (l *descent) run(ctx context.Context, w []float64, r rates, value float64,
	slope func() []float64, search func(value float64) (next float64, ok bool, err error)) (float64, error) {
	l.rates, l.taken, l.first = r, 0, 1
	little := 0 // steps in a row that gained less than r.gain
	for range r.most {
		if err := ctx.Err(); err != nil {
			return value, err
		}
		g := slope()
		if !(norm(g) > r.tolerance) {
			break
		}
		l.aim(g)
		next, ok, err := search(value)
		if err != nil {
			return value, err
		}
		if !ok {
			if l.taken == 0 {
				break
			}
			l.taken, l.first = 0, 1
			continue
		}
		if value-next < r.gain {
			little++
		} else {
			little = 0
		}
		l.remember(w)
		copy(w, l.trial)
		l.grad, l.trialGrad = l.trialGrad, l.grad
		value = next
		if little == 2 {
			break
		}
	}
	return value, nil
}

// aim sets the direction −H·grad by the two-loop recursion; without differences H
// is rates.max·I.
func (l *descent) aim(grad []float64) {
	for j, g := range grad {
		l.direction[j] = -g
	}
	first := max(0, l.taken-memory)
	for t := l.taken - 1; t >= first; t-- {
		k := t % memory
		l.α[k] = float64(l.ρ[k] * dot(l.s[k], l.direction))
		addScaled(l.direction, -l.α[k], l.y[k])
	}
	scale := l.rates.max
	if l.taken > 0 {
		k := (l.taken - 1) % memory
		scale = 1 / float64(l.ρ[k]*dot(l.y[k], l.y[k]))
	}
	for j := range l.direction {
		l.direction[j] *= scale
	}
	for t := first; t < l.taken; t++ {
		k := t % memory
		β := float64(l.ρ[k] * dot(l.y[k], l.direction))
		addScaled(l.direction, l.α[k]-β, l.s[k])
	}
}

// search sets trial to the first point along the direction that meets Armijo's
// condition, and trialGrad to its gradient. The error is ctx's.
func (l *descent) search(ctx context.Context, f smooth, w []float64, value float64) (next float64, ok bool, err error) {
	slope := dot(l.grad, l.direction)
	if !(slope < 0) {
		return value, false, nil
	}
	for t := range l.rates.factors(l.first) {
		if err := ctx.Err(); err != nil {
			return value, false, err
		}
		for j, d := range l.direction {
			l.trial[j] = w[j] + float64(t*d)
		}
		next = f.gradient(l.trialGrad, l.trial)
		if next < value && next <= value+float64(float64(armijo*t)*slope) {
			if l.rates.gain > 0 {
				l.first = min(1, t/l.rates.shrink)
			}
			return next, true, nil
		}
	}
	return value, false, nil
}

// remember stores trial − w if the curvature along it is positive.
func (l *descent) remember(w []float64) {
	k := l.taken % memory
	s, y := l.s[k], l.y[k]
	for j := range w {
		s[j] = l.trial[j] - w[j]
		y[j] = l.trialGrad[j] - l.grad[j]
	}
	sy, yy := dot(s, y), dot(y, y)
	if sy > float64(1e-10*yy) && yy < math.MaxFloat64 {
		l.ρ[k] = 1 / sy
		l.taken++
	}
}
