package blr

import (
	"fmt"
	"math"
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
// rec becomes the record of the new site, with its Phi and Fades. moved is the change of
// x's mean log-odds, in nats. It costs O(D²) without allocation, and one factoring if 1−ha
// is small. Errors are those of Unlearn; then nothing has changed.
func (p *Posterior) Refresh(rec *Record) (moved float64, err error) {
	moved, err = p.refresh(rec)
	if err == nil {
		p.corrected(rec.X)
	}
	return moved, err
}

func (p *Posterior) refresh(rec *Record) (moved float64, err error) {
	if err := p.checkRecord(rec); err != nil {
		return 0, err
	}
	x := rec.X
	h, eta, left := p.standing(rec)
	phi := float64(rec.Phi * left)
	if !(phi > 0 && phi <= MostPower) || rec.Y != 1 && rec.Y != -1 {
		if left == 0 {
			return 0, nil // it has faded to nothing
		}
		return 0, fmt.Errorf("blr: the record's label is %v, to the power %v", rec.Y, rec.Phi)
	}
	p.vx(p.u, x)
	a, m := max(dot(x, p.u), 0), inOrder(p.mean, x)
	rest := 1 - float64(h*a)
	// Without the site the variance is at most the prior's, as in Unlearn.
	prior, was := p.priorVariance(x), m
	if rest < thinnest {
		if _, err := p.withdrawThin(x, h, eta); err != nil {
			return 0, err
		}
		p.vx(p.u, x)
		a, m = max(dot(x, p.u), 0), inOrder(p.mean, x)
		h, eta, rest = 0, 0, 1
	} else if float64(a*(1-beyondPrior)) > float64(prior*rest) {
		return 0, fmt.Errorf("blr: refresh a site without which the variance along x is %v, the prior's is %v: %w", a/rest, prior, ErrIndefinite)
	}
	st := p.solve((m-float64(eta*a))/rest, min(a/rest, prior), rec.Y, phi)
	dh, de := st.H-h, st.Eta-eta
	st.R, st.Evidence = rec.R, rec.Evidence // as when it was learnt
	rec.Step, rec.Phi, rec.Fades = st, phi, p.Fades()
	if a == 0 {
		return 0, nil
	}
	p.write()
	p.addSite(x, dh, de, m, a)
	return math.Abs((m - was) + float64((de-float64(dh*m))/(1+float64(dh*a))*a)), nil
}
