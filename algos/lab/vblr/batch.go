// Package vblr is the rest of the paper that package blr implements (J. Drugowitsch,
// Variational Bayesian inference for linear and logistic regression, 2013): the variational
// fit of all events at once, with or without automatic relevance determination, and its
// predictive densities.
//
//	b, err := vblr.Fit(ctx, x, y, vblr.Config{})
//	if err != nil {
//		return err
//	}
//	m, a := b.Moments(x[0])
//	p := vblr.Predict(m, a, 0.9) // every answer about x[0]
//
// Errors begin with "blr:", the name of the model.
package vblr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// A Config describes the paper's variational fit of all events at once. Zero
// fields mean the defaults given with each.
type Config struct {
	// ARD gives every weight its own precision αᵢ (automatic relevance determination,
	// eqs. 39–50) instead of one α for all (3–30).
	ARD bool
	// Shape a₀ and rate b₀ of the hyperprior Gam(α | a₀, b₀); 0 is 1e−2 and
	// 1e−4, those of the author's scripts, not given in the text.
	A0, B0 float64
	// The fit ends when no ξ moves by Tolerance; 0 is 1e−11. (The printed rule,
	// .001 % of the bound, stops weights .003 to .04 from the fixed point and
	// with ARD up to 6.6.)
	Tolerance float64
	// MaxIterations is 100,000 if 0. ARD takes 10⁴ on nearly separable data.
	MaxIterations int
	// Weights are ω > 0, the power of each event's likelihood; nil is 1 each. A weight of
	// 2 is an event that stands there twice.
	Weights []float64
}

const (
	defaultA0         = 1e-2
	defaultB0         = 1e-4
	defaultTolerance  = 1e-11
	defaultIterations = 100_000
)

// A Batch is the variational posterior q(β)q(α) of all events at once: β ~
// N(w, V), the embedded Gaussian, and αᵢ ~ Gam(AN, BN[i]). Vectors over α have
// one entry, with ARD D.
type Batch struct {
	Gaussian
	LogDetV    float64   // ln|V|
	EAlpha     []float64 // E(α) = AN/BN, as in V⁻¹ (15, 42)
	AN         float64   // (20, 44)
	BN         []float64 // (21, 45)
	Bound      float64   // (30, 50), in nats: a lower bound of ln p(Y|X)
	Trace      []float64 // the bound after each iteration; it never falls
	Xi         []float64 // ξₙ of each event (31)
	Iterations int
	Converged  bool // no ξ moved by the tolerance in the last iteration
}

// Fit fits the events x[n], y[n] = ±1 and returns when the fit has
// converged, has used up its iterations or, with ctx.Err(), was cancelled. All
// rows of x have one length D; nothing is added to them. An iteration costs N·D²
// products. The error names all faults of the arguments.
//
// The first V and w are those of ξ = 0 and E(α) = a₀/b₀. An iteration sets
//
//	ξₙ² = xₙᵀVxₙ + (wᵀxₙ)²                              (31)
//	b_N = b₀ + ½(wᵀw + tr V), or per weight b₀ + ½(wᵢ² + Vᵢᵢ)   (21, 45)
//	V⁻¹ = E(α) + 2Σ ωₙλ(ξₙ)xₙxₙᵀ,  w = V Σ ωₙyₙxₙ/2      (15, 16, 42, 43)
//
// each of which maximises the bound given the others, and evaluates
//
//	½wᵀV⁻¹w + ½ln|V| + Σₙ ωₙ(ln σ(ξₙ) − ξₙ/2 + λ(ξₙ)ξₙ²)
//	+ Σᵢ(a₀ ln b₀ − lnΓ(a₀) − b₀E(αᵢ) − a_N ln b_Nᵢ + lnΓ(a_N) + a_N)   (30, 50)
//
// there: the E(α) in V is that of the same a_N and b_N. (The author's scripts use
// the previous V in their first value.)
func Fit(ctx context.Context, x [][]float64, y []float64, cfg Config) (*Batch, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if err := errors.Join(checkExamples(x, y), checkPowers(cfg.Weights, len(x))); err != nil {
		return nil, err
	}
	f := newBatchFit(x, y, cfg)
	b := f.batch
	f.solve()
	for b.Iterations < cfg.MaxIterations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		moved := f.refresh()
		f.reweigh()
		f.solve()
		f.bound()
		b.Iterations++
		if moved < cfg.Tolerance {
			b.Converged = true
			break
		}
	}
	return b, nil
}

