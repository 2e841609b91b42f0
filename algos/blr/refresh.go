package blr

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/triangle"
)

// Refresh solves the site of an absorbed event again, under the current belief. Without
// the event's old site (h, e), the belief is xᵀβ ~ N(m₋, a₋),
//
//	a₋ = a/(1−ha),   m₋ = (m − ea)/(1−ha).
//
// The new site is solved under that, to the power φ times what forgetting has left of it.
// The change is one rank-1 step. For JaakkolaJordan it maximises the bound (11) over
// ξ and q(β) together; for R-VGA it is a coordinate step of Gaussian variational
// inference. MEASURED.md says why it helps.
//
// site becomes the new one, with its Phi and Fades. moved is the change of
// x's mean log-odds, in nats. It costs O(D²) without allocation, and one factoring if 1−ha
// is small. Errors are those of Unlearn; then nothing has changed.
func (p *Posterior) Refresh(site *Site) (moved float64, err error) {
	moved, err = p.refresh(site)
	if err == nil {
		p.corrected(site.X)
	}
	return moved, err
}

func (p *Posterior) refresh(site *Site) (moved float64, err error) {
	if err := p.checkSite(site); err != nil {
		return 0, err
	}
	x := site.X
	h, eta, left := p.faded(site)
	phi := float64(site.Phi * left)
	if !(phi > 0 && phi <= MostPower) || site.Y != 1 && site.Y != -1 {
		if left == 0 {
			return 0, nil // it has faded to nothing
		}
		return 0, fmt.Errorf("blr: the record's label is %v, to the power %v", site.Y, site.Phi)
	}
	p.vx(p.u, x)
	a, m := max(triangle.Dot(x, p.u), 0), triangle.InOrder(p.mean, x)
	rest := 1 - float64(h*a)
	// Without the site the variance is at most the prior's, as in Unlearn.
	prior, was := p.priorVariance(x), m
	if rest < thinnest {
		if _, err := p.withdrawThin(x, h, eta); err != nil {
			return 0, err
		}
		p.vx(p.u, x)
		a, m = max(triangle.Dot(x, p.u), 0), triangle.InOrder(p.mean, x)
		h, eta, rest = 0, 0, 1
	} else if float64(a*(1-beyondPrior)) > float64(prior*rest) {
		return 0, fmt.Errorf("blr: refresh a site without which the variance along x is %v, the prior's is %v: %w",
			a/rest, prior, ErrIndefinite)
	}
	st := p.solve((m-float64(eta*a))/rest, min(a/rest, prior), site.Y, phi)
	dh, de := st.H-h, st.Eta-eta
	st.R, st.Evidence = site.R, site.Evidence // as when it was learnt
	site.Step, site.Phi, site.Fades = st, phi, p.Fades()
	if a == 0 {
		return 0, nil
	}
	p.write()
	p.addSite(x, dh, de, m, a)
	return math.Abs((m - was) + float64((de-float64(dh*m))/(1+float64(dh*a))*a)), nil
}

// Sweep refreshes all sites in order and computes V again at the end. moved is
// the largest change of an event's mean log-odds by its own refresh, in nats. Three sweeps
// bring an incremental fit to the log loss of the batch fit. On an error, the sites of the
// sites before it are refreshed.
func (p *Posterior) Sweep(sites []Site) (moved float64, err error) {
	for i := range sites {
		d, err := p.refresh(&sites[i])
		if err != nil {
			return moved, fmt.Errorf("record %d: %w", i, err)
		}
		moved = max(moved, d)
		p.corrections++
		if p.corrections%probeEvery == 0 && !(p.residual(sites[i].X) <= probeTolerance) {
			p.repaired++
			p.remake()
		}
	}
	p.scheduled++
	p.remake()
	return moved, nil
}

// Merge joins posteriors that learnt different events from one prior,
//
//	Λ = Λ₀ + Σₖ(Λₖ − Λ₀),   η = η₀ + Σₖ(ηₖ − η₀):
//
// the prior counts once, each site once. With equal sites it is the sequential posterior
// to rounding. Sites solved separately change p by .01 to .02 for four parts, but not the
// error rate; a Sweep over all sites removes the difference. Merge only parts with the
// same input coordinates. If parts have their own standardisation or experts, average
// their log-odds instead.
//
// The parts stay as they are. Updates, corrections and log evidence are sums. The error
// says which configurations differ. With a half-life each part's sites have faded by its
// own count of events, and its sites do not fit the result.
func Merge(parts ...*Posterior) (*Posterior, error) {
	if len(parts) == 0 {
		return nil, errors.New("blr: merge no posteriors")
	}
	first := parts[0]
	for k, q := range parts[1:] {
		if !q.Alike(first) {
			return nil, fmt.Errorf("blr: merge: part %d and part 0 differ in inputs, prior, site, "+
				"half-life, schedule, tolerance or block", k+1)
		}
	}
	m := first.Clone()
	m.write()
	for _, q := range parts[1:] {
		for i, v := range q.precisionNow() {
			m.precision[i] += v
		}
		for j, τ := range q.precision0 {
			m.precision.Row(m.dim, j)[0] -= τ
			m.eta[j] += q.eta[j] - float64(τ*q.mean0[j])
		}
		m.updates += q.updates
		m.corrections += q.corrections
		m.scheduled += q.scheduled
		m.repaired += q.repaired
		m.raised += q.raised
		m.logEvidence += q.logEvidence
	}
	m.scheduled++
	m.remake()
	return m, nil
}
