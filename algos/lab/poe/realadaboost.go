package poe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/poeboost"
)

// A Criterion says which hypothesis a round of Real AdaBoost takes.
type Criterion uint8

const (
	// MeanProbability takes the largest Σ D P(y | x, h): section 6 of the paper minimises
	// −Σ D P(y | x, h).
	MeanProbability Criterion = iota
	// LeastZ takes the least Z, as Schapire and Singer do (1999, section 3).
	LeastZ
)

// RealAdaBoostConfig says how to run Real AdaBoost. Zero fields mean the defaults given.
type RealAdaBoostConfig struct {
	Rounds    int              // the most rounds to run, 1 to boost.MaxRounds; 0 is DefaultRounds
	Weights   []float64        // ω, a sample weight for each row, not negative; nil is 1 each
	Learner   poeboost.Learner // Newton by default
	Rate      float64          // the length of Step's step, in (0, MaxRate]; 0 is 1
	Criterion Criterion        // MeanProbability by default
	Raw       bool             // features as they are, not standardised
}

// RealAdaBoost is Real AdaBoost over univariate logistic regression, which the paper
// compares with POEBoost.CS. From D ∝ ω, a round fits a hypothesis p = P(Z = +1 | x, h) to
// every feature under D and takes the best by the Criterion. It adds half of the log-odds:
//
//	f_t(x) = ½ ln p/(1−p),   f ← f + f_t,   D ← D e^(−y f_t)/Z,   Z = Σ D e^(−y f_t)
//
// (J. Friedman, T. Hastie and R. Tibshirani, Additive logistic regression, Annals of
// Statistics 28, 2000, algorithm 2; R. Schapire and Y. Singer, Improved boosting
// algorithms using confidence-rated predictions, Machine Learning 37, 1999). The mean of
// e^(−yf) is ∏Z. So D has the closed form ωe^(−yf)/Σωe^(−yf), which is used: no error
// accumulates. P(y = +1 | x) is σ(2f), the normalised product of all p.
//
// The hypothesis is fitted to the likelihood and not to Z, so Z may exceed 1.
//
// p counts as 10⁻⁶ to 1−10⁻⁶, as P_e of POEBoost.CS does: f_t stays finite. Training ends
// before a round whose best hypothesis is no better than p = ½ by the Criterion
// (boost.NoEdge). Features are standardised by the rows, whatever their weights, but for Raw.
type RealAdaBoost struct {
	data      *boost.Data
	y         []float64
	weights   []float64 // ω, in [0, 1]
	logOdds   []float64 // 2f(xᵢ)
	dist      []float64 // D of the next round
	rounds    int       // the most rounds to run
	stop      boost.Stop
	learner   poeboost.Learner
	rate      float64
	criterion Criterion
	features  []poeboost.Univariate // the last fit of each
	columns   []float64             // standardised
	largest   []float64             // max|u| of each column
	log       []RealAdaBoostRound
}

// A RealAdaBoostRound is the result of one round.
type RealAdaBoostRound struct {
	Hypothesis      poeboost.Univariate
	MeanProbability float64 // Σ D P(y | x, h)
	Z               float64 // the normaliser Σ D e^(−y f_t)
	poeboost.State          // after the round
}

