package blr

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
)

// ErrIndefinite is the cause of an error of Unlearn and Refresh: the site is not in the
// belief. It was never learnt, or has been withdrawn, or another posterior learnt it.
// Without it the precision would not be positive definite, or the variance along x
// greater than the prior's. Nothing has changed.
var ErrIndefinite = errors.New("the site is not in the belief")

// A Receipt says what a withdrawal did to the belief.
type Receipt struct {
	H, Eta  float64 // the site as it stood: −H·xxᵀ and −Eta·x were added to Λ and η
	R       float64 // what was left of R, the step in w when it was learnt
	Xi      float64 // JaakkolaJordan: its ξ
	KL      float64 // KL(before‖after), in nats
	LogDetV float64 // by how much ln|V| grew
}

const (
	// A withdrawal that leaves less than this of the precision along x, 1 − ha, has lost
	// four digits in V, which is then computed again.
	thinnest = 1e-4
	// beyondPrior lets rounding take the variance along x above the prior's.
	beyondPrior = 1e-6
	// The shift of a site is at most 1.5φ: r ≤ φ and |h·m′| ≤ φ/2, since h/φ is a
	// symmetric falling density at m′ (for JaakkolaJordan the shift is φ/2).
	mostShift = 2
)

// standing returns what is left of the site of rec, which forgetting lets fade.
func (p *Posterior) standing(rec *Record) (h, eta, left float64) {
	left = 1
	for n := rec.Fades; n < p.Fades() && left > 0; n++ {
		left *= p.keep
	}
	return float64(rec.H * left), float64(rec.Eta * left), left
}

// checkRecord refuses a record that no posterior can have made. It panics if its inputs
// have the wrong length.
func (p *Posterior) checkRecord(rec *Record) error {
	p.checkLength(len(rec.X))
	for j, v := range rec.X {
		if !(math.Abs(v) <= longest) {
			return fmt.Errorf("blr: input %d of the record is %v", j, v)
		}
	}
	if !(rec.H >= 0 && rec.H <= 0.25) || !(math.Abs(rec.Eta) <= mostShift) {
		return fmt.Errorf("blr: the record's site has curvature %v and shift %v", rec.H, rec.Eta)
	}
	if rec.Fades > p.Fades() {
		return fmt.Errorf("blr: the record was made after %d fadings, there have been %d", rec.Fades, p.Fades())
	}
	return nil
}

// Unlearn subtracts the site of rec, as it stands now, from Λ and η. Sites solved after it
// stay as they are until a Refresh. Neither Updates nor the log evidence changes. With
// u = Vx, m = wᵀx, a = xᵀVx and q = 1 − ha,
//
//	V ← V + h/q·uuᵀ,   w ← w + ρu,   ρ = (hm − e)/q,   ln|V| ← ln|V| − ln q
//	KL(before‖after) = ½(−ha − ln q + ρ²aq)
//
// for Δη = −e·x. It costs O(D²) and allocates nothing; where q is small it costs a
// factoring. It probes V. The error wraps ErrIndefinite if the site is not in the belief,
// or says why rec can be no record; nothing has changed then. It panics if rec.X has the
// wrong length.
func (p *Posterior) Unlearn(rec Record) (Receipt, error) {
	if err := p.checkRecord(&rec); err != nil {
		return Receipt{}, err
	}
	x := rec.X
	h, eta, left := p.standing(&rec)
	p.vx(p.u, x)
	a, m := max(dot(x, p.u), 0), inOrder(p.mean, x)
	rest := 1 - float64(h*a)
	// Λ without the site is still the prior's and a sum of other sites, so that
	// a/q cannot be above the prior's variance of xᵀβ.
	prior := p.priorVariance(x)
	receipt := Receipt{H: h, Eta: eta, R: float64(rec.R * left), Xi: rec.Xi}
	before := p.logDetV
	if rest < thinnest {
		after, err := p.withdrawThin(x, h, eta)
		if err != nil {
			return Receipt{}, err
		}
		rest = a / after
	} else {
		if float64(a*(1-beyondPrior)) > float64(prior*rest) {
			return Receipt{}, fmt.Errorf("blr: withdraw a site that leaves the variance %v along x, the prior's is %v: %w", a/rest, prior, ErrIndefinite)
		}
		p.write()
		p.addSite(x, -h, -eta, m, a)
	}
	p.corrected(x)

	ρ := (float64(h*m) - eta) / rest
	receipt.KL = 0.5 * (float64(float64(ρ*ρ)*float64(a*rest)) + (rest - 1 - logistic.Log(rest)))
	receipt.LogDetV = p.logDetV - before
	return receipt, nil
}

// priorVariance returns the variance of xᵀβ before any event.
func (p *Posterior) priorVariance(x []float64) float64 {
	a := 0.0
	for j, v := range x {
		a += float64(v*v) / p.precision0[j]
	}
	return a
}

// addSite adds h·xxᵀ to Λ and eta·x to η, where 1 + ha > 0, m = wᵀx and p.u = Vx.
func (p *Posterior) addSite(x []float64, h, eta, m, a float64) {
	ha := float64(h * a)
	r := (eta - float64(h*m)) / (1 + ha)
	p.precision.addOuter(h, x)
	p.cov.addOuter(-h/(1+ha), p.u)
	for j, v := range x {
		p.eta[j] += float64(eta * v)
		p.mean[j] += float64(r * p.u[j])
	}
	p.logDetV -= logistic.Log1p(ha)
}

// withdrawThin withdraws a site from which nearly all precision along x comes, by Λ and η,
// and computes V again. It returns the variance along x, or ErrIndefinite if Λ without
// the site lies below the prior's by more than rounding.
func (p *Posterior) withdrawThin(x []float64, h, eta float64) (a float64, err error) {
	n := p.dim
	before := p.precisionNow()
	rest := slices.Clone(before)
	rest.addOuter(-h, x)
	// A factor exists with pivots above the prior's precision once Λ's rounding
	// has been added.
	copy(p.factor, rest)
	for i := range n {
		p.factor.row(n, i)[0] += float64(float64(1e-15*float64(n)) * before.at(n, i, i))
	}
	if p.factor.cholesky(p.precision0) > 0 {
		return 0, fmt.Errorf("blr: withdraw a site without which the precision is not positive definite: %w", ErrIndefinite)
	}
	p.write()
	copy(p.precision, rest)
	for j, v := range x {
		p.eta[j] -= float64(eta * v)
	}
	p.repaired++
	p.remake()
	return p.cov.quadratic(x), nil
}

// corrected counts a withdrawal or refresh along x and repairs V if it is inaccurate.
func (p *Posterior) corrected(x []float64) {
	p.corrections++
	if !(p.residual(x) <= probeTolerance) {
		p.repaired++
		p.remake()
	} else if p.corrections%uint64(p.refactor) == 0 {
		p.scheduled++
		p.remake()
	}
}

// Corrections returns the number of sites withdrawn or refreshed.
func (p *Posterior) Corrections() uint64 { return p.corrections }
