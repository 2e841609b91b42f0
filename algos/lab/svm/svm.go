package svm

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// A Config says what to fit. Zero fields mean the defaults.
type Config struct {
	C    float64 // weight of the losses against the penalty; 1
	Bias float64 // value of one more column, penalised like the others; 0 leaves it out
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
	l := &linear{x: x, bias: cfg.Bias, w: make([]float64, x.columns+1)}
	r, err := fit(ctx, cfg, l, x.Len(), y, weight)
	if err != nil {
		return nil, Report{}, err
	}
	return &Linear{weights: l.w[:x.columns], bias: float64(cfg.Bias * l.w[x.columns])}, r, nil
}

// fit solves the dual in a space of n rows.
func fit(ctx context.Context, cfg Config, x space, n int, y, weight []float64) (Report, error) {
	if err := cfg.Check(); err != nil {
		return Report{}, err
	}
	if n == 0 || len(y) != n || weight != nil && len(weight) != n {
		panic(fmt.Sprintf("svm: %d rows, %d labels, %d weights", n, len(y), len(weight)))
	}
	cfg = cfg.withDefaults()
	d, err := newDual(cfg, x, y, weight)
	if err != nil {
		return Report{}, err
	}
	return d.solve(ctx, cfg)
}

// A linear is the space of the rows themselves.
type linear struct {
	x    *Rows
	bias float64
	w    []float64 // the last entry is the bias column's
}

func (l *linear) square(i int) float64 {
	sum := float64(l.bias * l.bias)
	_, value := l.x.row(i)
	for _, v := range value {
		sum += float64(v * v)
	}
	return sum
}

func (l *linear) decision(i int) float64 {
	return l.x.dot(i, l.w) + float64(l.bias*l.w[l.x.columns])
}

func (l *linear) add(s float64, i int) {
	l.x.addScaled(l.w, s, i)
	l.w[l.x.columns] += float64(s * l.bias)
}

func (l *linear) clear() { clear(l.w) }

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
