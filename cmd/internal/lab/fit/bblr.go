package fit

import (
	"context"
	"math"

	"hamlet/algos/lab/bblr"
)

func init() {
	register("bblr.loss", bblrLoss)
	register("bblr.kernel", bblrKernel)
	register("bblr.prior", bblrPrior)
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
