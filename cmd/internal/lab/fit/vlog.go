package fit

import (
	"context"
	"errors"
	"slices"

	"hamlet/algos/lab/vlog"
)

func init() {
	register("vlog", vLog)
	register("vlog.sample", vLogSample)
}

// vLogDensity are the parameters of a v-Log density.
type vLogDensity struct {
	Beta  []float64 `json:"beta" shape:"K"`
	Gamma []float64 `json:"gamma" shape:"K"`
	Mu    []float64 `json:"mu" shape:"K" in:"[0,∞)"`
}

// density checks that the density can be normalised. The error names beta, gamma or mu.
func (q *vLogDensity) density() (vlog.Density, error) {
	d := vlog.Density{Beta: q.Beta, Gamma: q.Gamma, Mu: q.Mu}
	err := d.Check()
	if errors.Is(err, vlog.ErrImproper) {
		if slices.Min(q.Beta) < 0 && slices.Max(q.Beta) > 0 {
			return d, wrong("mu", "%w", err)
		}
		return d, wrong("beta", "%w", err)
	}
	return d, err
}

type vLogRequest struct {
	vLogDensity
	Z   []float64 `json:"z" shape:"P"`
	Tau []float64 `json:"tau" shape:"T" default:"[1]" in:"(0,∞)"`
}

// Densities and moments belong to the normalised density. log_norm is ln of the integral
// of the product (1), with terms of slope 0. approx_mode is left out unless all slopes,
// also of terms with mu 0, have one magnitude.
type vLogReply struct {
	LogNorm    float64   `json:"log_norm"`
	Mode       float64   `json:"mode"`
	Mean       float64   `json:"mean"`
	Variance   float64   `json:"variance"`
	LogPDF     []float64 `json:"log_pdf"`
	CDF        []float64 `json:"cdf"`
	ApproxMode []float64 `json:"approx_mode,omitempty"`
}

func vLog(_ context.Context, q *vLogRequest) (*vLogReply, error) {
	d, err := q.density()
	if err != nil {
		return nil, err
	}
	p, err := vlog.New(d)
	if err != nil {
		return nil, err
	}
	r := &vLogReply{LogNorm: p.LogNorm(), Mode: p.Mode(), Mean: p.Mean(), Variance: p.Variance()}
	for _, z := range q.Z {
		r.LogPDF = append(r.LogPDF, p.LogPDF(z))
		r.CDF = append(r.CDF, p.CDF(z))
	}
	for _, τ := range q.Tau {
		if m, ok := d.ApproxMode(τ); ok {
			r.ApproxMode = append(r.ApproxMode, m)
		}
	}
	return r, nil
}

type vLogSampleRequest struct {
	vLogDensity
	seeded
	N int `json:"n" default:"1" in:"[1,16777216]"`
}

type vLogSampleReply struct {
	Samples []float64 `json:"samples"`
}

func vLogSample(ctx context.Context, q *vLogSampleRequest) (*vLogSampleReply, error) {
	d, err := q.density()
	if err != nil {
		return nil, err
	}
	s, err := vlog.NewSampler(d)
	if err != nil {
		return nil, err
	}
	src := q.source()
	r := &vLogSampleReply{Samples: make([]float64, q.N)}
	for i := range r.Samples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.Samples[i] = s.Draw(src)
	}
	return r, nil
}