// NewRealAdaBoost prepares Real AdaBoost on d with labels y = ±1, which are copied. The
// error joins all faults of y and cfg.
func NewRealAdaBoost(d *boost.Data, y []float64, cfg RealAdaBoostConfig) (*RealAdaBoost, error) {
	ω, _, err := d.SampleWeights(cfg.Weights)
	errs := []error{d.CheckLabels(y), err}
	rounds := cmp.Or(cfg.Rounds, poeboost.DefaultRounds)
	if rounds < 0 || rounds > boost.MaxRounds {
		errs = append(errs, fmt.Errorf("poeboost: %d rounds: want 1 to %d, or 0 for %d",
			rounds, boost.MaxRounds, poeboost.DefaultRounds))
	}
	if cfg.Learner > poeboost.Step {
		errs = append(errs, fmt.Errorf("poeboost: unknown learner %d: want Newton or Step", cfg.Learner))
	}
	if cfg.Criterion > LeastZ {
		errs = append(errs, fmt.Errorf("poeboost: unknown criterion %d: want MeanProbability or LeastZ", cfg.Criterion))
	}
	if cfg.Rate == 0 {
		cfg.Rate = 1
	}
	if !(cfg.Rate > 0 && cfg.Rate <= poeboost.MaxRate) {
		errs = append(errs, fmt.Errorf("poeboost: rate %v: want one in (0, %g], or 0 for 1",
			cfg.Rate, float64(poeboost.MaxRate)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	n := d.Rows()
	b := &RealAdaBoost{
		data: d, y: slices.Clone(y), weights: ω, rounds: rounds,
		logOdds: make([]float64, n), dist: make([]float64, n),
		learner: cfg.Learner, rate: cfg.Rate, criterion: cfg.Criterion,
		largest: make([]float64, d.Dim()),
		log:     make([]RealAdaBoostRound, 0, rounds),
	}
	b.features, b.columns = poeboost.Standardise(d, cfg.Raw)
	for j := range b.largest {
		for _, v := range b.column(j) {
			b.largest[j] = max(b.largest[j], math.Abs(v))
		}
	}
	b.weigh()
	return b, nil
}

// column returns the standardised values of a feature.
func (b *RealAdaBoost) column(j int) []float64 {
	n := b.data.Rows()
	return b.columns[j*n : (j+1)*n]
}

// weigh sets D from the log-odds: ω e^(−F/2·y) with F = 2f.
func (b *RealAdaBoost) weigh() {
	if !poeboost.ClosedWeightsTo(b.dist, b.y, b.logOdds, b.weights, true) {
		panic("poeboost: no weight is left")
	}
}

// Train runs all remaining rounds. If ctx is cancelled, Train stops between two rounds
// and returns the cause; a later call continues with the next round.
func (b *RealAdaBoost) Train(ctx context.Context) error { return boost.Run(ctx, "poeboost", b.Round) }

// Round runs one round. It returns false if training has ended; Stopped says why. It costs
// 2N exponentials per feature with Step, some five times N with Newton, and allocates nothing.
func (b *RealAdaBoost) Round() bool {
	if b.stop != boost.Running {
		return false
	}
	best, least := 0, math.Inf(1)
	var r RealAdaBoostRound
	for j := range b.features {
		h, u := &b.features[j], b.column(j)
		if b.learner == poeboost.Step {
			h.FitStep(u, b.y, b.dist, b.rate)
		} else {
			h.FitNewton(u, b.y, b.dist, b.largest[j])
		}
		p, z := criteria(h, u, b.y, b.dist)
		c := 1 - p
		if b.criterion == LeastZ {
			c = z
		}
		if c < least-tie {
			best, least = j, c
			r = RealAdaBoostRound{MeanProbability: p, Z: z}
		}
	}
	useless := 0.5 // the criterion of p = ½
	if b.criterion == LeastZ {
		useless = 1
	}
	if useless-least <= noEdge {
		b.stop = boost.NoEdge
		return false
	}
	r.Hypothesis = b.features[best]
	h := &r.Hypothesis
	for i, u := range b.column(best) {
		b.logOdds[i] += bounded(float64(h.Weight*u) + h.Bias)
	}
	b.weigh()
	r.State = poeboost.StateOf(b.y, b.logOdds, b.weights)
	b.log = append(b.log, r)
	if len(b.log) == b.rounds {
		b.stop = boost.Rounds
	}
	return true
}

const (
	tie    = 0x1p-46 // a better criterion is less by more
	noEdge = 0x1p-39 // a smaller gain counts as 0: rounding of some 8,000 weights
)

// mostLogOdds is ln((1−10⁻⁶)/10⁻⁶): no hypothesis adds more to a log-odds.
const mostLogOdds = 13.81550955796412739

// bounded returns log-odds with p in 10⁻⁶ to 1−10⁻⁶.
func bounded(z float64) float64 { return min(max(z, -mostLogOdds), mostLogOdds) }

// criteria returns Σ D P(y | x, h) and Z = Σ D e^(−y f_t) of the hypothesis.
func criteria(h *poeboost.Univariate, u, y, d []float64) (p, z float64) {
	y, d = y[:len(u)], d[:len(u)]
	for i, v := range u {
		t := y[i] * bounded(float64(h.Weight*v)+h.Bias)
		p += float64(d[i] * logistic.Sigmoid(t))
		z += float64(d[i] * logistic.Exp(-t/2))
	}
	return p, z
}

// Stopped returns why training has ended, or boost.Running.
func (b *RealAdaBoost) Stopped() boost.Stop { return b.stop }

// LogOddsTo writes 2f(xᵢ) to dst, of length N.
func (b *RealAdaBoost) LogOddsTo(dst []float64) {
	sameLength(len(dst), len(b.logOdds))
	copy(dst, b.logOdds)
}

// WeightsTo writes D of the next round to dst, of length N. It sums to 1.
func (b *RealAdaBoost) WeightsTo(dst []float64) {
	sameLength(len(dst), len(b.dist))
	copy(dst, b.dist)
}

// Rounds returns the results of all rounds.
func (b *RealAdaBoost) Rounds() []RealAdaBoostRound { return slices.Clone(b.log) }

// Ensemble returns f so far.
func (b *RealAdaBoost) Ensemble() *RealEnsemble {
	e := &RealEnsemble{dim: b.data.Dim()}
	for _, r := range b.log {
		e.hypotheses = append(e.hypotheses, r.Hypothesis)
	}
	return e
}

// A RealEnsemble is the sum of Real AdaBoost's hypotheses. It never changes and may be
// used concurrently.
type RealEnsemble struct {
	dim        int
	hypotheses []poeboost.Univariate
}

// Dim returns the number of inputs.
func (e *RealEnsemble) Dim() int { return e.dim }

// Len returns the number of hypotheses.
func (e *RealEnsemble) Len() int { return len(e.hypotheses) }

// LogOdds returns 2f(x), the log-odds of y = +1 in nats, summed in the order of the
// rounds. They are finite for every x; a NaN in x is the feature's mean. It panics if
// len(x) ≠ Dim.
func (e *RealEnsemble) LogOdds(x []float64) float64 {
	if len(x) != e.dim {
		panic(fmt.Sprintf("poeboost: a vector of length %d for %d inputs", len(x), e.dim))
	}
	f := 0.0
	for i := range e.hypotheses {
		f += bounded(e.hypotheses[i].LogOdds(x))
	}
	return f
}

// Prob returns the probability of y = +1.
func (e *RealEnsemble) Prob(x []float64) float64 { return logistic.Sigmoid(e.LogOdds(x)) }
