package bblr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/bblr"
	"hamlet/algos/internal/sla"
)

// A Variant is one of the paper's configurations (section 5).
type Variant int

const (
	// BBLR2, the default, has the numbers of positives and negatives as α and β,
	// and n = α+β. So w = ½ and θ is the fraction of positives.
	BBLR2 Variant = iota
	// BBLR1 has the fixed prior α = β = 1, n = 100.
	BBLR1
	// BBLR3 is BBLR2 with r_γ, γ_MIN, γ_MAX and λ chosen on a held-out fifth (SLAM).
	BBLR3
	// BBLR4 is BBLR3 and then learns w, θ and γ by their gradients. It starts from
	// the true positive and true negative rates.
	BBLR4
	// Sigmoid is the paper's baseline: the loss σ(−γz) of Nguyen and Sanner (2013),
	// minimised by the same algorithm. Its probability is σ(γz).
	Sigmoid
	// LR is L2 logistic regression, from which the others start. Only Lambda and Raw
	// matter.
	LR
)

var variantNames = [...]string{"BBLR2", "BBLR1", "BBLR3", "BBLR4", "sigmoid", "LR"}

// String returns the paper's name.
func (v Variant) String() string {
	if v < 0 || int(v) >= len(variantNames) {
		return fmt.Sprintf("Variant(%d)", int(v))
	}
	return variantNames[v]
}

// A Config says what to fit. Its zero value is the paper's BBLR2.
type Config struct {
	Variant Variant
	// Lambda is λ ≥ 0 of the penalty λ/2·|w|², which includes the bias. 0 means
	// 10⁻³, which reproduces the paper's logistic regression exactly.
	Lambda float64
	// Unpenalised sets λ to 0; a Lambda of 0 means the default.
	Unpenalised bool
	// Raw fits the rows unchanged, without a bias. Otherwise columns get mean 0 and
	// population standard deviation 1, constant ones become 0, and the last weight
	// is a bias.
	Raw bool
	// Start is w₀, as long as a row, plus 1 for the bias. nil means the logistic
	// regression with the same λ, or 10⁻³ if that is larger.
	Start []float64
	// Schedule holds the constants of SLA.
	Schedule
}

// A Report says how a fit went.
type Report struct {
	Lambda    float64  // λ
	Schedule  Schedule // the constants, including those that SLAM chose
	LossStart float64  // the objective at the start, with the fitted likelihood and λ
	LossEnd   float64  // the objective at the fitted weights; at most LossStart, except in a sparse fit
	Errors    int      // rows with y·wᵀx ≤ 0
}

const (
	defaultLambda = 1e-3
	leastRidge    = 1e-3 // λ of the logistic regression that a fit starts from
)

// withDefaults returns cfg with its zero fields filled in.
func (cfg Config) withDefaults() Config {
	if cfg.Lambda == 0 && !cfg.Unpenalised {
		cfg.Lambda = defaultLambda
	}
	cfg.Schedule = cfg.Schedule.withDefaults()
	return cfg
}

// Check reports all that is wrong with cfg.
func (cfg Config) Check() error {
	errs := []error{cfg.Schedule.Check()}
	if cfg.Variant < 0 || int(cfg.Variant) >= len(variantNames) {
		errs = append(errs, badField("Variant", "%d: want one of %v", int(cfg.Variant), variantNames))
	}
	errs = append(errs, checkLambda(cfg.Lambda, cfg.Unpenalised), sla.CheckFinite("Start", cfg.Start))
	return errors.Join(errs...)
}

func checkLambda(λ float64, none bool) error {
	switch {
	case !(λ >= 0 && λ <= math.MaxFloat64):
		return badField("Lambda", "%v: want at least 0 and finite", λ)
	case none && λ != 0:
		return badField("Lambda", "%v and Unpenalised set: want one of them", λ)
	}
	return nil
}

// Fit fits wᵀx as Rebuild does, with the variant and constants of cfg. All variants
// but BBLR1, Sigmoid and LR need both labels. An error says what is wrong with cfg or
// the data, or is ctx's.
//
// From 2²⁰ numbers on, of which three quarters are 0, Fit works as FitSparse does.
func Fit(ctx context.Context, cfg Config, x [][]float64, y, weight []float64) (*Linear, Report, error) {
	if err := cfg.Check(); err != nil {
		return nil, Report{}, err
	}
	if err := sla.CheckRows(x, y, weight); err != nil {
		return nil, Report{}, err
	}
	if m := sparseOf(x); m != nil {
		return fitSparse(ctx, cfg, m, y, weight)
	}
	var s *sla.Scaling
	if !cfg.Raw {
		var err error
		if s, err = sla.NewScaling(x); err != nil {
			return nil, Report{}, err
		}
		x = s.Rows(x, 1)
	}
	return cfg.withDefaults().fit(ctx, sla.NewProblem(x, y, weight), s)
}

