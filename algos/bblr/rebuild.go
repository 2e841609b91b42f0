package bblr

import (
	"context"
	"errors"
	"math"
	"slices"

	"hamlet/algos/internal/sla"
)

// The constants of Rebuild. A fit costs a twentieth of one with the paper's
// constants and errs less often: MEASURED.md.
const (
	rebuildLambda    = 3
	rebuildGamma     = 2
	rebuildGain      = 1    // nats that a probe must gain
	rebuildTolerance = 1e-3 // of the mean gradient's length
)

// ErrOneClass says that all rows of positive weight have one label; the mixture
// needs the counts of both. Fit BBLR1, or wait for the other label.
var ErrOneClass = errors.New("all rows have the same label: want both")

// Rebuild fits BBLR2 to a window of a stream: rows of equal length with labels ±1
// and weights, 1 each if nil. It starts from coefficients of 0, so only the window
// determines the classifier. γ is 2: a larger one would leave almost only two
// values of the log-odds. Equal arguments give equal bits on every CPU; they are
// neither kept nor changed.
//
// An error says what is wrong with the data: no rows, a number that is not finite,
// a label that is not ±1, a negative weight, only one label (ErrOneClass), or sums
// that overflow. Or it is ctx's, checked before every step and every probed
// coordinate. Rebuild panics if lengths differ.
//
// A step costs O(N·D). Each of the 80·D probes costs at most a few sums over N.
func Rebuild(ctx context.Context, x [][]float64, y, weight []float64) (*Linear, error) {
	if err := sla.CheckRows(x, y, weight); err != nil {
		return nil, err
	}
	scaled, err := sla.NewScaling(x)
	if err != nil {
		return nil, err
	}
	p := sla.NewProblem(scaled.Rows(x, 1), y, weight)
	l, err := CountsOf(y, p.Weight)
	if err != nil {
		return nil, err
	}
	l.Gamma = rebuildGamma
	s := sla.NewSearch(p, sla.NewCurve(l.A(), l.B(), l.C(), l.Gamma), rebuildLambda, rebuildGain, sla.Rates{
		Max: sla.RateMax / p.Total, Min: sla.RateMin / p.Total, Shrink: sla.RateShrink,
		Tolerance: rebuildTolerance * p.Total, Most: sla.MaxDescent,
	})
	w := make([]float64, p.D)
	start := s.Value(w)
	only := sla.Level{Gamma: rebuildGamma, Radius: sla.FirstRadius, Spacing: sla.FirstSpacing}
	if _, err := s.SearchRange(ctx, w, only); err != nil {
		return nil, err
	}
	if err := sla.CheckLosses(start, s.Value(w)); err != nil {
		return nil, err
	}
	weights, bias, err := scaled.Unfold(w)
	if err != nil {
		return nil, err
	}
	return NewLinear(weights, bias, l), nil
}

// CountsOf returns the mixture of BBLR2: α and β are the weights of the two labels. The
// error is ErrOneClass.
func CountsOf(y, weight []float64) (Likelihood, error) {
	var positive, negative float64
	for i, v := range y {
		if v > 0 {
			positive += weight[i]
		} else {
			negative += weight[i]
		}
	}
	if positive == 0 || negative == 0 {
		return Likelihood{}, ErrOneClass
	}
	return Counts(positive, negative, positive+negative), nil
}

// A Linear is a fitted linear classifier. It does not change, and may be used
// concurrently.
type Linear struct {
	weights    []float64 // for rows as given, not standardised
	bias       float64
	likelihood Likelihood
}

// NewLinear returns the classifier with these weights, which it keeps.
func NewLinear(weights []float64, bias float64, l Likelihood) *Linear {
	return &Linear{weights: weights, bias: bias, likelihood: l}
}

// Score returns wᵀx + bias. x must be as long as a row of the sample. If the sum
// overflows for finite x, the score is ±MaxFloat64 with the sum's sign, or 0.
func (m *Linear) Score(x []float64) float64 {
	s := m.bias + sla.Product(m.weights, x)
	if math.Abs(s) <= math.MaxFloat64 {
		return s
	}
	// A term is below 2²⁰⁴⁸: scaled by 2⁻¹¹⁰⁰, the terms can be summed. The bias is
	// negligible.
	small := 0.0
	for j, v := range x {
		small += float64(float64(m.weights[j]*0x1p-550) * float64(v*0x1p-550))
	}
	switch {
	case small > 0:
		return math.MaxFloat64
	case small < 0:
		return -math.MaxFloat64
	}
	return 0
}

// Label returns the decision ±1, the sign of Score; 0 counts as −1. It may differ
// from the sign of LogOdds if the classes are of unequal size.
func (m *Linear) Label(x []float64) float64 { return LabelOf(m.Score(x)) }

// LabelOf returns the decision ±1 of a score; 0 counts as −1.
func LabelOf(score float64) float64 {
	if score > 0 {
		return 1
	}
	return -1
}

// Prob returns μ, the model's probability of label +1, in [a, a+b].
func (m *Linear) Prob(x []float64) float64 { return m.likelihood.Prob(m.Score(x)) }

// LogOdds returns ln μ/(1−μ) in nats. It is monotone in Score.
func (m *Linear) LogOdds(x []float64) float64 { return m.likelihood.LogOdds(m.Score(x)) }

// Dim returns the number of inputs D.
func (m *Linear) Dim() int { return len(m.weights) }

// Likelihood returns the mixture and the steepness.
func (m *Linear) Likelihood() Likelihood { return m.likelihood }

// Weights returns a copy of the weights for rows as given, and the bias, which is 0
// after a raw fit.
func (m *Linear) Weights() (w []float64, bias float64) { return slices.Clone(m.weights), m.bias }
