package vlog

import (
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// A Distribution is a Density with its normaliser, moments and distribution
// function. Its methods change nothing and may be called concurrently, but not
// with Reset.
type Distribution struct {
	anchor         anchor
	mode           float64
	peak           float64 // ln f(mode)
	mass           float64 // ∫ exp(−g̃)
	mean, variance float64

	panels []panel
	nodes  []node
}

// A panel is an interval of offsets from the mode; before is the mass to its left.
type panel struct{ lo, hi, before float64 }

// A node is an offset from the mode and what it weighs: Σ weight = 1.
type node struct{ t, weight float64 }

const (
	cut          = 45   // the range ends where exp(−g̃) is 3·10⁻²⁰ or less
	agreement    = 1e-9 // largest difference of the two rules, as a fraction of the mass
	leastPanels  = 4    // on either side of the mode
	mostPanels   = 400  // on either side before any is halved
	mostNodes    = 1e6  // no panel is halved beyond
	panelMeasure = 4    // length of a panel in units of 1/max|β|
)

// New normalises d; the error is Check's. It costs O(K) for each of 120 to some
// thousand nodes. The distribution keeps d's slices, which must not change.
func New(d Density) (*Distribution, error) {
	p := &Distribution{}
	if err := p.Reset(d); err != nil {
		return nil, err
	}
	return p, nil
}

// Reset makes p the distribution of d, in p's memory. On an error p is unchanged.
func (p *Distribution) Reset(d Density) error {
	if err := d.Check(); err != nil {
		return fmt.Errorf("v-Log: %w", err)
	}
	p.mode = d.Mode()
	p.peak = d.LogAt(p.mode)
	p.anchor.reset(d, p.mode)
	p.panels, p.nodes = p.panels[:0], p.nodes[:0]

	left, leftHeight := p.anchor.reach(-1, cut)
	right, rightHeight := p.anchor.reach(+1, cut)
	// exp(−g̃) lies above the chord of its logarithm: the mass is at least the
	// integral of an exponential to either end.
	least := -left/leftHeight + right/rightHeight
	steepest := 0.0
	for k, b := range d.Beta {
		if d.Mu[k] > 0 {
			steepest = max(steepest, math.Abs(b))
		}
	}
	p.mass = p.tail(left)
	p.integrate(left, 0, steepest, least)
	p.integrate(0, right, steepest, least)
	p.mass += p.tail(right)

	var mean, variance sum
	for i := range p.nodes {
		nd := &p.nodes[i]
		nd.weight /= p.mass
		mean.add(float64(nd.weight * nd.t))
	}
	centre := mean.value()
	for _, nd := range p.nodes {
		variance.add(float64(nd.weight * float64((nd.t-centre)*(nd.t-centre))))
	}
	p.mean, p.variance = p.mode+centre, variance.value()
	return nil
}

// integrate appends the panels and nodes between two offsets.
func (p *Distribution) integrate(lo, hi, steepest, least float64) {
	count := math.Ceil((hi - lo) * steepest / panelMeasure)
	n := int(min(max(count, leastPanels), mostPanels))
	for i := range n {
		a := lo + float64((hi-lo)*(float64(i)/float64(n)))
		b := hi
		if i+1 < n {
			b = lo + float64((hi-lo)*(float64(i+1)/float64(n)))
		}
		p.halve(a, b, agreement*least)
	}
}

// halve integrates one panel, in halves if the two rules disagree.
func (p *Distribution) halve(lo, hi, tolerance float64) {
	first := len(p.nodes)
	kronrod, gauss := p.rule(lo, hi)
	middle := lo + (hi-lo)/2
	if math.Abs(kronrod-gauss) > tolerance && lo < middle && middle < hi && first < mostNodes {
		p.nodes = p.nodes[:first]
		p.halve(lo, middle, tolerance)
		p.halve(middle, hi, tolerance)
		return
	}
	p.panels = append(p.panels, panel{lo: lo, hi: hi, before: p.mass})
	p.mass += kronrod
}

// rule appends the nodes of one panel, with their parts of the integral of exp(−g̃) as
// weights, and returns that integral by both rules.
func (p *Distribution) rule(lo, hi float64) (kronrod, gauss float64) {
	half, centre := (hi-lo)/2, lo+(hi-lo)/2
	for i, x := range kronrodNode {
		t := centre + float64(half*x)
		f := float64(half * logistic.Exp(-p.anchor.rise(t)))
		w := float64(kronrodWeight[i] * f)
		kronrod += w
		if i%2 == 1 {
			gauss += float64(gaussWeight[i/2] * f)
		}
		p.nodes = append(p.nodes, node{t: t, weight: w})
	}
	return kronrod, gauss
}

// tail returns the mass beyond an offset from the mode. g̃ is convex, so its tangent
// bounds it from below, and exp(−g̃)/|g′| the mass from above. The bound is exact for
// exponential tails and off by σ²/t² for Gaussian ones, at most a ninetieth beyond the
// cut.
func (p *Distribution) tail(t float64) float64 {
	return logistic.Exp(-p.anchor.rise(t)) / math.Abs(p.anchor.slope(t))
}

// Mode returns the one maximum of the density.
func (p *Distribution) Mode() float64 { return p.mode }

// Mean returns E[z].
func (p *Distribution) Mean() float64 { return p.mean }

// Variance returns E[(z−mean)²].
func (p *Distribution) Variance() float64 { return p.variance }

// LogNorm returns ln ∫f, the log of the normaliser B of section S.5.1, in nats.
func (p *Distribution) LogNorm() float64 { return p.peak + logistic.Log(p.mass) }

// LogPDF returns the log density at z, in nats.
func (p *Distribution) LogPDF(z float64) float64 {
	return -p.anchor.rise(z-p.mode) - logistic.Log(p.mass)
}

// CDF returns P(Z ≤ z), in [0, 1]: 0 at −Inf, 1 at +Inf, NaN at NaN. The lower
// tail keeps its relative precision (see tail) down to the smallest number. 15
// passes over the K terms.
func (p *Distribution) CDF(z float64) float64 {
	switch {
	case z != z:
		return z
	case math.IsInf(z, 0):
		return (1 + math.Copysign(1, z)) / 2
	}
	t := z - p.mode
	last := len(p.panels) - 1
	if t < p.panels[0].lo {
		return p.tail(t) / p.mass
	}
	if t > p.panels[last].hi {
		return 1 - p.tail(t)/p.mass
	}
	lo, hi := 0, last // the panel that holds t
	for lo < hi {
		m := (lo + hi + 1) / 2
		if p.panels[m].lo <= t {
			lo = m
		} else {
			hi = m - 1
		}
	}
	at := p.panels[lo]
	half, centre := (t-at.lo)/2, at.lo+(t-at.lo)/2
	within := 0.0
	for i, x := range kronrodNode {
		f := logistic.Exp(-p.anchor.rise(centre + float64(half*x)))
		within += float64(kronrodWeight[i] * float64(half*f))
	}
	return min((at.before+within)/p.mass, 1)
}

// StatisticsTo writes the expectations E[ln(1+exp(βₖ(z−γₖ)))] of the sufficient
// statistics (34) to dst, of length K, in the order of the terms: the negative
// derivatives of LogNorm by μₖ. O(K) for each node; it allocates nothing.
func (p *Distribution) StatisticsTo(dst []float64) {
	d := p.anchor.d
	if len(dst) != len(d.Beta) {
		panic(fmt.Sprintf("vlog: %d expectations of %d terms", len(dst), len(d.Beta)))
	}
	for k := range dst {
		var s sum
		for _, nd := range p.nodes {
			s.add(float64(nd.weight * p.anchor.statistic(k, nd.t)))
		}
		dst[k] = s.value()
	}
}

// Kronrod's extension of the Gauss–Legendre rule of 7 points to 15 on [−1, 1]: the
// zeros of P₇·E₈, E₈ the Stieltjes polynomial with ∫P₇E₈xᵏ = 0 for k < 8, and the
// weights that make it exact for xᵏ, k ≤ 14. The Gauss nodes have odd indices. Computed
// with 60 digits (mpmath).
var (
	kronrodNode = [15]float64{
		-0.991455371120812639206854697526, -0.949107912342758524526189684048,
		-0.864864423359769072789712788641, -0.741531185599394439863864773281,
		-0.586087235467691130294144838259, -0.405845151377397166906606412077,
		-0.207784955007898467600689403773, 0, 0.207784955007898467600689403773,
		0.405845151377397166906606412077, 0.586087235467691130294144838259,
		0.741531185599394439863864773281, 0.864864423359769072789712788641,
		0.949107912342758524526189684048, 0.991455371120812639206854697526,
	}
	kronrodWeight = [15]float64{
		0.022935322010529224963732008059, 0.0630920926299785532907006631892,
		0.104790010322250183839876322542, 0.14065325971552591874518959051,
		0.169004726639267902826583426599, 0.190350578064785409913256402421,
		0.204432940075298892414161999235, 0.209482141084727828012999174892,
		0.204432940075298892414161999235, 0.190350578064785409913256402421,
		0.169004726639267902826583426599, 0.14065325971552591874518959051,
		0.104790010322250183839876322542, 0.0630920926299785532907006631892,
		0.022935322010529224963732008059,
	}
	gaussWeight = [7]float64{
		0.129484966168869693270611432679, 0.279705391489276667901467771424,
		0.381830050505118944950369775489, 0.417959183673469387755102040816,
		0.381830050505118944950369775489, 0.279705391489276667901467771424,
		0.129484966168869693270611432679,
	}
)
