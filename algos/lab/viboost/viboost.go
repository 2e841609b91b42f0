package viboost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/viboost"
)

// A Weighting says which mode of q(c) ranks the stumps and which is the best's weight.
type Weighting uint8

const (
	Approximate Weighting = iota // the approximate mode (17) with Tau for both
	Exact                        // the exact mode for both: some searches a round, and a Newton's method a pass
	Mixed                        // the approximate ranking and the exact weight
)

// A TypeUpdate says how E_c is taken in the update of the types (78).
type TypeUpdate uint8

const (
	Modal       TypeUpdate = iota // at the mode, as in algorithm 1: the ELBO may fall
	Expectation                   // by quadrature under q(c) at the previous φ: one normalised v-Log per pass
)

// A PassStop says when a round's passes end.
type PassStop uint8

const (
	FixedPasses PassStop = iota // after Inner passes: option (a) of section 5
	ByELBO                      // algorithm 1: with the first pass by which the ELBO rises by less than Gain
)

// A Config says how to boost. Zero fields mean the defaults given.
type Config struct {
	Prior
	Rounds    int        // the most rounds to run, 1 to boost.MaxRounds; 0 is 50
	Inner     int        // passes of α, ω, φ, η in a round; 0 is 10; ByELBO: not used
	Tau       float64    // τ of (17), 10⁻⁶ to 10⁶; 0 is 1, which the noise watch needs
	Weighting Weighting  // Approximate
	Types     TypeUpdate // Modal
	Bound     bool       // compute the ELBO after each round, which costs many rounds
	Stop      PassStop   // FixedPasses
	Gain      float64    // with ByELBO: a rise of the ELBO below it is not significant, in nats; 0 is 10⁻⁴
	WeighOnce bool       // α is set in the first pass alone: option (b) of section 5
	Weights   []float64  // weight of each row, 0 to 10⁶; nil is 1 each
}

const (
	defaultRounds = 50
	defaultInner  = 10
	mostInner     = 1 << 20
	mostTau       = 1e6
	mostWeight    = 1e6
	defaultGain   = 1e-4 // nats
	passesByELBO  = 1000 // the most passes of a round with ByELBO
)

// fill sets the defaults and checks the other fields.
func (cfg *Config) fill() error {
	if cfg.Rounds == 0 {
		cfg.Rounds = defaultRounds
	}
	if cfg.Inner == 0 {
		cfg.Inner = defaultInner
	}
	if cfg.Tau == 0 {
		cfg.Tau = 1
	}
	errs := []error{cfg.Prior.fill()}
	if cfg.Rounds < 0 || cfg.Rounds > boost.MaxRounds {
		errs = append(errs, fmt.Errorf("viboost: %d rounds: want 1 to %d, or 0 for %d",
			cfg.Rounds, boost.MaxRounds, defaultRounds))
	}
	if cfg.Inner < 0 || cfg.Inner > mostInner {
		errs = append(errs, fmt.Errorf("viboost: %d inner passes: want 1 to %d, or 0 for %d",
			cfg.Inner, mostInner, defaultInner))
	}
	if !(cfg.Tau >= 1/mostTau && cfg.Tau <= mostTau) {
		errs = append(errs, fmt.Errorf("viboost: tau is %v: want a number from %g to %g, or 0 for 1",
			cfg.Tau, 1/mostTau, mostTau))
	}
	if cfg.Gain == 0 {
		cfg.Gain = defaultGain
	}
	if !(cfg.Gain > 0 && cfg.Gain <= math.MaxFloat64) {
		errs = append(errs, fmt.Errorf("viboost: gain %v: want a positive number of nats, or 0 for %g",
			cfg.Gain, defaultGain))
	}
	if cfg.Stop > ByELBO {
		errs = append(errs, fmt.Errorf("viboost: unknown stop %d: want FixedPasses or ByELBO", cfg.Stop))
	}
	if cfg.Weighting > Mixed {
		errs = append(errs, fmt.Errorf("viboost: unknown weighting %d: want Approximate, Exact or Mixed", cfg.Weighting))
	}
	if cfg.Types > Expectation {
		errs = append(errs, fmt.Errorf("viboost: unknown type update %d: want Modal or Expectation", cfg.Types))
	}
	for i, w := range cfg.Weights {
		if w > mostWeight {
			errs = append(errs, fmt.Errorf("viboost: sample weight %d is %v: want 0 to %g", i, w, float64(mostWeight)))
		}
	}
	return errors.Join(errs...)
}

