package poeboost

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// An ErrorRate says which P_e in [ε, ½] (16) an expert of POEBoost.DS gets.
type ErrorRate uint8

const (
	// Minimising is √ε/(√ε + √(1−ε)), which makes (6) least.
	Minimising ErrorRate = iota
	// Greedy is ε, the paper's choice: the most confident expert that (6) admits.
	// (6) is then exactly 2 and no gain is guaranteed.
	Greedy
)

// DiscreteConfig says how to run POEBoost.DS. A zero field means the default.
type DiscreteConfig struct {
	Rounds    int       // at most so many, 1 to boost.MaxRounds; 0 is DefaultRounds
	Weights   []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	ErrorRate ErrorRate // Minimising by default

	// Printed leaves Qᵢ out of the weights, as algorithm 3 is printed. With Greedy that
	// is AdaBoost, which guarantees nothing about the likelihood.
	Printed bool
}

// Discrete is POEBoost.DS, algorithm 3 with the Qᵢ of (8), over stumps. A round
// weighs the examples by (7), takes the stump h of least weighted error ε, gives it
// a P_e in [ε, ½] and lets the expert
//
//	P(y | x, h) = 1 − P_e where h(x) = y, else P_e
//
// join the product, which adds 2αh(x) to the log-odds, α = ½ ln((1−P_e)/P_e).
//
// It ends before a round with ε ≥ ½ (boost.NoEdge) and after one with ε ≤ 1e−10
// (boost.Separated), which counts as 1e−10 in P_e: ε = 0 would make α infinite.
type Discrete struct {
	sample
	errorRate ErrorRate
	search    *boost.Search
	signed    []int64
	signs     []float64
	log       []DiscreteRound
}

// A DiscreteRound is the result of one round.
type DiscreteRound struct {
	Stump      boost.Stump
	Epsilon    float64 // ε, its weighted error
	ErrorRate  float64 // P_e
	Alpha      float64 // α (18), > 0
	Constraint float64 // the left side of (6), at most 2
	State              // after the round
}

const (
	// A stump with an ε up to separated counts as perfect.
	separated = 1e-10
	// An edge 1 − 2ε up to noEdge counts as none. A sum of N weights may be off by
	// N·2⁻⁵³ of the total, its edge by twice that: 2⁻³⁹ for N = 8,192. That is above
	// the resolution of boost's search, 2⁻⁴⁶.
	noEdge = 0x1p-39
)

// NewDiscrete prepares POEBoost.DS on d with labels y = ±1, which are copied. The error
// joins all that is wrong with y and cfg.
func NewDiscrete(d *boost.Data, y []float64, cfg DiscreteConfig) (*Discrete, error) {
	s, err := newSample(d, y, cfg.Weights, cfg.Rounds)
	if cfg.ErrorRate > Greedy {
		err = errors.Join(err, fmt.Errorf("poeboost: unknown error rate %d: want Minimising or Greedy", cfg.ErrorRate))
	}
	if err != nil {
		return nil, err
	}
	s.printed = cfg.Printed
	b := &Discrete{
		sample: s, errorRate: cfg.ErrorRate, search: d.NewSearch(),
		signed: make([]int64, d.Rows()), signs: make([]float64, d.Rows()),
		log: make([]DiscreteRound, 0, s.rounds),
	}
	b.weigh()
	return b, nil
}

// Train runs all rounds that are left. If ctx is cancelled it returns its cause between
// two rounds; a later call goes on from there.
func (b *Discrete) Train(ctx context.Context) error { return train(ctx, b.Round) }

// Round runs one round and reports whether it did; otherwise Stopped says why
// not. It costs one search and some 2N exponentials, and allocates nothing.
func (b *Discrete) Round() bool {
	if b.finished() {
		return false
	}
	boost.Fix(b.signed, b.dist, b.y)
	c, ok := b.search.Best(b.signed)
	if !ok {
		b.stop = boost.NoCandidate
		return false
	}
	r := DiscreteRound{Stump: b.data.Stump(c)}
	b.data.SignsTo(b.signs, c)
	polarity := float64(r.Stump.Polarity)
	for i, v := range b.signs {
		b.signs[i] = v * polarity
		if b.signs[i] != b.y[i] {
			r.Epsilon += b.dist[i]
		}
	}
	if 1-2*r.Epsilon <= noEdge {
		b.stop = boost.NoEdge
		return false
	}
	r.choose(b.errorRate)
	for i, v := range b.signs {
		b.logOdds[i] += float64(2 * r.Alpha * v)
	}
	b.weigh()
	r.State = b.state()
	b.log = append(b.log, r)
	b.done++
	if r.Epsilon <= separated {
		b.stop = boost.Separated
	} else {
		b.finished()
	}
	return true
}

// choose sets P_e, α and (6), given ε.
func (r *DiscreteRound) choose(rate ErrorRate) {
	ε := max(r.Epsilon, separated)
	r.ErrorRate, r.Alpha = ε, -logistic.Logit(ε)/2
	if rate == Minimising {
		r.ErrorRate = MinimisingError(ε)
		r.Alpha /= 2 // (1−P_e)/P_e = √((1−ε)/ε)
	}
	r.Constraint = (1-r.Epsilon)/(1-r.ErrorRate) + r.Epsilon/r.ErrorRate
}

// Rounds returns the results of all rounds.
func (b *Discrete) Rounds() []DiscreteRound { return slices.Clone(b.log) }

// Ensemble returns the product of the experts so far.
func (b *Discrete) Ensemble() *Ensemble {
	e := &Ensemble{dim: b.data.Dim()}
	for _, r := range b.log {
		e.votes = append(e.votes, Vote{Stump: r.Stump, Alpha: r.Alpha})
	}
	return e
}
