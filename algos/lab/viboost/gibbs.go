package viboost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/vi"
	"hamlet/algos/lab/vlog"
)

// A GibbsConfig describes a run of the sampler. Zero fields mean the defaults.
type GibbsConfig struct {
	Prior
	Sweeps int // kept, 2000
	BurnIn int // run before and dropped; 0 is none
}

// Means are posterior means of the model with given base classifiers.
type Means struct {
	C     []float64 // weights c of the M classifiers
	C2    []float64 // their squares
	Xi    float64   // noise grade ξ
	Theta float64   // share of true labels θ
	W     []float64 // the N types w: the probability that the label is true
}

const (
	defaultSweeps = 2000
	maxSweeps     = 1 << 40
)

// Gibbs samples the posterior of the weights of M base classifiers, the noise
// grade and the types of N labels by algorithm 2, and returns its means. f[m][n] is
// what classifier m says of example n, ±1; y are the labels. From c = 0, ξ = 0,
// θ = ½ and w = 1, a sweep draws, each given the others, every cᵢ and ξ from their
// v-Log, the wₙ from their Bernoulli and θ from its Beta, as σ of the mirrored
// two-term v-Log (S.1.1).
//
// The means of ξ, θ and w are those of their conditional means, which have less
// variance than the draws have (Rao–Blackwell); those of c and c² are of the draws.
// A sweep costs O(MN), ten to twenty passes over the examples for each classifier;
// it allocates nothing. The same src gives the same answer. If ctx is cancelled
// the error is its cause.
func Gibbs(ctx context.Context, cfg GibbsConfig, f [][]float64, y []float64, src rand.Source) (*Means, error) {
	if cfg.Sweeps == 0 {
		cfg.Sweeps = defaultSweeps
	}
	errs := []error{cfg.Prior.fill(), checkLabels(y), checkAnswers(f, len(y))}
	if cfg.Sweeps < 0 || cfg.Sweeps > maxSweeps {
		errs = append(errs, fmt.Errorf("viboost: %d sweeps: want a positive count, or 0 for %d", cfg.Sweeps, defaultSweeps))
	}
	if cfg.BurnIn < 0 || cfg.BurnIn > maxSweeps {
		errs = append(errs, fmt.Errorf("viboost: a burn-in of %d sweeps: want a count that is not negative", cfg.BurnIn))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	g := newGibbs(cfg.Prior, f, y, src)
	for range cfg.BurnIn {
		if err := g.sweep(ctx); err != nil {
			return nil, err
		}
	}
	g.forget()
	for range cfg.Sweeps {
		if err := g.sweep(ctx); err != nil {
			return nil, err
		}
	}
	return g.means(float64(cfg.Sweeps)), nil
}

func checkAnswers(f [][]float64, n int) error {
	if len(f) == 0 {
		return errors.New("viboost: no base classifiers: want at least one")
	}
	for m, row := range f {
		if len(row) != n {
			panic(fmt.Sprintf("viboost: classifier %d has %d answers for %d labels", m, len(row), n))
		}
		for i, v := range row {
			if v != 1 && v != -1 {
				return fmt.Errorf("viboost: f[%d][%d] is %v: want +1 or -1", m, i, v)
			}
		}
	}
	return nil
}

// gibbs is the state of the chain, with sums over its sweeps.
type gibbs struct {
	prior Prior
	f     [][]float64
	y     []float64
	src   rand.Source

	c   []float64
	xi  float64
	til float64 // ln θ/(1−θ)
	w   []bool  // the label is true

	total   []float64 // Σₘ cₘfₘ(xₙ)
	density vlog.Density
	draw    vlog.Sampler

	sumC, sumC2, sumW []float64
	sumXi, sumTheta   float64
}

func newGibbs(prior Prior, f [][]float64, y []float64, src rand.Source) *gibbs {
	m, n := len(f), len(y)
	g := &gibbs{
		prior: prior, f: f, y: y, src: src,
		c: make([]float64, m), w: make([]bool, n), total: make([]float64, n),
		density: vlog.Density{Beta: make([]float64, n+2), Gamma: make([]float64, n+2), Mu: make([]float64, n+2)},
		sumC:    make([]float64, m), sumC2: make([]float64, m), sumW: make([]float64, n),
	}
	for i := range g.w {
		g.w[i] = true
	}
	return g
}

// sweep draws everything once and adds it to the sums.
func (g *gibbs) sweep(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("viboost: stopped between sweeps: %w", context.Cause(ctx))
	}
	for m := range g.c {
		g.drawWeight(m)
	}
	ω := [2]float64{g.prior.Mu0Prime, g.prior.Mu0Prime}
	for i, isTrue := range g.w {
		if !isTrue {
			ω[vi.Index(g.y[i])]++
		}
	}
	g.xi = g.drawLogit(ω)
	g.sumXi += vi.Digamma(ω[1]) - vi.Digamma(ω[0])
	g.drawTypes()
	return nil
}

