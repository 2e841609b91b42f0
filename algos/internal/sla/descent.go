package sla

import (
	"context"
	"math"

	"hamlet/algos/internal/triangle"
)

// A Smooth is a function of d coordinates. gradient sets grad and returns the
// value.
type Smooth interface {
	Gradient(grad, w []float64) float64
}

// A Descent is gradient descent with a learning rate that shrinks until a step
// improves ("vanilla", algorithm 2, stage 1). The gradient is multiplied by an
// estimate of the inverse Hessian from the last steps (limited-memory BFGS; J.
// Nocedal and S. J. Wright, Numerical Optimization, 2nd ed. 2006, algorithm 7.4).
// Without an estimate, or after one that did not improve, a step is rate·gradient.
//
// gonum's optimize has the same method, but its vector operations sum in another
// order on some CPUs, so the bits would depend on the machine. The tests compare
// with it.
type Descent struct {
	Rates                             Rates
	first                             float64 // where a search begins, as a fraction of rates.max
	Grad, Trial, TrialGrad, Direction []float64
	taken                             int               // differences stored so far; the next goes to taken % memory
	s, y                              [memory][]float64 // rings of differences of points and of gradients
	ρ, α                              [memory]float64
}

// rates are the constants of a descent.
type Rates struct {
	Max, Min  float64 // the first and the least learning rate of a search
	Shrink    float64 // from one learning rate to the next
	Tolerance float64 // the gradient's length at a minimum
	Most      int     // the limit of steps
	Gain      float64 // a descent ends after two steps in a row that gain less; 0 disables this
}

// factors yields the rates of one search, as fractions of max, from first down.
func (r Rates) Factors(first float64) func(yield func(t float64) bool) {
	return func(yield func(t float64) bool) {
		least := r.Min / r.Max * (1 - 1e-9) // .1·.1⁴ may fall short of 10⁻⁵
		t := first
		for range MaxRates { // t may underflow to 0 or stay at the least positive number
			if !(t >= least && t > 0 && yield(t)) {
				return
			}
			t *= r.Shrink
		}
	}
}

// Armijo is the fraction of the improvement predicted by the slope that a step must
// gain: Nocedal and Wright, section 3.1.
const Armijo = 1e-4

// MaxRates bounds the learning rates of one step; the default has 5.
const MaxRates = 2000

// memory is how many differences are stored; Nocedal and Wright (section 7.2) find
// 3 to 20 satisfactory.
const memory = 10

func NewDescent(d int) *Descent {
	l := &Descent{}
	for _, v := range []*[]float64{&l.Grad, &l.Trial, &l.TrialGrad, &l.Direction} {
		*v = make([]float64, d)
	}
	for k := range l.s {
		l.s[k], l.y[k] = make([]float64, d), make([]float64, d)
	}
	return l
}

// Minimise moves w to a local minimum of f and returns the value there. It ends
// when the gradient is within the tolerance, when steps gain too little, when no
// rate improves, or after r.most steps. The value never exceeds the first one. The
// error is ctx's.
func (l *Descent) Minimise(ctx context.Context, f Smooth, w []float64, r Rates) (float64, error) {
	return l.Run(ctx, w, r, f.Gradient(l.Grad, w), func() []float64 { return l.Grad },
		func(value float64) (float64, bool, error) { return l.search(ctx, f, w, value) })
}

// Run is minimise, given the value at w and its gradient in l.grad. slope returns
// the gradient to bring to 0; search moves along −H·slope.
func (l *Descent) Run(ctx context.Context, w []float64, r Rates, value float64,
	slope func() []float64, search func(value float64) (next float64, ok bool, err error)) (float64, error) {
	l.Rates, l.taken, l.first = r, 0, 1
	little := 0 // steps in a row that gained less than r.gain
	for range r.Most {
		if err := ctx.Err(); err != nil {
			return value, err
		}
		g := slope()
		if !(Norm(g) > r.Tolerance) {
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
		if value-next < r.Gain {
			little++
		} else {
			little = 0
		}
		l.remember(w)
		copy(w, l.Trial)
		l.Grad, l.TrialGrad = l.TrialGrad, l.Grad
		value = next
		if little == 2 {
			break
		}
	}
	return value, nil
}

// aim sets the direction −H·grad by the two-loop recursion; without differences H
// is rates.max·I.
func (l *Descent) aim(grad []float64) {
	for j, g := range grad {
		l.Direction[j] = -g
	}
	first := max(0, l.taken-memory)
	for t := l.taken - 1; t >= first; t-- {
		k := t % memory
		l.α[k] = float64(l.ρ[k] * triangle.Dot(l.s[k], l.Direction))
		AddScaled(l.Direction, -l.α[k], l.y[k])
	}
	scale := l.Rates.Max
	if l.taken > 0 {
		k := (l.taken - 1) % memory
		scale = 1 / float64(l.ρ[k]*triangle.Dot(l.y[k], l.y[k]))
	}
	for j := range l.Direction {
		l.Direction[j] *= scale
	}
	for t := first; t < l.taken; t++ {
		k := t % memory
		β := float64(l.ρ[k] * triangle.Dot(l.y[k], l.Direction))
		AddScaled(l.Direction, l.α[k]-β, l.s[k])
	}
}

// search sets trial to the first point along the direction that meets Armijo's
// condition, and TrialGrad to its gradient. The error is ctx's.
func (l *Descent) search(ctx context.Context, f Smooth, w []float64, value float64) (next float64, ok bool, err error) {
	slope := triangle.Dot(l.Grad, l.Direction)
	if !(slope < 0) {
		return value, false, nil
	}
	for t := range l.Rates.Factors(l.first) {
		if err := ctx.Err(); err != nil {
			return value, false, err
		}
		for j, d := range l.Direction {
			l.Trial[j] = w[j] + float64(t*d)
		}
		next = f.Gradient(l.TrialGrad, l.Trial)
		if next < value && next <= value+float64(float64(Armijo*t)*slope) {
			if l.Rates.Gain > 0 {
				l.first = min(1, t/l.Rates.Shrink)
			}
			return next, true, nil
		}
	}
	return value, false, nil
}

// remember stores trial − w if the curvature along it is positive.
func (l *Descent) remember(w []float64) {
	k := l.taken % memory
	s, y := l.s[k], l.y[k]
	for j := range w {
		s[j] = l.Trial[j] - w[j]
		y[j] = l.TrialGrad[j] - l.Grad[j]
	}
	sy, yy := triangle.Dot(s, y), triangle.Dot(y, y)
	if sy > float64(1e-10*yy) && yy < math.MaxFloat64 {
		l.ρ[k] = 1 / sy
		l.taken++
	}
}