func (cfg *Config) fill() error {
	var errs []error
	positive := func(name string, v *float64, def float64) {
		if *v == 0 {
			*v = def
		}
		if !(*v > 0 && *v <= math.MaxFloat64) {
			errs = append(errs, fmt.Errorf("blr: %s %v: want a number above 0", name, *v))
		}
	}
	positive("a0", &cfg.A0, defaultA0)
	positive("b0", &cfg.B0, defaultB0)
	positive("tolerance", &cfg.Tolerance, defaultTolerance)
	if cfg.MaxIterations == 0 {
		cfg.MaxIterations = defaultIterations
	}
	if cfg.MaxIterations < 0 {
		errs = append(errs, fmt.Errorf("blr: max iterations %d: want a count, or 0 for %d",
			cfg.MaxIterations, defaultIterations))
	}
	if r := cfg.A0 / cfg.B0; len(errs) == 0 && !(r >= 1/blr.MaxInput && r <= blr.MaxInput) {
		errs = append(errs, fmt.Errorf("blr: a0/b0 is %v: want a precision from %g to %g", r, 1/blr.MaxInput, blr.MaxInput))
	}
	return errors.Join(errs...)
}

// checkExamples returns the faults of x and y, about ten at most.
func checkExamples(x [][]float64, y []float64) error {
	if len(x) == 0 || len(x[0]) == 0 || len(x[0]) > blr.MaxDim {
		return fmt.Errorf("blr: %d events: want at least one, with 1 to %d inputs", len(x), blr.MaxDim)
	}
	var errs []error
	if len(y) != len(x) {
		errs = append(errs, fmt.Errorf("blr: %d labels for %d events", len(y), len(x)))
	}
	for n, row := range x {
		if len(row) != len(x[0]) {
			errs = append(errs, fmt.Errorf("blr: event %d has %d inputs, event 0 has %d", n, len(row), len(x[0])))
		}
		for j, v := range row {
			if !(math.Abs(v) <= blr.MaxInput) {
				errs = append(errs, fmt.Errorf("blr: input %d of event %d is %v: want a finite number up to %g",
					j, n, v, float64(blr.MaxInput)))
			}
		}
		if n < len(y) && y[n] != 1 && y[n] != -1 {
			errs = append(errs, fmt.Errorf("blr: label %d is %v: want +1 or -1", n, y[n]))
		}
		if len(errs) > 10 {
			break
		}
	}
	return errors.Join(errs...)
}

// checkPowers returns the first fault of the weights ω of n events.
func checkPowers(ω []float64, n int) error {
	if ω != nil && len(ω) != n {
		return fmt.Errorf("blr: %d weights for %d events", len(ω), n)
	}
	for i, v := range ω {
		if !(v > 0 && v <= blr.MaxInput) {
			return fmt.Errorf("blr: weight %d is %v: want a positive number up to %g", i, v, float64(blr.MaxInput))
		}
	}
	return nil
}

// A batchFit is an unfinished Batch.
type batchFit struct {
	x     [][]float64
	ω     []float64
	cfg   Config
	batch *Batch

	eta           []float64 // Σ yx/2
	alpha         []float64 // E(α) of each weight, the diagonal that is V's prior
	lambda        []float64 // λ(ξₙ)
	precision     triangle.Matrix
	factor        triangle.Matrix
	u             []float64
	gammaConstant float64 // the constants of one α in the bound
}

func newBatchFit(x [][]float64, y []float64, cfg Config) *batchFit {
	d := len(x[0])
	alphas, aN := 1, cfg.A0+0.5*float64(d)
	if cfg.ARD {
		alphas, aN = d, cfg.A0+0.5
	}
	f := &batchFit{
		x: x, ω: cfg.Weights, cfg: cfg,
		eta: make([]float64, d), alpha: make([]float64, d), lambda: make([]float64, len(x)),
		precision: triangle.New(d), factor: triangle.New(d), u: make([]float64, d),
		gammaConstant: float64(cfg.A0*logistic.Log(cfg.B0)) - logGamma(cfg.A0) + logGamma(aN) + aN,
		batch: &Batch{
			Gaussian: Gaussian{mean: make([]float64, d), cov: triangle.New(d)},
			EAlpha:   make([]float64, alphas), BN: make([]float64, alphas), AN: aN,
			Xi: make([]float64, len(x)),
		},
	}
	for j := range f.alpha {
		f.alpha[j] = cfg.A0 / cfg.B0
	}
	for i := range f.batch.EAlpha {
		f.batch.EAlpha[i] = cfg.A0 / cfg.B0
		f.batch.BN[i] = aN / f.batch.EAlpha[i]
	}
	if f.ω == nil {
		f.ω = slices.Repeat([]float64{1}, len(x))
	}
	for n, row := range x {
		f.lambda[n] = 0.125
		for j, v := range row {
			f.eta[j] += float64(float64(0.5*y[n]*f.ω[n]) * v)
		}
	}
	return f
}

