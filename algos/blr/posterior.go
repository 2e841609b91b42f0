package blr

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// Config describes a prior and how its posterior learns. Zero fields mean the defaults
// given with each.
type Config struct {
	Dim           int           // number of inputs D, the constant 1 included; 1 … MaxDim
	Mean          []float64     // prior mean of each weight; nil is 0
	Precision     []float64     // prior precision (1/variance) of each weight, > 0; nil is 1
	Approximation Approximation // RVGA by default
	Refactor      int           // V is computed by Cholesky at counts of updates divisible by it; 0 is 1000
	HalfLife      float64       // events in which a site loses half its weight, at least 1; 0: sites never fade

	// XiTolerance is the paper's stopping rule, for JaakkolaJordan: ξ is iterated from 0
	// until the relative change of (60) is smaller, at most 100 times. 1e−5 reproduces
	// the paper. 0, the default, solves for ξ.
	XiTolerance float64

	// Block is K, how many events are written to V and Λ together, 1 to MaxBlock; 0 is
	// 1. Results are equal to rounding.
	Block int
}

const (
	// MaxDim bounds D: V, Λ and the scratch of 32,768 inputs take 13 GB.
	MaxDim = 1 << 15
	// MaxInput bounds inputs, so that a = xᵀVx stays finite: an x with a larger entry is
	// scaled down.
	MaxInput = 0x1p100

	defaultRefactor = 1000
	// With a half-life, sites fade at every 50th update, because it costs a factoring.
	// Useful half-lives are 150 events and more.
	forgetEvery = 50
	// V is probed at every 64th update: two products in 64 events cost 2 %.
	probeEvery = 64
	// V is computed again if its residual is larger. In 100,000 updates with scaled
	// inputs it stays below 1e−12.
	probeTolerance = 1e-8
	// After an event with a larger h·a, V along Vx has lost six of its sixteen digits.
	cancellation = 1e6
)

// A Posterior is the belief β ~ N(w, V) about the weights. Moments, Prob and
// Contributions may be called concurrently with themselves and each other, but
// not with Update or UnmarshalBinary.
type Posterior struct {
	dim      int
	site     Approximation
	refactor int
	halfLife float64
	keep     float64 // ρ⁵⁰ = 2^(−50/halfLife), what forgetting leaves of the sites
	xiStop   float64 // Config.XiTolerance

	mean0, precision0 []float64 // the prior

	// The natural parameters Λ = V⁻¹ and η = Λw.
	precision triangle.Matrix
	eta       []float64

	// Invariant: V = Λ⁻¹, w = Vη and ln|V| to rounding. Λ and V lack the events in block.
	cov     triangle.Matrix
	mean    []float64
	logDetV float64
	block   block

	logEvidence float64 // Σ of the events' parts, nats
	updates     uint64
	corrections uint64 // sites withdrawn or refreshed
	scheduled   uint64 // factorings at counts divisible by refactor
	repaired    uint64 // factorings because V was found inaccurate
	raised      uint64 // pivots that a factoring had to raise to the prior's

	u      []float64       // scratch of Update: Vx
	factor triangle.Matrix // scratch of factorings
}

// New returns the prior of cfg. The error names every wrong field.
func New(cfg Config) (*Posterior, error) {
	var errs []error
	if cfg.Dim < 1 || cfg.Dim > MaxDim {
		return nil, fmt.Errorf("blr: dim %d: want 1 to %d inputs", cfg.Dim, MaxDim)
	}
	if cfg.Mean != nil && len(cfg.Mean) != cfg.Dim {
		errs = append(errs, fmt.Errorf("blr: prior mean has %d entries for %d inputs", len(cfg.Mean), cfg.Dim))
	}
	if cfg.Precision != nil && len(cfg.Precision) != cfg.Dim {
		errs = append(errs, fmt.Errorf("blr: prior precision has %d entries for %d inputs", len(cfg.Precision), cfg.Dim))
	}
	for j, m := range cfg.Mean {
		if !(math.Abs(m) <= MaxInput) {
			errs = append(errs, fmt.Errorf("blr: prior mean of input %d is %v: want a finite number up to %g",
				j, m, float64(MaxInput)))
		}
	}
	for j, τ := range cfg.Precision {
		if !validPrecision(τ) {
			errs = append(errs, fmt.Errorf("blr: prior precision of input %d is %v: want a number from %g to %g",
				j, τ, 1/float64(MaxInput), float64(MaxInput)))
		}
	}
	if cfg.Approximation > ExactRVGA {
		errs = append(errs, fmt.Errorf("blr: unknown site %d: want RVGA, JaakkolaJordan or ExactRVGA", cfg.Approximation))
	}
	if cfg.Refactor < 0 || int64(cfg.Refactor) > math.MaxUint32 {
		errs = append(errs, fmt.Errorf("blr: refactor %d: want a count of updates, or 0 for %d",
			cfg.Refactor, defaultRefactor))
	}
	if cfg.HalfLife != 0 && !validHalfLife(cfg.HalfLife) {
		errs = append(errs, fmt.Errorf("blr: half-life %v: want a count of events from 1 on, or 0 for no forgetting",
			cfg.HalfLife))
	}
	if cfg.XiTolerance != 0 && !validTolerance(cfg.XiTolerance) {
		errs = append(errs, fmt.Errorf("blr: xi tolerance %v: want a number above 0, or 0 for the fixed point",
			cfg.XiTolerance))
	}
	if cfg.XiTolerance != 0 && cfg.Approximation != JaakkolaJordan {
		errs = append(errs, fmt.Errorf("blr: xi tolerance %v: the site %v has no ξ", cfg.XiTolerance, cfg.Approximation))
	}
	if cfg.Block < 0 || cfg.Block > MaxBlock {
		errs = append(errs, fmt.Errorf("blr: block %d: want 1 to %d events, or 0 for 1", cfg.Block, MaxBlock))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}

	p := &Posterior{}
	p.allocate(cfg.Dim, max(cfg.Block, 1))
	p.site, p.refactor = cfg.Approximation, cfg.Refactor
	if p.refactor == 0 {
		p.refactor = defaultRefactor
	}
	p.setHalfLife(cfg.HalfLife)
	p.xiStop = cfg.XiTolerance
	copy(p.mean0, cfg.Mean)
	copy(p.mean, cfg.Mean)
	for j := range p.precision0 {
		p.precision0[j] = 1
	}
	copy(p.precision0, cfg.Precision)
	for j, τ := range p.precision0 {
		p.precision.Row(p.dim, j)[0] = τ
		p.cov.Row(p.dim, j)[0] = 1 / τ
		p.eta[j] = float64(τ * p.mean0[j])
		p.logDetV -= logistic.Log(τ)
	}
	return p, nil
}

