package fit

import (
	"context"
	"errors"
	"math"

	"hamlet/algos/lab/bblr"
)

func init() {
	register("bblr.loss", bblrLoss)
	register("bblr.kernel", bblrKernel)
	register("bblr.prior", bblrPrior)
	registerClassifier("bblr.fit", bblrFit)
}

// betaBernoulli is the likelihood. Pseudo counts of 0 mean logistic regression. Theta
// then has no effect, and the reply has ½.
type betaBernoulli struct {
	Alpha  float64 `json:"alpha" default:"1" in:"[0,∞)"`
	Beta   float64 `json:"beta" default:"1" in:"[0,∞)"`
	N      float64 `json:"n" default:"100" in:"[0,∞)"`
	Gamma  float64 `json:"gamma" default:"1" in:"(0,∞)"`
	Lambda float64 `json:"lambda" default:"0" in:"[0,∞)"`
}

func (q *betaBernoulli) likelihood() (bblr.Likelihood, error) {
	if q.Alpha == 0 && q.Beta == 0 && q.N == 0 {
		return bblr.Likelihood{}, wrong("n", "0, like alpha and beta: that is no mixture")
	}
	l := bblr.Counts(q.Alpha, q.Beta, q.N)
	l.Gamma = q.Gamma
	return l, nil
}

type bblrLossRequest struct {
	examples
	betaBernoulli
	W []float64 `json:"w" shape:"D"`
}

type bblrLossReply struct {
	A         float64       `json:"a"`
	B         float64       `json:"b"`
	Mix       float64       `json:"mix"`
	Theta     float64       `json:"theta"`
	Loss      float64       `json:"loss"`
	Grad      []float64     `json:"grad"`
	HyperGrad bblrHyperGrad `json:"hyper_grad"`
	P         []float64     `json:"p"` // of +1, by row
}

// A bblrHyperGrad is the gradient of the log likelihood, without the penalty. Without
// pseudo counts, a badly misclassified example can make the mixture's gradient overflow.
// The reply then has the largest float64.
type bblrHyperGrad struct {
	Mix   float64 `json:"mix"`
	Theta float64 `json:"theta"`
	Gamma float64 `json:"gamma"`
}

func bblrLoss(_ context.Context, q *bblrLossRequest) (*bblrLossReply, error) {
	l, err := q.likelihood()
	if err != nil {
		return nil, err
	}
	g := bblr.HyperGradientOf(l, q.X, q.Y, q.W)
	r := &bblrLossReply{
		A: l.A(), B: l.B(), Mix: l.Mix, Theta: l.Theta,
		Loss:      bblr.TotalLoss(l, q.X, q.Y, q.W, q.Lambda),
		Grad:      make([]float64, len(q.W)),
		HyperGrad: bblrHyperGrad{Mix: saturated(g.Mix), Theta: saturated(g.Theta), Gamma: g.Gamma},
		P:         bblr.Probs(l, q.X, q.W),
	}
	bblr.GradientTo(r.Grad, l, q.X, q.Y, q.W, q.Lambda)
	return r, nil
}

func saturated(v float64) float64 { return min(max(v, -math.MaxFloat64), math.MaxFloat64) }

type bblrKernelRequest struct {
	examples
	betaBernoulli
	Coef      []float64 `json:"coef" shape:"N"`
	Bandwidth *float64  `json:"bandwidth" default:"null" in:"(0,∞)"`
}

type bblrKernelReply struct {
	K0   []float64 `json:"k0"`
	Loss float64   `json:"loss"`
	Grad []float64 `json:"grad"`
}

func bblrKernel(ctx context.Context, q *bblrKernelRequest) (*bblrKernelReply, error) {
	l, err := q.likelihood()
	if err != nil {
		return nil, err
	}
	if len(q.X) > bblr.MaxKernelRows {
		return nil, wrong("x", "%d rows: a kernel takes up to %d", len(q.X), bblr.MaxKernelRows)
	}
	k, err := bblr.Gram(ctx, q.X, bandwidthOf(q.Bandwidth, q.X))
	if err != nil {
		return nil, err
	}
	r := &bblrKernelReply{K0: k[0], Loss: bblr.TotalLoss(l, k, q.Y, q.Coef, q.Lambda), Grad: make([]float64, len(q.Coef))}
	bblr.GradientTo(r.Grad, l, k, q.Y, q.Coef, q.Lambda)
	return r, nil
}