// A Booster runs VIBoost (algorithm 1) over stumps. It is not safe for concurrent use.
type Booster struct {
	cfg    Config
	data   *boost.Data
	search *boost.Search
	stage  stage
	total  float64 // Σ sample weights
	log    []Round // of the rounds so far; only Round appends
	stop   boost.Stop
}

// A Round is the result of one round. Omega is that of its last pass. Eta, LogNorm and
// ELBO are those of the last φ; the latter two need Config.Bound.
type Round struct {
	Stump      boost.Stump // h, its polarity always +1
	Alpha      float64     // α, its weight in H, of either sign
	Omega      [2]float64  // q(ξ) = v-Log([1,−1], 0, ω)
	Eta        [2]float64  // q(θ) = Beta(η)
	ELBO       float64     // (91) with the constant 0, nats
	LogNorm    float64     // ln B_c
	Passes     int         // of α, ω, φ, η
	TrainError float64     // of sign H, by sample weight; H = 0 counts as −1
}

// SNR returns η₁/η₂, the paper's signal-to-noise ratio of the labels: a ratio of the
// means of θ and 1−θ, not the mean of θ/(1−θ), which is η₁/(η₂−1).
func (r *Round) SNR() float64 { return r.Eta[0] / r.Eta[1] }

// NoiseGrade returns ln ω₂/ω₁, the mode of the log-odds that a noisy label is +1.
func (r *Round) NoiseGrade() float64 { return logistic.Log(r.Omega[1] / r.Omega[0]) }

// New prepares boosting on d with labels y = ±1, which are copied. The error joins all
// faults of y and cfg.
func New(d *boost.Data, y []float64, cfg Config) (*Booster, error) {
	weights, _, err := d.SampleWeights(cfg.Weights)
	if err := errors.Join(cfg.fill(), d.CheckLabels(y), err); err != nil {
		return nil, err
	}
	copy(weights, cfg.Weights) // not normalised: they count examples
	b := &Booster{
		cfg: cfg, data: d, search: d.NewSearch(),
		stage: newStage(cfg.Prior, slices.Clone(y), weights),
		log:   make([]Round, 0, cfg.Rounds),
	}
	b.cfg.Weights = nil
	b.stage.Tau = cfg.Tau
	for _, w := range weights {
		b.total += w
	}
	b.stage.Omega = b.stage.Noisy()
	return b, nil
}

// Train runs all remaining rounds. If ctx is cancelled, Train stops between two rounds
// and returns the cause; a later call continues with the next round.
func (b *Booster) Train(ctx context.Context) error { return boost.Run(ctx, "viboost", b.Round) }

// Round runs one round. It returns false if training has ended; [Booster.Stopped] says
// why. It allocates only in the first round, with Bound, Exact or Expectation.
func (b *Booster) Round() bool {
	if len(b.log) == b.cfg.Rounds {
		b.stop = boost.Rounds
	}
	if b.stop != boost.Running {
		return false
	}
	s := &b.stage
	s.Exponents()
	best, ok := b.choose()
	if !ok {
		b.stop = boost.NoCandidate
		return false
	}
	b.data.SignsTo(s.H, best)
	quadrature := b.cfg.Types == Expectation || b.cfg.Bound || b.cfg.Stop == ByELBO
	if quadrature || b.cfg.Weighting != Approximate {
		s.place()
	}

	α, passes, elbo := 0.0, 0, math.Inf(-1)
	for more := true; more; passes++ {
		if passes == 0 || !b.cfg.WeighOnce {
			α = b.weigh(α)
		}
		s.Omega = s.Noisy()
		if b.cfg.Types == Expectation {
			s.normalise()
			s.classify()
		} else {
			s.ClassifyAt(α)
		}
		s.Eta = s.Trusted()
		more, elbo = b.more(passes+1, elbo)
	}
	r := Round{Stump: b.data.Stump(best), Alpha: α, Omega: s.Omega, Eta: s.Eta, Passes: passes}
	r.Stump.Polarity = 1
	if b.cfg.Bound {
		s.normalise()
		r.LogNorm, r.ELBO = s.posterior.LogNorm(), s.bound()
	}

	r.TrainError = s.Add(α) / b.total
	b.log = append(b.log, r)
	return true
}

