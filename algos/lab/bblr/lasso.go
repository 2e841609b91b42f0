package bblr

import (
	"context"
	"math"

	"hamlet/algos/internal/sla"
)

// A lasso is a descent on f(a) + Σ l1_j·|a_j|, whose minima have coordinates that
// are exactly 0 (orthant-wise limited-memory quasi-Newton; G. Andrew and J. Gao
// 2007). A descent on the sum itself stalls at the kinks.
//
// At each coordinate the pseudo-gradient is the one-sided derivative nearest to 0.
// Steps stay in the orthant that its negative points into.
type lasso struct {
	*sla.Descent
	l1       []float64
	gradient []float64
}

func newLasso(d int) *lasso {
	return &lasso{Descent: sla.NewDescent(d), l1: make([]float64, d), gradient: make([]float64, d)}
}

func (l *lasso) norm1(a []float64) float64 {
	sum := 0.0
	for j, c := range l.l1 {
		sum += float64(c * math.Abs(a[j]))
	}
	return sum
}

// pseudoGradient returns the pseudo-gradient of f(a) + c·|a| at a = v, where f has the
// derivative g.
func pseudoGradient(g, v, c float64) float64 {
	switch {
	case v > 0:
		return g + c
	case v < 0:
		return g - c
	case g > c:
		return g - c
	case g < -c:
		return g + c
	}
	return 0
}

// Minimise is descent.minimise for f(a) + Σ l1_j·|a_j|.
func (l *lasso) minimise(ctx context.Context, f sla.Smooth, a []float64, r sla.Rates) (float64, error) {
	slope := func() []float64 {
		for j, g := range l.Grad {
			l.gradient[j] = pseudoGradient(g, a[j], l.l1[j])
		}
		return l.gradient
	}
	return l.Run(ctx, a, r, f.Gradient(l.Grad, a)+l.norm1(a), slope,
		func(value float64) (float64, bool, error) { return l.search(ctx, f, a, value) })
}

// search is descent.search within the orthant.
func (l *lasso) search(ctx context.Context, f sla.Smooth, a []float64,
	value float64) (next float64, ok bool, err error) {
	for j, d := range l.Direction {
		if !(d*l.gradient[j] < 0) {
			l.Direction[j] = 0
		}
	}
	for t := range l.Rates.Factors(1) {
		if err := ctx.Err(); err != nil {
			return value, false, err
		}
		promised := 0.0
		for j, d := range l.Direction {
			side := a[j]
			if side == 0 {
				side = -l.gradient[j]
			}
			v := a[j] + float64(t*d)
			if !(v*side > 0) {
				v = 0
			}
			l.Trial[j] = v
			promised += float64(l.gradient[j] * (v - a[j]))
		}
		next = f.Gradient(l.TrialGrad, l.Trial) + l.norm1(l.Trial)
		if next < value && next <= value+float64(sla.Armijo*promised) {
			return next, true, nil
		}
	}
	return value, false, nil
}