// bandwidthOf returns the given s², by default D.
func bandwidthOf(given *float64, x [][]float64) float64 {
	if given != nil {
		return *given
	}
	return float64(len(x[0]))
}

type bblrPriorRequest struct {
	Coef   []float64 `json:"coef" shape:"N"`
	PiG    float64   `json:"pi_g" in:"[0,1]"`
	SigmaG float64   `json:"sigma_g" in:"(0,∞)"` // a standard deviation
	PiL    float64   `json:"pi_l" in:"[0,1]"`
	BL     float64   `json:"b_l" in:"(0,∞)"`
}

type bblrPriorReply struct {
	LogPrior        float64   `json:"log_prior"`
	Grad            []float64 `json:"grad"`
	ResponsibilityG []float64 `json:"responsibility_g"`
}

func bblrPrior(_ context.Context, q *bblrPriorRequest) (*bblrPriorReply, error) {
	p := bblr.GaussLaplace{GaussShare: q.PiG, GaussSD: q.SigmaG, LaplaceShare: q.PiL, LaplaceScale: q.BL}
	if err := p.Check(); err != nil {
		return nil, bblrFields(err)
	}
	r := &bblrPriorReply{
		LogPrior: p.LogDensity(q.Coef), Grad: make([]float64, len(q.Coef)), ResponsibilityG: make([]float64, len(q.Coef)),
	}
	p.GradientTo(r.Grad, q.Coef)
	for j, a := range q.Coef {
		r.ResponsibilityG[j] = p.Responsibility(a)
	}
	return r, nil
}

// Package bblr has the origin of the defaults. The variant sigmoid is the paper's baseline,
// the loss σ(−γ·y·wᵀx) of Nguyen and Sanner; its mix is 0, and p_test is σ(γ·wᵀx). 3 and 4
// hold out a fifth of the rows, and kernels have a coefficient for each row, whatever the
// weights.
type bblrFitRequest struct {
	examples
	weighted
	tested
	Variant   string    `json:"variant" in:"1|2|3|4|kernel|sparse_kernel|sigmoid"`
	W0        []float64 `json:"w0" shape:"W" default:"null"` // D; kernels: N
	Lambda    float64   `json:"lambda" default:"1e-3" in:"[0,∞)"`
	Bandwidth *float64  `json:"bandwidth" default:"null" in:"(0,∞)"`

	R0       float64 `json:"r0" default:"8" in:"(0,∞)"`
	EpsS0    float64 `json:"eps_s0" default:"0.2" in:"(0,∞)"`
	GammaMin float64 `json:"gamma_min" default:"2" in:"(0,∞)"`
	GammaMax float64 `json:"gamma_max" default:"200" in:"(0,∞)"`
	RGamma   float64 `json:"r_gamma" default:"10" in:"(1,∞)"`
	RR       float64 `json:"r_r" default:"0.5" in:"(0,1]"`
	REps     float64 `json:"r_eps" default:"0.5" in:"(0,1]"`
	RG       float64 `json:"r_g" default:"0.1" in:"(0,0.99]"`
	RGMax    float64 `json:"r_g_max" default:"0.1" in:"(0,∞)"`
	RGMin    float64 `json:"r_g_min" default:"1e-5" in:"(0,∞)"`
	EpsL     float64 `json:"eps_l" default:"1e-3" in:"(0,∞)"`
	EpsG     float64 `json:"eps_g" default:"1e-4" in:"(0,∞)"`
}

// Support is only for kernels, whose w has a coefficient for each row.
type bblrFitReply struct {
	W         []float64 `json:"w"`
	Gamma     float64   `json:"gamma"`
	Mix       float64   `json:"mix"`
	Theta     float64   `json:"theta"`
	Lambda    float64   `json:"lambda"`
	LossStart float64   `json:"loss_start"`
	LossEnd   float64   `json:"loss_end"`
	Errors    int       `json:"errors"`
	Support   []int     `json:"support,omitempty"`
}