// drawWeight draws cₘ from (59). Labels that are noise now have multiplicity 0
// there and are left out.
func (g *gibbs) drawWeight(m int) {
	d := vlog.Density{
		Beta:  append(g.density.Beta[:0], 1, -1),
		Gamma: append(g.density.Gamma[:0], 0, 0),
		Mu:    append(g.density.Mu[:0], g.prior.Mu0, g.prior.Mu0),
	}
	f, old := g.f[m], g.c[m]
	for i, isTrue := range g.w {
		g.total[i] -= float64(old * f[i]) // the others' sum, f̃
		if isTrue {
			d.Beta = append(d.Beta, -g.y[i]*f[i])
			d.Gamma = append(d.Gamma, -g.total[i]*f[i])
			d.Mu = append(d.Mu, 1)
		}
	}
	c := g.sample(d)
	for i, v := range f {
		g.total[i] += float64(c * v)
	}
	g.c[m] = c
	g.sumC[m] += c
	g.sumC2[m] += float64(c * c)
}

// drawLogit draws from v-Log([1,−1], 0, ω) (61).
func (g *gibbs) drawLogit(ω [2]float64) float64 {
	return g.sample(vlog.Density{
		Beta:  append(g.density.Beta[:0], 1, -1),
		Gamma: append(g.density.Gamma[:0], 0, 0),
		Mu:    append(g.density.Mu[:0], ω[0], ω[1]),
	})
}

func (g *gibbs) sample(d vlog.Density) float64 {
	if err := g.draw.Reset(d); err != nil {
		panic("viboost: " + err.Error()) // the prior's terms make it proper
	}
	return g.draw.Draw(g.src)
}

// drawTypes draws w (63), and θ given them (65): if z ~ v-Log([1,−1], 0, η), then
// σ(−z) ~ Beta(η).
func (g *gibbs) drawTypes() {
	η := g.prior.Zeta
	for i, y := range g.y {
		p := logistic.Sigmoid(g.til + (logistic.LogSigmoid(y*g.total[i]) - logistic.LogSigmoid(y*g.xi)))
		g.w[i] = float64(g.src.Uint64()>>11)*0x1p-53 < p
		g.sumW[i] += p
		if g.w[i] {
			η[0]++
		} else {
			η[1]++
		}
	}
	g.til = -g.drawLogit(η)
	g.sumTheta += η[0] / (η[0] + η[1])
}

// forget resets the sums.
func (g *gibbs) forget() {
	clear(g.sumC)
	clear(g.sumC2)
	clear(g.sumW)
	g.sumXi, g.sumTheta = 0, 0
}

// means divides the sums by the number of sweeps.
func (g *gibbs) means(sweeps float64) *Means {
	for _, v := range [][]float64{g.sumC, g.sumC2, g.sumW} {
		for i := range v {
			v[i] /= sweeps
		}
	}
	return &Means{C: g.sumC, C2: g.sumC2, Xi: g.sumXi / sweeps, Theta: g.sumTheta / sweeps, W: g.sumW}
}
