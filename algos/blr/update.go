package blr

import (
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// MostPower is the highest power of a likelihood: 2 counts an event twice.
const MostPower = 2

// Update learns one event: inputs x and label y = ±1. It raises the likelihood to the
// power phi in (0, MostPower]. It costs O(D²) and allocates nothing. It does not change x. The
// posterior does not refer to x afterwards, but the site does. Update panics before any
// change if len(x) ≠ D, an entry is not finite, y is not ±1 or phi is not in (0, MostPower]. If
// an entry exceeds 2¹⁰⁰, Update divides x by a power of two, and the site holds that copy.
func (p *Posterior) Update(x []float64, y, phi float64) Site {
	p.checkLength(len(x))
	x, _ = Shortened(x)
	checkLabel(y, phi)
	p.vx(p.u, x)
	m, a := p.momentsAlong(x)
	return p.absorb(x, m, a, y, phi)
}

func checkLabel(y, phi float64) {
	if y != 1 && y != -1 {
		panic(fmt.Sprintf("blr: label %v: want +1 or -1", y))
	}
	if !(phi > 0 && phi <= MostPower) {
		panic(fmt.Sprintf("blr: likelihood raised to %v: want a power in (0, %v]", phi, MostPower))
	}
}

// momentsAlong returns m = wᵀx and a = xᵀVx; p.u holds Vx. If rounding made a negative,
// it computes V and p.u again.
func (p *Posterior) momentsAlong(x []float64) (m, a float64) {
	a = triangle.Dot(x, p.u)
	if !(a >= 0) {
		p.repaired++
		p.remake()
		p.vx(p.u, x)
		a = max(triangle.Dot(x, p.u), 0)
	}
	return triangle.InOrder(p.mean, x), a
}

// absorb learns the event; p.u holds Vx.
func (p *Posterior) absorb(x []float64, m, a, y, phi float64) Site {
	st := p.solve(m, a, y, phi)
	site := Site{X: x, Y: y, Phi: phi, Step: st, Fades: p.Fades()}
	ha := float64(st.H * a)
	p.add(x, p.u, st.H, -st.H/(1+ha)) // Sherman–Morrison
	for j, v := range x {
		p.eta[j] += float64(st.Eta * v)
		p.mean[j] += float64(st.R * p.u[j])
	}
	p.logDetV -= logistic.Log1p(ha)
	p.logEvidence += st.Evidence
	p.updates++

	forget := p.halfLife != 0 && p.updates%forgetEvery == 0
	if forget {
		p.write()
		p.forget()
	}
	probe := p.updates%probeEvery == 0
	if probe || p.block.n == p.block.size {
		p.write()
	}
	switch {
	case forget, p.updates%uint64(p.refactor) == 0:
		p.scheduled++
		p.remake()
	case ha > cancellation, probe && !(p.residual(x) <= probeTolerance):
		p.repaired++
		p.remake()
	}
	return site
}

func (p *Posterior) solve(m, a, y, phi float64) Step {
	if p.xiStop == 0 {
		return p.site.Solve(m, a, y, phi)
	}
	st := iterateJJ(y*m, a, phi, triangle.InOrder(p.eta, p.mean), p.logDetV, p.xiStop)
	st.R *= y
	st.Eta *= y
	return st
}

// Fades returns how often forget has run.
func (p *Posterior) Fades() uint64 {
	if p.halfLife == 0 {
		return 0
	}
	return p.updates / forgetEvery
}

// Shortened returns x within ±MaxInput, and the power of two that brought it there: usually
// x itself and 1, else a copy. It panics if an entry is not finite.
func Shortened(x []float64) (short []float64, scale float64) {
	largest := 0.0
	for j, v := range x {
		v = math.Abs(v)
		if !(v <= math.MaxFloat64) {
			panic(fmt.Sprintf("blr: input %d is %v: events with values that are not finite cannot be learnt or scored", j, x[j]))
		}
		if v > largest {
			largest = v
		}
	}
	if largest <= MaxInput {
		return x, 1
	}
	_, exp := math.Frexp(largest) // exact; largest < 2^exp
	scale = math.Ldexp(1, 100-exp)
	short = make([]float64, len(x))
	for j, v := range x {
		short[j] = v * scale
	}
	return short, scale
}

// residual returns |xᵀV(Λx) − xᵀx|/xᵀx, and 0 for x = 0. It ignores updates that wait in
// p.block. It overwrites p.u.
func (p *Posterior) residual(x []float64) float64 {
	xx := triangle.Dot(x, x)
	if xx == 0 {
		return 0
	}
	p.precision.MulVec(p.u, x)
	λx := p.factor[:0:p.dim]
	λx = append(λx, p.u...)
	p.cov.MulVec(p.u, x)
	return math.Abs(triangle.Dot(p.u, λx)-xx) / xx
}

// forget moves the posterior towards the prior, as a power prior does: Λ ← kΛ + (1−k)Λ₀,
// and η in the same way. It never moves beyond the prior. (If V were divided by ρ, the
// variance of an input that is always 0 would grow without bound.) V is wrong until remake.
func (p *Posterior) forget() {
	for i := range p.precision {
		p.precision[i] = float64(p.precision[i] * p.keep)
	}
	for j, τ := range p.precision0 {
		τ = float64((1 - p.keep) * τ)
		p.precision.Row(p.dim, j)[0] += τ
		p.eta[j] = float64(p.keep*p.eta[j]) + float64(τ*p.mean0[j])
	}
}

// remake computes V, w and ln|V| from Λ and η. No pivot can be below the prior's
// precision.
func (p *Posterior) remake() {
	p.write()
	logDet, raised := triangle.Invert(p.precision, p.eta, p.precision0, p.factor, p.cov, p.mean, p.u)
	p.logDetV = logDet
	p.raised += uint64(raised)
	p.block.changes++
}

// Moments returns the mean m = wᵀx and the variance a = xᵀVx of the log-odds
// z = βᵀx, in nats and nats². It panics if len(x) ≠ D or an entry is not finite. If an
// entry exceeds 2¹⁰⁰, m and a may be infinite. It costs D²/2 products.
func (p *Posterior) Moments(x []float64) (m, a float64) {
	p.checkLength(len(x))
	x, scale := Shortened(x)
	m, a = p.moments(x)
	return m / scale, a / scale / scale
}

func (p *Posterior) moments(x []float64) (m, a float64) {
	return triangle.InOrder(p.mean, x), max(p.cov.Quadratic(x)+p.block.variance(x), 0)
}

// Prob returns the probability that x has label +1, σ(Moderate(m, a)), in [0, 1]. Like
// Moments it panics on a wrong length or an entry that is not finite. It changes nothing
// and may run concurrently.
func (p *Posterior) Prob(x []float64) float64 {
	p.checkLength(len(x))
	x, _ = Shortened(x) // the moderated log-odds of an x this long no longer depend on its length
	return logistic.Sigmoid(Moderate(p.moments(x)))
}

// Moderate returns the log-odds m/√(1+πa/8) whose σ is E[σ(z)] for z ~ N(m, a), a ≥ 0, by
// the probit approximation (MacKay 1992). It is off by at most .017 for a ≤ 50 and never
// on the wrong side of ½.
func Moderate(m, a float64) float64 {
	return m / math.Sqrt(1+float64(math.Pi/8*a))
}