func bblrFit(ctx context.Context, q *bblrFitRequest) (*bblrFitReply, Classifier, error) {
	kernel := q.Variant == "kernel" || q.Variant == "sparse_kernel"
	wanted, what := len(q.X[0]), "columns"
	if kernel {
		wanted, what = len(q.X), "rows"
	}
	if q.W0 != nil && len(q.W0) != wanted {
		return nil, nil, wrong("w0", "%d entries, but x has %d %s", len(q.W0), wanted, what)
	}
	if kernel {
		return q.kernel(ctx)
	}
	cfg := bblr.Config{
		Variant: map[string]bblr.Variant{
			"1": bblr.BBLR1, "2": bblr.BBLR2, "3": bblr.BBLR3, "4": bblr.BBLR4, "sigmoid": bblr.Sigmoid,
		}[q.Variant],
		Lambda: q.Lambda, Unpenalised: q.Lambda == 0, Raw: true, Start: q.W0, Schedule: q.schedule(),
	}
	if err := cfg.Check(); err != nil {
		return nil, nil, bblrFields(err)
	}
	m, report, err := bblr.Fit(ctx, cfg, q.X, q.Y, q.Weights)
	if err != nil {
		return nil, nil, bblrData(err)
	}
	r := newBBLRFitReply(m.Likelihood(), report)
	r.W, _ = m.Weights()
	return r, m, nil
}

// kernel answers for a kernel.
func (q *bblrFitRequest) kernel(ctx context.Context) (*bblrFitReply, Classifier, error) {
	cfg := bblr.KernelConfig{
		Bandwidth: bandwidthOf(q.Bandwidth, q.X), Sparse: q.Variant == "sparse_kernel",
		Lambda: q.Lambda, Unpenalised: q.Lambda == 0, Raw: true, Start: q.W0, Schedule: q.schedule(),
	}
	if err := cfg.Check(); err != nil {
		return nil, nil, bblrFields(err)
	}
	m, report, err := bblr.FitKernel(ctx, cfg, q.X, q.Y, q.Weights)
	if err != nil {
		return nil, nil, bblrData(err)
	}
	r := newBBLRFitReply(m.Likelihood(), report)
	r.W, r.Support = make([]float64, len(q.X)), []int{}
	rows, coef := m.Support()
	for k, i := range rows {
		r.W[i] = coef[k]
		r.Support = append(r.Support, i)
	}
	return r, m, nil
}

func newBBLRFitReply(l bblr.Likelihood, report bblr.Report) *bblrFitReply {
	return &bblrFitReply{
		Gamma: l.Gamma, Mix: l.Mix, Theta: l.Theta, Lambda: report.Lambda,
		LossStart: report.LossStart, LossEnd: report.LossEnd, Errors: report.Errors,
	}
}

func (q *bblrFitRequest) schedule() bblr.Schedule {
	return bblr.Schedule{
		Radius: q.R0, Spacing: q.EpsS0, GammaMin: q.GammaMin, GammaMax: q.GammaMax, GammaGrowth: q.RGamma,
		RadiusShrink: q.RR, SpacingShrink: q.REps, RateShrink: q.RG, RateMax: q.RGMax, RateMin: q.RGMin,
		LossTolerance: q.EpsL, GradientTolerance: q.EpsG,
	}
}

// bblrNames maps names of fields of package bblr to those of requests.
var bblrNames = map[string]string{
	"Lambda": "lambda", "Bandwidth": "bandwidth", "Radius": "r0", "Spacing": "eps_s0", "GammaMin": "gamma_min",
	"GammaMax": "gamma_max", "GammaGrowth": "r_gamma", "RadiusShrink": "r_r", "SpacingShrink": "r_eps",
	"RateShrink": "r_g", "RateMax": "r_g_max", "RateMin": "r_g_min", "LossTolerance": "eps_l",
	"GradientTolerance": "eps_g", "GaussShare": "pi_g", "GaussSD": "sigma_g", "LaplaceShare": "pi_l",
	"LaplaceScale": "b_l",
}

// bblrFields replaces names of package bblr in an error by those of the request.
func bblrFields(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var problems []error
		for _, one := range many.Unwrap() {
			problems = append(problems, bblrFields(one))
		}
		return joined(problems)
	}
	var field *bblr.FieldError
	if errors.As(err, &field) && bblrNames[field.Field] != "" {
		return wrong(bblrNames[field.Field], "%s", field.Problem)
	}
	return err
}

// bblrData adds the field that made a fit fail to its error.
func bblrData(err error) error {
	switch {
	case errors.Is(err, bblr.ErrOneClass):
		return wrong("y", "%w", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return wrong("x", "%w", err)
}
