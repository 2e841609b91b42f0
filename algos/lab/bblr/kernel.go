package bblr

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hamlet/algos/bblr"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/sla"
)

// A KernelConfig says what kernel classifier to fit (section 3.4). Its zero value
// is a dense one over standardised rows with s² = D.
type KernelConfig struct {
	// Bandwidth is s² in K(x, x') = exp(−|x−x'|²/2s²); 0 is D, the mean squared
	// distance of a standardised row from the centre.
	Bandwidth float64
	// Sparse uses the Gauss–Laplace prior of section 5.4 instead of λ. The
	// classifier stores only rows with coefficients other than 0.
	Sparse bool
	// Lambda, Unpenalised, Raw and Start are as in [Config], for the coefficients.
	// There is no bias, and a nil Start is 0.
	Lambda      float64
	Unpenalised bool
	Raw         bool
	Start       []float64
	// Schedule holds the constants of SLA. γ is GammaMin; GammaMax is ignored.
	Schedule
}

// MaxKernelRows bounds the rows N of a kernel fit, whose matrix has N² numbers: up
// to 512 MiB.
const MaxKernelRows = 8192

// Check reports all that is wrong with cfg.
func (cfg KernelConfig) Check() error {
	only := cfg.Schedule.withDefaults()
	only.GammaMax = only.GammaMin
	errs := []error{only.Check(), checkLambda(cfg.Lambda, cfg.Unpenalised), sla.CheckFinite("Start", cfg.Start)}
	if !(cfg.Bandwidth >= 0 && cfg.Bandwidth <= math.MaxFloat64) {
		errs = append(errs, badField("Bandwidth", "%v: want more than 0 and finite, or 0 for the number of columns",
			cfg.Bandwidth))
	}
	return errors.Join(errs...)
}

// Kernel returns exp(−|x−x'|²/2s²) for the bandwidth s².
func Kernel(x, xʹ []float64, bandwidth float64) float64 {
	if len(x) != len(xʹ) {
		panic(fmt.Sprintf("bblr: the kernel of %d and %d numbers", len(x), len(xʹ)))
	}
	sum := 0.0
	for j, v := range x {
		d := v - xʹ[j]
		sum += float64(d * d)
	}
	return logistic.Exp(-sum / 2 / bandwidth)
}

// Gram returns the matrix of the kernel between all rows of x. A kernel classifier
// is a linear classifier of the rows of this matrix (equations 36 to 38). The error
// is ctx's, checked before every row.
func Gram(ctx context.Context, x [][]float64, bandwidth float64) ([][]float64, error) {
	all := make([]float64, len(x)*len(x))
	k := make([][]float64, len(x))
	for i := range x {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		k[i] = all[i*len(x) : (i+1)*len(x)]
		for j := range i {
			k[i][j] = Kernel(x[i], x[j], bandwidth)
			k[j][i] = k[i][j]
		}
		k[i][i] = Kernel(x[i], x[i], bandwidth)
	}
	return k, nil
}

// FitKernel fits f(x) = Σ a_j·K(x, x_j) to rows with labels ±1, with the mixture of
// BBLR2, at one level of SLA with γ = GammaMin. The report counts the errors of f.
// Its losses are equation 39 with λ, which is 0 for a sparse fit.
//
// Errors are those of Fit. It needs both labels and at most MaxKernelRows rows. A
// step costs O(N²).
func FitKernel(ctx context.Context, cfg KernelConfig,
	x [][]float64, y, weight []float64) (*KernelMachine, Report, error) {
	if err := cfg.Check(); err != nil {
		return nil, Report{}, err
	}
	if err := sla.CheckRows(x, y, weight); err != nil {
		return nil, Report{}, err
	}
	if len(x) > MaxKernelRows {
		return nil, Report{}, fmt.Errorf("%d rows: a kernel fit takes up to %d", len(x), MaxKernelRows)
	}
	k := &KernelMachine{dim: len(x[0]), bandwidth: cfg.Bandwidth}
	if k.bandwidth == 0 {
		k.bandwidth = float64(k.dim)
	}
	if !cfg.Raw {
		var err error
		if k.scaling, err = sla.NewScaling(x); err != nil {
			return nil, Report{}, err
		}
		x = k.scaling.Rows(x)
	}
	linear := Config{Lambda: cfg.Lambda, Unpenalised: cfg.Unpenalised, Start: cfg.Start, Schedule: cfg.Schedule}
	p, err := gramProblem(ctx, x, y, weight, k.bandwidth)
	if err != nil {
		return nil, Report{}, err
	}
	f := &fitter{Config: linear.withDefaults(), problem: p}
	if f.Start == nil {
		f.Start = make([]float64, len(x))
	}
	if len(f.Start) != len(x) {
		panic(fmt.Sprintf("bblr: a start of %d coefficients for %d rows", len(f.Start), len(x)))
	}
	a, l, err := f.fitKernel(ctx, cfg.Sparse)
	if err != nil {
		return nil, Report{}, err
	}
	k.likelihood = l
	for j, v := range a {
		if v != 0 {
			k.support = append(k.support, j)
			k.coef = append(k.coef, v)
			k.rows = append(k.rows, x[j]...)
		}
	}
	return k, f.report, nil
}

