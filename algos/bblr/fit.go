package bblr

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// A fitter fits one sample, whatever its rows stand for.
type fitter struct {
	Config
	problem *problem
	report  Report
}

// fit returns the coefficients and the likelihood of the variant.
func (f *fitter) fit(ctx context.Context) ([]float64, Likelihood, error) {
	l, err := f.mixture()
	if err != nil {
		return nil, l, err
	}
	if f.Variant == BBLR3 || f.Variant == BBLR4 {
		if err := f.tune(ctx, l); err != nil {
			return nil, l, err
		}
	}
	w0, err := f.start(ctx)
	if err != nil {
		return nil, l, err
	}
	l.Gamma = f.Schedule.last()
	s := newSLA(f.problem, f.curve(l), f.Lambda, f.Schedule)
	if f.Variant == BBLR4 { // here is but one of the places where learning begins
		s.blind, s.rates = true, f.Schedule.quick(s.total, f.LossTolerance)
	}
	w := append([]float64(nil), w0...)
	f.report.LossEnd, err = s.anneal(ctx, w)
	if err == nil && f.Variant == BBLR4 {
		l, s, err = f.learn(ctx, l.Gamma, w0, w)
	}
	if err != nil {
		return nil, l, err
	}
	f.finish(s.objective, w0, w)
	return w, l, f.finite()
}

// finish reports on w under the objective that was minimised last.
func (f *fitter) finish(o *objective, w0, w []float64) {
	f.report.Lambda, f.report.Schedule = o.lambda, f.Schedule
	f.report.LossStart, f.report.LossEnd = o.value(w0), o.value(w)
	f.report.Errors = 0
	for _, m := range o.m {
		if !(m > 0) {
			f.report.Errors++
		}
	}
}

// finite says that the fit's sums have overflowed, if they have.
func (f *fitter) finite() error {
	if !(math.Abs(f.report.LossStart)+math.Abs(f.report.LossEnd) <= math.MaxFloat64) {
		return fmt.Errorf("the loss went from %v to %v: the numbers are too large to be summed", f.report.LossStart, f.report.LossEnd)
	}
	return nil
}

// mixture returns the variant's likelihood as far as the labels determine it.
func (f *fitter) mixture() (Likelihood, error) {
	switch f.Variant {
	case Sigmoid:
		return Likelihood{Theta: 0.5, Gamma: 1}, nil
	case BBLR1:
		return Counts(1, 1, 100), nil
	}
	positive, negative := f.problem.classes()
	if positive == 0 || negative == 0 {
		return Likelihood{}, ErrOneClass
	}
	return Counts(positive, negative, positive+negative), nil
}

// ErrOneClass says that all rows (that count at all) have one label, where the
// variant takes its mixture from the numbers of both. Fit BBLR1, or wait for the
// other label.
var ErrOneClass = errors.New("all rows have the same label: want both")

// classes returns the weight of either label.
func (p *problem) classes() (positive, negative float64) {
	for i, y := range p.y {
		if y > 0 {
			positive += p.weight[i]
		} else {
			negative += p.weight[i]
		}
	}
	return positive, negative
}

// curve returns the loss that the variant minimises.
func (f *fitter) curve(l Likelihood) curve {
	if f.Variant == Sigmoid {
		return sigmoidCurve(l.Gamma)
	}
	return l.curve()
}

// start returns w₀: that of the configuration, or the logistic regression.
func (f *fitter) start(ctx context.Context) ([]float64, error) {
	if f.Start != nil {
		return f.Start, nil
	}
	return logisticRegression(ctx, f.problem, max(f.Lambda, leastRidge))
}
