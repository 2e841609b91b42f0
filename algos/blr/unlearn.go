package blr

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// A Site is one event as the posterior absorbed it: all that Unlearn and Refresh need.
// It added H·xxᵀ to Λ and Eta·x to η; with a half-life both have faded since.
type Site struct {
	X      []float64 // the inputs, of length D
	Y, Phi float64   // the label ±1, and the power of its likelihood, at most MostPower
	Step             // the site
	Fades  uint64    // the posterior's Fades before the event
}

// ErrIndefinite is the cause of an error of Unlearn and Refresh: the site is not in the
// belief. It was never learnt, or has been withdrawn, or another posterior learnt it.
// Without it the precision would not be positive definite, or the variance along x
// greater than the prior's. Nothing has changed.
var ErrIndefinite = errors.New("the site is not in the belief")

// A Receipt says what a withdrawal did to the belief.
type Receipt struct {
	H, Eta  float64 // the withdrawn site: H·xxᵀ and Eta·x were subtracted from Λ and η
	Xi      float64 // JaakkolaJordan: its ξ
	KL      float64 // KL(before‖after), in nats
	LogDetV float64 // by how much ln|V| grew
}

const (
	// If a withdrawal leaves a smaller part 1 − ha of the precision along x, V has lost
	// four digits and is computed again.
	thinnest = 1e-4
	// Rounding may raise the variance along x above the prior's by this part.
	beyondPrior = 1e-6
	// The shift of a site is at most 1.5φ: r ≤ φ and |h·m′| ≤ φ/2, since h/φ is a
	// symmetric falling density at m′ (for JaakkolaJordan the shift is φ/2).
	mostShift = 2 * MostPower
)

// faded returns what forgetting has left of a site, and which part that is.
func (p *Posterior) faded(site *Site) (h, eta, left float64) {
	left = 1
	for n := site.Fades; n < p.Fades() && left > 0; n++ {
		left *= p.keep
	}
	return float64(site.H * left), float64(site.Eta * left), left
}

// checkSite refuses a site that no posterior can have made. It panics if its inputs
// have the wrong length.
func (p *Posterior) checkSite(site *Site) error {
	p.checkLength(len(site.X))
	for j, v := range site.X {
		if !(math.Abs(v) <= MaxInput) {
			return fmt.Errorf("blr: input %d of the record is %v", j, v)
		}
	}
	if !(site.H >= 0 && site.H <= 0.25*MostPower) || !(math.Abs(site.Eta) <= mostShift) {
		return fmt.Errorf("blr: the record's site has curvature %v and shift %v", site.H, site.Eta)
	}
	if site.Fades > p.Fades() {
		return fmt.Errorf("blr: the record was made after %d fadings, there have been %d", site.Fades, p.Fades())
	}
	return nil
}

// Unlearn subtracts what forgetting has left of site from Λ and η. Later sites
// change only in a Refresh. Neither Updates nor the log evidence changes. With
// u = Vx, m = wᵀx, a = xᵀVx and q = 1 − ha,
//
//	V ← V + h/q·uuᵀ,   w ← w + ρu,   ρ = (hm − e)/q,   ln|V| ← ln|V| − ln q
//	KL(before‖after) = ½(−ha − ln q + ρ²aq)
//
// for Δη = −e·x. It costs O(D²) without allocation; if q is small, it costs a factoring.
// It probes V. The error wraps ErrIndefinite if the site is not in the belief, or says why
// site is invalid; then nothing has changed. It panics if site.X has the wrong length.
func (p *Posterior) Unlearn(site Site) (Receipt, error) {
	if err := p.checkSite(&site); err != nil {
		return Receipt{}, err
	}
	x := site.X
	h, eta, _ := p.faded(&site)
	p.vx(p.u, x)
	a, m := max(triangle.Dot(x, p.u), 0), triangle.InOrder(p.mean, x)
	rest := 1 - float64(h*a)
	// Without the site, Λ is the prior's plus other sites. So a/q is at most the prior's
	// variance of xᵀβ.
	prior := p.priorVariance(x)
	receipt := Receipt{H: h, Eta: eta, Xi: site.Xi}
	before := p.logDetV
	if rest < thinnest {
		after, err := p.withdrawThin(x, h, eta)
		if err != nil {
			return Receipt{}, err
		}
		rest = a / after
	} else {
		if float64(a*(1-beyondPrior)) > float64(prior*rest) {
			return Receipt{}, fmt.Errorf("blr: withdraw a site that leaves the variance %v along x, the prior's is %v: %w",
				a/rest, prior, ErrIndefinite)
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
	p.precision.AddOuter(h, x)
	p.cov.AddOuter(-h/(1+ha), p.u)
	for j, v := range x {
		p.eta[j] += float64(eta * v)
		p.mean[j] += float64(r * p.u[j])
	}
	p.logDetV -= logistic.Log1p(ha)
}

// withdrawThin withdraws a site that gives nearly all precision along x: it changes Λ and
// η and computes V from them. It returns the variance along x, or ErrIndefinite if Λ
// without the site is below the prior's by more than rounding.
func (p *Posterior) withdrawThin(x []float64, h, eta float64) (a float64, err error) {
	n := p.dim
	before := p.precisionNow()
	rest := slices.Clone(before)
	rest.AddOuter(-h, x)
	// With Λ's rounding added, every pivot must be at least the prior's precision.
	copy(p.factor, rest)
	for i := range n {
		p.factor.Row(n, i)[0] += float64(float64(1e-15*float64(n)) * before.At(n, i, i))
	}
	if p.factor.Cholesky(p.precision0) > 0 {
		return 0, fmt.Errorf("blr: withdraw a site without which the precision is not positive definite: %w", ErrIndefinite)
	}
	p.write()
	copy(p.precision, rest)
	for j, v := range x {
		p.eta[j] -= float64(eta * v)
	}
	p.repaired++
	p.remake()
	return p.cov.Quadratic(x), nil
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
