package bblr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The constants of Rebuild. A fit costs a twentieth of one with the paper's
// constants and errs less often: MEASURED.md.
const (
	rebuildLambda    = 3
	rebuildGamma     = 2
	rebuildGain      = 1    // nats that a probe must gain
	rebuildTolerance = 1e-3 // of the mean gradient's length
)

// Constants of SLA that Rebuild shares with the defaults of a Schedule.
const (
	firstRadius  = 8
	firstSpacing = 0.2
	rateShrink   = 0.1
	rateMax      = 0.1
	rateMin      = 1e-5
)

// MaxColumns bounds the length of a row, in a fit and in a classifier's bytes.
const MaxColumns = 1 << 20

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
	if err := checkRows(x, y, weight); err != nil {
		return nil, err
	}
	scaled, err := newScaling(x)
	if err != nil {
		return nil, err
	}
	p := newProblem(scaled.rows(x, 1), y, weight)
	l, err := p.counts()
	if err != nil {
		return nil, err
	}
	l.Gamma = rebuildGamma
	s := newSLA(p, l.curve(), rebuildLambda, rebuildGain, rates{
		max: rateMax / p.total, min: rateMin / p.total, shrink: rateShrink,
		tolerance: rebuildTolerance * p.total, most: maxDescent,
	})
	w := make([]float64, p.d)
	start := s.value(w)
	if _, err := s.searchRange(ctx, w, level{rebuildGamma, firstRadius, firstSpacing}); err != nil {
		return nil, err
	}
	if err := checkLosses(start, s.value(w)); err != nil {
		return nil, err
	}
	return newLinear(w, l, scaled)
}

// counts returns the mixture of BBLR2: α and β are the weights of the two labels.
func (p *problem) counts() (Likelihood, error) {
	var positive, negative float64
	for i, y := range p.y {
		if y > 0 {
			positive += p.weight[i]
		} else {
			negative += p.weight[i]
		}
	}
	if positive == 0 || negative == 0 {
		return Likelihood{}, ErrOneClass
	}
	return Counts(positive, negative, positive+negative), nil
}

// checkLosses returns an error if the sums of a fit have overflowed.
func checkLosses(start, end float64) error {
	if !(math.Abs(start)+math.Abs(end) <= math.MaxFloat64) {
		return fmt.Errorf("the loss went from %v to %v: the numbers are too large to be summed", start, end)
	}
	return nil
}

func checkFinite(name string, v []float64) error {
	for j, x := range v {
		if !(math.Abs(x) <= math.MaxFloat64) {
			return fmt.Errorf("%s has %v at %d: want finite numbers", name, x, j)
		}
	}
	return nil
}

// checkRows returns an error for bad numbers in a sample, and panics for bad lengths.
func checkRows(x [][]float64, y, weight []float64) error {
	if len(y) != len(x) || weight != nil && len(weight) != len(x) {
		panic(fmt.Sprintf("bblr: %d rows, %d labels, %d weights", len(x), len(y), len(weight)))
	}
	if len(x) == 0 || len(x[0]) == 0 {
		return errors.New("no data: want at least one row of at least one number")
	}
	if len(x[0]) > MaxColumns {
		return fmt.Errorf("%d columns: a fit takes up to %d", len(x[0]), MaxColumns)
	}
	var c rowCheck
	for i, row := range x {
		if len(row) != len(x[0]) {
			panic(fmt.Sprintf("bblr: row %d has %d numbers and row 0 has %d", i, len(row), len(x[0])))
		}
		c.row(i, row, y, weight)
	}
	return c.done()
}

// A rowCheck collects what is wrong with the rows of a sample.
type rowCheck struct {
	errs  []error
	total float64 // Σ weight
}

func (c *rowCheck) row(i int, numbers, y, weight []float64) {
	if err := checkFinite(fmt.Sprintf("row %d", i), numbers); err != nil {
		c.errs = append(c.errs, err)
	}
	if y[i] != 1 && y[i] != -1 {
		c.errs = append(c.errs, fmt.Errorf("label %d is %v: want 1 or -1", i, y[i]))
	}
	if weight == nil {
		c.total++
		return
	}
	if !(weight[i] >= 0 && weight[i] <= math.MaxFloat64) {
		c.errs = append(c.errs, fmt.Errorf("weight %d is %v: want at least 0 and finite", i, weight[i]))
	}
	c.total += weight[i]
}

func (c *rowCheck) done() error {
	if !(c.total > 0 && c.total <= math.MaxFloat64) {
		c.errs = append(c.errs, fmt.Errorf("the weights sum to %v: want more than 0 and finite", c.total))
	}
	return errors.Join(c.errs...)
}

// A Linear is a fitted linear classifier. It does not change, and may be used
// concurrently.
type Linear struct {
	weights    []float64 // for rows as given, not standardised
	bias       float64
	likelihood Likelihood
}

// newLinear returns the classifier with weights w for rows that s has standardised,
// or for raw rows if s is nil.
func newLinear(w []float64, l Likelihood, s *scaling) (*Linear, error) {
	m := &Linear{weights: w, likelihood: l}
	if s != nil {
		m.weights, m.bias = s.unfold(w)
		if err := checkFinite("the weights of the rows as given", append(m.weights, m.bias)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Score returns wᵀx + bias. x must be as long as a row of the sample. If the sum
// overflows for finite x, the score is ±MaxFloat64 with the sum's sign, or 0.
func (m *Linear) Score(x []float64) float64 {
	s := m.bias + product(m.weights, x)
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
func (m *Linear) Label(x []float64) float64 { return label(m.Score(x)) }

func label(score float64) float64 {
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

// product is dot with a check of the lengths.
func product(w, x []float64) float64 {
	if len(x) != len(w) {
		panic(fmt.Sprintf("bblr: a row of %d numbers for %d weights", len(x), len(w)))
	}
	return dot(w, x)
}