// fit is Fit of checked rows, which s has standardised unless it is nil. cfg has its
// defaults.
func (cfg Config) fit(ctx context.Context, p *sla.Problem, s *sla.Scaling) (*Linear, Report, error) {
	f := &fitter{Config: cfg, problem: p}
	if cfg.Start != nil && len(cfg.Start) != p.D {
		panic(fmt.Sprintf("bblr: a start of %d weights for %d", len(cfg.Start), p.D))
	}
	w, l, err := f.fit(ctx)
	if err != nil {
		return nil, Report{}, err
	}
	bias := 0.0
	if s != nil {
		if w, bias, err = s.Unfold(w); err != nil {
			return nil, Report{}, err
		}
	}
	return bblr.NewLinear(w, bias, l), f.report, nil
}

// A fitter fits one problem, linear or kernel.
type fitter struct {
	Config
	problem *sla.Problem
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
	if f.Variant == LR {
		return w0, l, f.finish(sla.NewObjective(f.problem, curveOf(l), max(f.Lambda, leastRidge)), w0, w0)
	}
	l.Gamma = f.Schedule.last()
	c := curveOf(l)
	if f.Variant == Sigmoid {
		c = sla.SigmoidCurve(l.Gamma)
	}
	s := f.newSLA(c)
	if f.Variant == BBLR4 { // learn starts from this w and from w₀
		s.Blind, s.Rates = true, f.Schedule.quick(s.Total, f.LossTolerance)
	}
	w := slices.Clone(w0)
	f.report.LossEnd, err = anneal(ctx, s, f.Schedule, w)
	if err == nil && f.Variant == BBLR4 {
		l, s, err = f.learn(ctx, l.Gamma, w0, w)
	}
	if err != nil {
		return nil, l, err
	}
	return w, l, f.finish(s.Objective, w0, w)
}

// start returns w₀: cfg.Start or the logistic regression.
func (f *fitter) start(ctx context.Context) ([]float64, error) {
	if f.Start != nil && f.Variant != LR {
		return f.Start, nil
	}
	return logisticRegression(ctx, f.problem, max(f.Lambda, leastRidge))
}

func (f *fitter) newSLA(c sla.Curve) *sla.Search {
	return sla.NewSearch(f.problem, c, f.Lambda, f.LossTolerance, f.Schedule.rates(f.problem.Total))
}

// anneal moves w to a minimum at each level's γ in turn (algorithm 1) and returns
// the value at the last. If that exceeds the value at the start, it searches the
// last level again from the start.
func anneal(ctx context.Context, s *sla.Search, schedule Schedule, w []float64) (value float64, err error) {
	start := slices.Clone(w)
	var last sla.Level
	for last = range schedule.levels {
		if value, err = s.SearchRange(ctx, w, last); err != nil {
			return value, err
		}
	}
	if s.Value(start) < value {
		copy(w, start)
		return s.SearchRange(ctx, w, last)
	}
	return value, nil
}

// finish sets the report for w under o, the objective minimised last. An error
// means that sums have overflowed.
func (f *fitter) finish(o *sla.Objective, w0, w []float64) error {
	f.report.Lambda, f.report.Schedule = o.Lambda, f.Schedule
	f.report.LossStart, f.report.LossEnd = o.Value(w0), o.Value(w)
	f.report.Errors = 0
	for _, m := range o.M {
		if !(m > 0) {
			f.report.Errors++
		}
	}
	return sla.CheckLosses(f.report.LossStart, f.report.LossEnd)
}

// mixture returns the variant's likelihood before any learning, with γ = 1.
func (f *fitter) mixture() (Likelihood, error) {
	switch f.Variant {
	case Sigmoid:
		return Likelihood{Theta: 0.5, Gamma: 1}, nil
	case BBLR1:
		return Counts(1, 1, 100), nil
	case LR:
		return Counts(0, 0, 1), nil
	}
	return bblr.CountsOf(f.problem.Y, f.problem.Weight)
}

// The product's classifier, its likelihood and its error, which the variants share.
type (
	Linear     = bblr.Linear
	Likelihood = bblr.Likelihood
)

var ErrOneClass = bblr.ErrOneClass

// Counts is bblr.Counts.
func Counts(α, β, n float64) Likelihood { return bblr.Counts(α, β, n) }