// more reports whether the round makes another pass. With ByELBO it returns the bound
// after this one; last is that of the pass before, −Inf after the first.
func (b *Booster) more(passes int, last float64) (bool, float64) {
	if b.cfg.Stop == FixedPasses {
		return passes < b.cfg.Inner, 0
	}
	b.stage.normalise()
	elbo := b.stage.bound()
	return passes < passesByELBO && elbo-last >= b.cfg.Gain, elbo
}

// choose returns the stump with the largest |mode|.
func (b *Booster) choose() (boost.Candidate, bool) {
	if b.cfg.Weighting == Exact {
		return b.chooseExact()
	}
	return b.stage.Choose(b.search)
}

// weigh returns the mode of q(c) for the current φ. guess is the last mode.
func (b *Booster) weigh(guess float64) float64 {
	if b.cfg.Weighting == Approximate {
		return b.stage.Weigh()
	}
	b.stage.count()
	return b.stage.density.ModeFrom(guess)
}

// Ensemble returns the result of the rounds so far.
func (b *Booster) Ensemble() *Ensemble {
	terms := make([]Term, 0, len(b.log))
	for _, r := range b.log {
		terms = append(terms, Term{Stump: r.Stump, Alpha: r.Alpha})
	}
	return viboost.NewEnsemble(b.data.Dim(), terms, b.stage.Omega, b.stage.Eta)
}

// Stopped returns why training has ended, boost.Rounds or boost.NoCandidate, else
// boost.Running.
func (b *Booster) Stopped() boost.Stop { return b.stop }

// Rounds returns the results of all rounds.
func (b *Booster) Rounds() []Round { return slices.Clone(b.log) }

// Last returns the last round's result; false: no round has run.
func (b *Booster) Last() (Round, bool) {
	if len(b.log) == 0 {
		return Round{}, false
	}
	return b.log[len(b.log)-1], true
}

// PhiTo writes φ, the probability that the label is true, of each row to dst, of
// length N.
func (b *Booster) PhiTo(dst []float64) { copyTo(dst, b.stage.Phi) }

// LogOddsTo writes H(xₙ) of each row to dst, of length N.
func (b *Booster) LogOddsTo(dst []float64) { copyTo(dst, b.stage.Before) }

func copyTo(dst, src []float64) {
	if len(dst) != len(src) {
		panic(fmt.Sprintf("viboost: a vector of length %d for %d rows", len(dst), len(src)))
	}
	copy(dst, src)
}

// The result is the product's.
type (
	Ensemble = viboost.Ensemble
	Term     = viboost.Term
)

// A Prior is the belief before any label. The weight c of a base classifier and the
// noise grade ξ are v-Log([1,−1], 0, [μ, μ]) with μ = Mu0 and Mu0Prime. The probability
// θ that a label is true is Beta(Zeta[0], Zeta[1]). A field that is 0 means 1, the
// paper's choice.
type Prior struct {
	Mu0      float64    // μ₀: 2μ₀ phantom examples; h errs on half of them
	Mu0Prime float64    // μ₀′: phantom noisy labels of each sign
	Zeta     [2]float64 // ζ: phantom true labels, phantom noisy ones
}

// The parameters of a prior lie between 1/widest and widest.
const widest = 1e90

// fill sets the defaults and checks the other fields.
func (p *Prior) fill() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value *float64
	}{{"mu0", &p.Mu0}, {"mu0_prime", &p.Mu0Prime}, {"zeta[0]", &p.Zeta[0]}, {"zeta[1]", &p.Zeta[1]}} {
		if *f.value == 0 {
			*f.value = 1
		}
		if !(*f.value >= 1/widest && *f.value <= widest) {
			errs = append(errs, fmt.Errorf("viboost: %s is %v: want a number from %g to %g, or 0 for 1",
				f.name, *f.value, 1/widest, widest))
		}
	}
	return errors.Join(errs...)
}