// solve sets V, ln|V| and w from E(α) and λ.
func (f *batchFit) solve() {
	clear(f.precision)
	for n, row := range f.x {
		f.precision.AddOuter(float64(2*f.lambda[n]*f.ω[n]), row)
	}
	for j, α := range f.alpha {
		f.precision.Row(len(f.alpha), j)[0] += α
	}
	f.batch.LogDetV, _ = triangle.Invert(f.precision, f.eta, f.alpha, f.factor, f.batch.cov, f.batch.mean, f.u)
}

// refresh sets ξ and λ, and returns the largest change of a ξ.
func (f *batchFit) refresh() (moved float64) {
	for n, row := range f.x {
		m := triangle.InOrder(f.batch.mean, row)
		ξ := math.Sqrt(max(f.batch.cov.Quadratic(row), 0) + float64(m*m))
		moved = max(moved, math.Abs(ξ-f.batch.Xi[n]))
		f.batch.Xi[n] = ξ
		f.lambda[n] = blr.Lambda(ξ)
	}
	return moved
}

// reweigh sets b_N and E(α).
func (f *batchFit) reweigh() {
	b := f.batch
	total := 0.0
	for j, w := range b.mean {
		square := float64(w*w) + b.cov.At(len(b.mean), j, j)
		total += square
		if f.cfg.ARD {
			b.BN[j] = f.cfg.B0 + 0.5*square
		}
	}
	if !f.cfg.ARD {
		b.BN[0] = f.cfg.B0 + 0.5*total
	}
	for i := range b.BN {
		b.EAlpha[i] = b.AN / b.BN[i]
	}
	for j := range f.alpha {
		f.alpha[j] = b.EAlpha[min(j, len(b.EAlpha)-1)]
	}
}

// roundingOfBound is how far rounding may lower the bound, relative to the sum of its
// terms' sizes.
const roundingOfBound = 1e-13

// bound evaluates (30) or (50). Near the fixed point rounding may lower it: then it keeps
// the previous bound, which is valid too. It does not hide a larger fall.
func (f *batchFit) bound() {
	b := f.batch
	quad := float64(0.5 * triangle.InOrder(f.eta, b.mean))
	local := 0.0
	for n, ξ := range b.Xi {
		local += float64(f.ω[n] * (logistic.LogSigmoid(ξ) - 0.5*ξ + float64(f.lambda[n]*float64(ξ*ξ))))
	}
	hyper, size := 0.0, math.Abs(quad)+math.Abs(0.5*b.LogDetV)+math.Abs(local)
	for i, bN := range b.BN {
		h := f.gammaConstant - float64(f.cfg.B0*b.EAlpha[i]) - float64(b.AN*logistic.Log(bN))
		hyper += h
		size += math.Abs(h)
	}
	bound := quad + 0.5*b.LogDetV + local + hyper
	if len(b.Trace) > 0 && bound < b.Bound && b.Bound-bound <= roundingOfBound*(size+float64(len(f.x))) {
		bound = b.Bound
	}
	b.Bound = bound
	b.Trace = append(b.Trace, bound)
}

const halfLog2π = 0.91893853320467274178

// logGamma returns ln Γ(x), x > 0: Stirling's series at x + n ≥ 12, whose first omitted
// term is below 1e−16, and Γ(x) = Γ(x+n)/(x(x+1)…(x+n−1)).
func logGamma(x float64) float64 {
	shift := 0.0
	for ; x < 12; x++ {
		shift += logistic.Log(x)
	}
	i2 := 1 / float64(x*x)
	tail := 1.0/1680 - float64(i2*(1.0/1188-float64(i2*(691.0/360360))))
	series := 1.0/12 - float64(i2*(1.0/360-float64(i2*(1.0/1260-float64(i2*tail)))))
	return float64((x-0.5)*logistic.Log(x)) - x + halfLog2π + series/x - shift
}
