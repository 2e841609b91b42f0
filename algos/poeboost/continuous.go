package poeboost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// A Learner says how the hypotheses of POEBoost.CS are fitted in a round.
type Learner uint8

const (
	// Newton maximises the weighted likelihood Σ D ln p, with the penalty
	// ½·10⁻⁶·(weight² + bias²).
	Newton Learner = iota
	// Step takes one gradient step of Σ D ln p from 0, as in section 6 of the paper. The
	// paper does not give its length.
	Step
)

// ContinuousConfig says how to run POEBoost.CS. Zero fields mean the defaults
// given.
type ContinuousConfig struct {
	Rounds  int       // the most rounds to run, 1 to boost.MaxRounds; 0 is DefaultRounds
	Weights []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	Learner Learner   // Newton by default
	Rate    float64   // the length of Step's step, in (0, MaxRate]; 0 is 1

	// Pooled fits and ranks the hypotheses of a round on the means of the bins, not on
	// the rows: ten times as fast with 64 bins and 2,000 rows. The best is measured on
	// the rows, so (6) holds. It is for Newton over quantised data.
	Pooled bool

	// Raw takes features as they are, not standardised. Only the laboratory sets it.
	Raw bool
}

// MaxRate bounds the rate of Step, so that no log-odds leave the range of float64.
const MaxRate = 0x1p900

// Continuous is POEBoost.CS over univariate logistic regression. A round weights the
// examples by (7), fits a hypothesis to every feature and takes the one with the smallest
// ε_c (32); up to rounding, the first wins. P_e = max(ε_c, 10⁻⁶), so (6) is at most 2 by
// (30) and (31). The expert (13) is added to the product. Training ends before a round
// with ε_c ≥ ½ (boost.NoEdge).
type Continuous struct {
	sample
	learner  Learner
	rate     float64
	features []Univariate // the last fit of each
	columns  []float64    // standardised
	largest  []float64    // max|u| of each column
	pools    []pool       // of each column, if rows are pooled
	correct  []float64    // scratch: P(Z = y | x, h), then the expert's P(y | x, h)
	log      []ContinuousRound
}

// A ContinuousRound is the result of one round.
type ContinuousRound struct {
	Hypothesis      Univariate
	ConfidenceError float64 // ε_c (32)
	ErrorRate       float64 // P_e
	Constraint      float64 // the left side of (6), at most 2
	State                   // after the round
}

// A better ε_c is less by more than tie: as in boost's search, 2⁻⁴⁶ of the total weight.
const tie = 0x1p-46

// leastErrorRate is the least P_e: no expert adds more than ln(10⁶) to a log-odds.
const leastErrorRate = 1e-6

// NewContinuous prepares POEBoost.CS on d with labels y = ±1, which are copied. The error
// joins all faults of y and cfg.
func NewContinuous(d *boost.Data, y []float64, cfg ContinuousConfig) (*Continuous, error) {
	s, err := newSample(d, y, cfg.Weights, cfg.Rounds)
	errs := []error{err}
	if cfg.Learner > Step {
		errs = append(errs, fmt.Errorf("poeboost: unknown learner %d: want Newton or Step", cfg.Learner))
	}
	if cfg.Pooled && (cfg.Learner != Newton || !d.Quantised()) {
		errs = append(errs, errors.New("poeboost: rows are pooled for Newton over quantised data alone"))
	}
	if cfg.Rate == 0 {
		cfg.Rate = 1
	}
	if !(cfg.Rate > 0 && cfg.Rate <= MaxRate) {
		errs = append(errs, fmt.Errorf("poeboost: rate %v: want one in (0, %g], or 0 for 1", cfg.Rate, float64(MaxRate)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	b := &Continuous{
		sample: s, learner: cfg.Learner, rate: cfg.Rate,
		largest: make([]float64, d.Dim()), correct: make([]float64, d.Rows()),
		log: make([]ContinuousRound, 0, s.rounds),
	}
	b.features, b.columns = Standardise(d, cfg.Raw)
	for j := range b.largest {
		for _, v := range b.column(j) {
			b.largest[j] = max(b.largest[j], math.Abs(v))
		}
	}
	if cfg.Pooled {
		b.pools = newPools(d, b.columns)
	}
	b.weigh()
	return b, nil
}

// column returns the standardised values of a feature.
func (b *Continuous) column(j int) []float64 {
	n := b.data.Rows()
	return b.columns[j*n : (j+1)*n]
}

// Train runs all remaining rounds. If ctx is cancelled, Train stops between two rounds
// and returns the cause; a later call continues with the next round.
func (b *Continuous) Train(ctx context.Context) error { return boost.Run(ctx, "poeboost", b.Round) }

// Round runs one round. It returns false if training has ended; [Continuous.Stopped] says
// why. It costs N exponentials per feature with Step, some four times as many with Newton,
// and allocates nothing.
func (b *Continuous) Round() bool {
	if b.finished() {
		return false
	}
	best, least := 0, math.Inf(1)
	for j := range b.features {
		h, u, y, d := &b.features[j], b.column(j), b.y, b.dist
		if b.pools != nil {
			p := &b.pools[j]
			p.weigh(y, d)
			u, y, d = p.u, p.y, p.d
		}
		if b.learner == Step {
			h.FitStep(u, y, d, b.rate)
		} else {
			h.FitNewton(u, y, d, b.largest[j])
		}
		if ε := h.confidenceError(u, y, d); ε < least-tie {
			best, least = j, ε
		}
	}
	if b.pools != nil { // ε_c on the rows
		least = b.features[best].confidenceError(b.column(best), b.y, b.dist)
	}
	if 1-2*least <= noEdge {
		b.stop = boost.NoEdge
		return false
	}
	r := ContinuousRound{Hypothesis: b.features[best], ConfidenceError: least, ErrorRate: max(least, leastErrorRate)}
	h := &r.Hypothesis
	for i, u := range b.column(best) {
		z := float64(h.Weight*u) + h.Bias
		b.correct[i] = logistic.Sigmoid(b.y[i] * z)
		b.logOdds[i] += expertLogOdds(z, r.ErrorRate)
	}
	ExpertTo(b.correct, b.correct, r.ErrorRate)
	r.Constraint = Constraint(b.dist, b.correct)
	b.weigh()
	r.State = b.state()
	b.log = append(b.log, r)
	b.done++
	b.finished()
	return true
}

// Rounds returns the results of all rounds.
func (b *Continuous) Rounds() []ContinuousRound { return slices.Clone(b.log) }

// Ensemble returns the product of the experts so far.
func (b *Continuous) Ensemble() *Ensemble {
	e := &Ensemble{dim: b.data.Dim()}
	for _, r := range b.log {
		e.opinions = append(e.opinions, Opinion{Univariate: r.Hypothesis, ErrorRate: r.ErrorRate})
	}
	return e
}
