package viboost

import (
	"math"
	"slices"

	"hamlet/algos/internal/vi"
	"hamlet/algos/lab/vlog"
)

// Algorithm 1 written down plainly, with nothing shared between candidates, passes
// or rounds: the oracle of the Booster.
type plain struct {
	x      [][]float64
	y      []float64
	weight []float64
	cfg    Config // filled

	H, phi     []float64
	omega, eta [2]float64
	rounds     []Round
}

func newPlain(x [][]float64, y []float64, cfg Config) *plain {
	if err := cfg.fill(); err != nil {
		panic(err)
	}
	p := &plain{x: x, y: y, cfg: cfg, weight: cfg.Weights, H: make([]float64, len(y)), eta: [2]float64{1, 1}}
	for range y {
		p.phi = append(p.phi, 1)
		if cfg.Weights == nil {
			p.weight = append(p.weight, 1)
		}
	}
	return p
}

func (p *plain) density(h []float64) vlog.Density {
	d := vlog.Density{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{p.cfg.Mu0, p.cfg.Mu0}}
	for i := range h {
		d.Beta = append(d.Beta, -p.y[i]*h[i])
		d.Gamma = append(d.Gamma, -p.H[i]*h[i])
		d.Mu = append(d.Mu, p.weight[i]*p.phi[i])
	}
	return d
}

// normalised leaves out multiplicities that v-Log does not take.
func normalised(d vlog.Density) *vlog.Distribution {
	for k, m := range d.Mu {
		if m < 1e-90 {
			d.Mu[k] = 0
		}
	}
	q, err := vlog.New(d)
	if err != nil {
		panic(err)
	}
	return q
}

func (p *plain) mode(h []float64, exact bool) float64 {
	if exact {
		return p.density(h).Mode()
	}
	m, ok := p.density(h).ApproxMode(p.cfg.Tau)
	if !ok {
		panic("slopes of different magnitude")
	}
	return m
}

func (p *plain) round() bool {
	best, most := Round{}, -1.0
	var bestH []float64
	for j := range p.x[0] {
		var values []float64
		for _, row := range p.x {
			values = append(values, row[j])
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for k := 1; k < len(values); k++ {
			threshold := (values[k-1] + values[k]) / 2
			h := make([]float64, len(p.x))
			for i, row := range p.x {
				h[i] = -1
				if row[j] > threshold {
					h[i] = 1
				}
			}
			if m := math.Abs(p.mode(h, p.cfg.Weighting == Exact)); m > most+1e-11 {
				most, bestH = m, h
				best.Stump.Feature, best.Stump.Threshold, best.Stump.Polarity = j, threshold, 1
			}
		}
	}
	if most < 0 {
		return false
	}
	for range p.cfg.Inner {
		best.Alpha = p.mode(bestH, p.cfg.Weighting != Approximate)
		before := p.density(bestH)
		p.omega = [2]float64{p.cfg.Mu0Prime, p.cfg.Mu0Prime}
		for i, f := range p.phi {
			p.omega[int(1+p.y[i])/2] += p.weight[i] * (1 - f)
		}
		expected := make([]float64, len(p.y)+2)
		if p.cfg.Types == Expectation {
			q := normalised(before)
			q.StatisticsTo(expected)
		}
		for i, y := range p.y {
			e := expected[2+i]
			if p.cfg.Types == Modal {
				e = math.Log1p(math.Exp(-y * (p.H[i] + best.Alpha*bestH[i])))
			}
			κ := math.Exp(vi.Digamma(p.eta[0]) - vi.Digamma(p.eta[1]) + vi.Digamma(p.omega[0]+p.omega[1]) - vi.Digamma(p.omega[int(1+y)/2]) - e)
			p.phi[i] = κ / (1 + κ)
		}
		p.eta = p.cfg.Zeta
		for i, f := range p.phi {
			p.eta[0] += p.weight[i] * f
			p.eta[1] += p.weight[i] * (1 - f)
		}
	}
	q := normalised(p.density(bestH))
	best.Omega, best.Eta, best.LogNorm = p.omega, p.eta, q.LogNorm()
	best.ELBO = p.elbo(best.LogNorm)
	wrong, total := 0.0, 0.0
	for i, h := range bestH {
		p.H[i] += best.Alpha * h
		total += p.weight[i]
		if (p.H[i] > 0) != (p.y[i] > 0) {
			wrong += p.weight[i]
		}
	}
	best.TrainError = wrong / total
	p.rounds = append(p.rounds, best)
	return true
}

// elbo is (91) as printed, with the constant 0 and each example counting weight
// times.
func (p *plain) elbo(logNorm float64) float64 {
	lg := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	ψ := vi.Digamma
	ω, η, ζ, μ := p.omega, p.eta, p.cfg.Zeta, p.cfg.Mu0Prime
	ω0, η0, ζ0 := ω[0]+ω[1], η[0]+η[1], ζ[0]+ζ[1]
	e := logNorm + lg(ω[0]) + lg(ω[1]) - lg(ω0) + (ω0-2*μ)*ψ(ω0) - (ω[0]-μ)*ψ(ω[0]) - (ω[1]-μ)*ψ(ω[1])
	e += lg(η[0]) + lg(η[1]) - lg(η0) + (η0-ζ0)*ψ(η0) - (η[0]-ζ[0])*ψ(η[0]) - (η[1]-ζ[1])*ψ(η[1])
	for i, f := range p.phi {
		w := p.weight[i]
		e -= w * (f*math.Log(f) + (1-f)*math.Log(1-f))
		e -= w * ψ(η0)
		e += w * (ψ(η[0])*f + ψ(η[1])*(1-f))
		e -= w * ψ(ω0) * (1 - f)
		e += w * ψ(ω[int(1+p.y[i])/2]) * (1 - f)
	}
	return e
}
