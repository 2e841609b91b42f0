package blr

import "fmt"

// SetSite makes later events and refreshes use another site. A Sweep then changes the
// absorbed sites too. A sweep under RVGA corrects the intervals of JaakkolaJordan, which
// are far too narrow where p saturates. It panics on an unknown site.
func (p *Posterior) SetSite(site Approximation) {
	if site > ExactRVGA {
		panic(fmt.Sprintf("blr: unknown site %d", site))
	}
	p.site = site
	if site != JaakkolaJordan {
		p.xiStop = 0
	}
}

// FitPrior multiplies the precisions of all weights by one factor k, the paper's E(α)
// (20–22) for a prior N(w₀, (αΛ₀)⁻¹),
//
//	k = (a₀ + D/2) / (b₀ + ½ Σⱼ τⱼ((wⱼ−w₀ⱼ)² + Vⱼⱼ)),   a₀ = 10⁻², b₀ = 10⁻⁴,
//
// and then sweeps over recs. That is one step of expectation maximisation on the
// evidence; three rounds are enough in practice. A prior far from the truth makes the
// belief overconfident (MEASURED.md).
//
// It returns k and what Sweep returns. The result merges only with posteriors that have
// the same prior.
func (p *Posterior) FitPrior(recs []Site) (k, moved float64, err error) {
	square := 0.0
	for j, τ := range p.precision0 {
		d := p.mean[j] - p.mean0[j]
		square += float64(τ * (float64(d*d) + p.varianceOf(j)))
	}
	k = (1e-2 + 0.5*float64(p.dim)) / (1e-4 + 0.5*square)
	for _, τ := range p.precision0 {
		if !validPrecision(float64(k * τ)) {
			return 1, 0, fmt.Errorf("blr: fit the prior: a precision of %v times %v", τ, k)
		}
	}
	p.write()
	for j, τ := range p.precision0 {
		more := float64((k - 1) * τ)
		p.precision.Row(p.dim, j)[0] += more
		p.eta[j] += float64(more * p.mean0[j])
		p.precision0[j] = τ + more
	}
	p.scheduled++
	p.remake()
	moved, err = p.Sweep(recs)
	return k, moved, err
}