func validPrecision(τ float64) bool { return τ >= 1/MaxInput && τ <= MaxInput }

func validHalfLife(events float64) bool { return events >= 1 && events <= math.MaxFloat64 }

func (p *Posterior) setHalfLife(events float64) {
	p.halfLife, p.keep = events, 1
	if events != 0 {
		p.keep = logistic.Exp(-forgetEvery * math.Ln2 / events)
	}
}

func (p *Posterior) allocate(dim, block int) {
	p.dim, p.block = dim, newBlock(block, dim)
	for _, v := range []*[]float64{&p.mean0, &p.precision0, &p.eta, &p.mean, &p.u} {
		*v = make([]float64, dim)
	}
	for _, a := range []*triangle.Matrix{&p.precision, &p.cov, &p.factor} {
		*a = triangle.New(dim)
	}
}

// Dim returns the number of inputs D.
func (p *Posterior) Dim() int { return p.dim }

// Approximation returns the approximation of the likelihood in use.
func (p *Posterior) Approximation() Approximation { return p.site }

// Alike reports whether p and q started from the same configuration.
func (p *Posterior) Alike(q *Posterior) bool {
	return p.dim == q.dim && p.site == q.site && p.refactor == q.refactor && p.halfLife == q.halfLife &&
		p.xiStop == q.xiStop && p.block.size == q.block.size &&
		slices.Equal(p.mean0, q.mean0) && slices.Equal(p.precision0, q.precision0)
}

// Updates returns the number of events absorbed.
func (p *Posterior) Updates() uint64 { return p.updates }

// LogDetV returns ln|V| in nats.
func (p *Posterior) LogDetV() float64 { return p.logDetV }

// LogEvidence returns the running log evidence ln p(y₁ … yₙ | X) in nats: the sum of
// Step.Evidence. With JaakkolaJordan it is (60), a lower bound. With the other sites it
// is no bound: ExactRVGA sums bounds under approximate beliefs, RVGA sums the log scores
// of its predictions. Forgetting and withdrawals do not change it.
func (p *Posterior) LogEvidence() float64 { return p.logEvidence }

// Factorings counts how often V was computed by Cholesky: on schedule, and because it
// was inaccurate. Many repairs mean inputs of very different scale. Raised counts the
// pivots that rounding had taken below the prior's precision.
type Factorings struct {
	Scheduled, Repaired, Raised uint64
}

// Factorings returns the counts since the prior.
func (p *Posterior) Factorings() Factorings {
	return Factorings{Scheduled: p.scheduled, Repaired: p.repaired, Raised: p.raised}
}

// MeanTo writes w to dst, of length D.
func (p *Posterior) MeanTo(dst []float64) {
	p.checkLength(len(dst))
	copy(dst, p.mean)
}

// CovarianceMul sets u = Vx, for len(u) = len(x) = D.
func (p *Posterior) CovarianceMul(u, x []float64) {
	p.checkLength(len(u))
	p.checkLength(len(x))
	p.vx(u, x)
}

// CovarianceTo writes V to dst, which is D×D or empty.
func (p *Posterior) CovarianceTo(dst *mat.SymDense) { p.covarianceNow().CopyTo(dst, p.dim) }

// NaturalTo writes the natural parameters: η = V⁻¹w to eta, of length D, and
// Λ = V⁻¹ to lambda, which is D×D or empty.
func (p *Posterior) NaturalTo(eta []float64, lambda *mat.SymDense) {
	p.checkLength(len(eta))
	copy(eta, p.eta)
	p.precisionNow().CopyTo(lambda, p.dim)
}

func (p *Posterior) checkLength(n int) {
	if n != p.dim {
		panic(fmt.Sprintf("blr: a vector of length %d for %d inputs", n, p.dim))
	}
}

// Clone returns a copy that shares nothing with p.
func (p *Posterior) Clone() *Posterior {
	q := *p
	for _, v := range []*[]float64{&q.mean0, &q.precision0, &q.eta, &q.mean, &q.u} {
		*v = slices.Clone(*v)
	}
	for _, a := range []*triangle.Matrix{&q.precision, &q.cov, &q.factor} {
		*a = slices.Clone(*a)
	}
	b := &q.block
	for _, v := range []*[]float64{&b.g, &b.h, &b.u, &b.x} {
		*v = slices.Clone(*v)
	}
	b.scratch = make([]float64, len(b.scratch))
	return &q
}