// gramProblem returns the problem with the rows of the kernel's matrix. The matrix
// is symmetric, so cols is rows.
func gramProblem(ctx context.Context, x [][]float64, y, weight []float64, bandwidth float64) (*sla.Problem, error) {
	k, err := Gram(ctx, x, bandwidth)
	if err != nil {
		return nil, err
	}
	n := len(k)
	all := k[0][: n*n : n*n]
	return sla.ProblemOf(&sla.Dense{N: n, D: n, Rows: all, Cols: all}, n, n, y, weight), nil
}

// fitKernel is fit for the problem of a kernel's matrix.
func (f *fitter) fitKernel(ctx context.Context, sparse bool) ([]float64, Likelihood, error) {
	l, err := f.mixture()
	if err != nil {
		return nil, l, err
	}
	only := sla.Level{Gamma: f.GammaMin, Radius: f.Radius, Spacing: f.Spacing}
	l.Gamma = only.Gamma
	a := append([]float64(nil), f.Start...)
	if sparse {
		f.Lambda = 0
		err = newSparsifier(f.problem, curveOf(l), f.Schedule).fit(ctx, a)
	} else {
		_, err = f.newSLA(curveOf(l)).SearchRange(ctx, a, only)
	}
	if err != nil {
		return nil, l, err
	}
	return a, l, f.finish(sla.NewObjective(f.problem, curveOf(l), f.Lambda), f.Start, a)
}

// A KernelMachine is a fitted kernel classifier. It does not change and may be used
// concurrently. A call costs O(D) and an exponential for each support row.
type KernelMachine struct {
	dim        int
	bandwidth  float64
	scaling    *sla.Scaling // nil after a raw fit
	likelihood Likelihood
	support    []int     // sample indices of the support rows, ascending
	coef       []float64 // their a_j, none 0
	rows       []float64 // the support rows, K×D, standardised unless scaling is nil
}

// Score returns f(x) = Σ a_j·K(x, x_j). x must be as long as a row of the sample.
func (k *KernelMachine) Score(x []float64) float64 {
	if len(x) != k.dim {
		panic(fmt.Sprintf("bblr: a row of %d numbers for a kernel of %d", len(x), k.dim))
	}
	if k.scaling != nil {
		scaled := make([]float64, k.dim)
		k.scaling.To(scaled, x)
		x = scaled
	}
	sum := 0.0
	for j, a := range k.coef {
		sum += float64(a * Kernel(x, k.rows[j*k.dim:(j+1)*k.dim], k.bandwidth))
	}
	return sum
}

// Label returns the decision ±1, the sign of Score; 0 counts as −1.
func (k *KernelMachine) Label(x []float64) float64 { return bblr.LabelOf(k.Score(x)) }

// Prob returns μ, the model's probability of label +1, in [a, a+b].
func (k *KernelMachine) Prob(x []float64) float64 { return k.likelihood.Prob(k.Score(x)) }

// LogOdds returns ln μ/(1−μ) in nats.
func (k *KernelMachine) LogOdds(x []float64) float64 { return k.likelihood.LogOdds(k.Score(x)) }

// Likelihood returns the mixture and the steepness.
func (k *KernelMachine) Likelihood() Likelihood { return k.likelihood }

// Support returns the sample indices of the support rows, ascending, and their
// coefficients, none of them 0.
func (k *KernelMachine) Support() (rows []int, coef []float64) {
	return append([]int(nil), k.support...), append([]float64(nil), k.coef...)
}
