package viboost

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/vi"
)

// A Config says how to boost. Zero fields mean the defaults given.
type Config struct {
	Rounds  int       // the most rounds to run, 1 to boost.MaxRounds; 0 is 50
	Inner   int       // passes of α, ω, φ, η in a round; 0 is 10
	Weights []float64 // weight of each row, 0 to 10⁶; nil is 1 each
}

const (
	defaultRounds = 50
	defaultInner  = 10
	mostInner     = 1 << 20
	mostWeight    = 1e6
)

// fill sets the defaults and checks the other fields.
func (cfg *Config) fill() error {
	if cfg.Rounds == 0 {
		cfg.Rounds = defaultRounds
	}
	if cfg.Inner == 0 {
		cfg.Inner = defaultInner
	}
	var errs []error
	if cfg.Rounds < 0 || cfg.Rounds > boost.MaxRounds {
		errs = append(errs, fmt.Errorf("viboost: %d rounds: want 1 to %d, or 0 for %d",
			cfg.Rounds, boost.MaxRounds, defaultRounds))
	}
	if cfg.Inner < 0 || cfg.Inner > mostInner {
		errs = append(errs, fmt.Errorf("viboost: %d inner passes: want 1 to %d, or 0 for %d",
			cfg.Inner, mostInner, defaultInner))
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
	rounds, inner int // the number requested; passes in a round
	data          *boost.Data
	search        *boost.Search
	stage         vi.Stage
	log           []Round // of the rounds so far; only Round appends
	stop          boost.Stop
}

// A Round is the result of one round. Omega is that of its last pass, Eta that of the
// last φ.
type Round struct {
	Stump boost.Stump // h, its polarity always +1
	Alpha float64     // α, its weight in H, of either sign
	Omega [2]float64  // q(ξ) = v-Log([1,−1], 0, ω)
	Eta   [2]float64  // q(θ) = Beta(η)
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
		rounds: cfg.Rounds, inner: cfg.Inner, data: d, search: d.NewSearch(),
		stage: vi.NewStage(slices.Clone(y), weights),
		log:   make([]Round, 0, cfg.Rounds),
	}
	b.stage.Omega = b.stage.Noisy()
	return b, nil
}

// Train runs all remaining rounds. If ctx is cancelled, Train stops between two rounds
// and returns the cause; a later call continues with the next round.
func (b *Booster) Train(ctx context.Context) error { return boost.Run(ctx, "viboost", b.Round) }

// Round runs one round. It returns false if training has ended; [Booster.Stopped] says
// why. It allocates nothing.
func (b *Booster) Round() bool {
	if len(b.log) == b.rounds {
		b.stop = boost.Rounds
	}
	if b.stop != boost.Running {
		return false
	}
	s := &b.stage
	s.Exponents()
	best, ok := s.Choose(b.search)
	if !ok {
		b.stop = boost.NoCandidate
		return false
	}
	b.data.SignsTo(s.H, best)
	α := 0.0
	for range b.inner {
		α = s.Weigh()
		s.Omega = s.Noisy()
		s.ClassifyAt(α)
		s.Eta = s.Trusted()
	}
	r := Round{Stump: b.data.Stump(best), Alpha: α, Omega: s.Omega, Eta: s.Eta}
	r.Stump.Polarity = 1
	s.Add(α)
	b.log = append(b.log, r)
	return true
}

// Stopped returns why training has ended, boost.Rounds or boost.NoCandidate, else
// boost.Running.
func (b *Booster) Stopped() boost.Stop { return b.stop }

// Last returns the last round's result; false: no round has run.
func (b *Booster) Last() (Round, bool) {
	if len(b.log) == 0 {
		return Round{}, false
	}
	return b.log[len(b.log)-1], true
}
