package poeboost

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// An ErrorRate is the rule that chooses P_e of an expert of POEBoost.DS. (6) allows P_e
// from ε, the weighted error, to ½ (16).
type ErrorRate uint8

const (
	// Minimising is √ε/(√ε + √(1−ε)), which minimises the left side of (6).
	Minimising ErrorRate = iota
	// Greedy is ε, the paper's choice: the most confident expert that (6) admits.
	// The left side of (6) is then exactly 2, and no gain is guaranteed.
	Greedy
)

// DiscreteConfig says how to run POEBoost.DS. A zero field means the default.
type DiscreteConfig struct {
	Rounds    int       // the most rounds to run, 1 to boost.MaxRounds; 0 is DefaultRounds
	Weights   []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	ErrorRate ErrorRate // Minimising by default

	// Printed leaves Qᵢ out of the weights, as algorithm 3 in the paper does. With Greedy
	// that is AdaBoost, and the likelihood may fall.
	Printed bool
}

// Discrete is POEBoost.DS over stumps: algorithm 3 with the Qᵢ of (8). Each round
//
//   - weighs the examples by (7),
//   - finds the stump h with the smallest weighted error ε,
//   - chooses P_e in [ε, ½] by the ErrorRate,
//   - adds the expert P(y | x, h) = 1 − P_e if h(x) = y, else P_e, to the product. This
//     adds 2αh(x) to the log-odds, α = ½ ln((1−P_e)/P_e).
//
// Training ends if the best stump has ε ≥ ½ (boost.NoEdge); that stump is not added. It
// also ends after a round with ε ≤ 1e−10 (boost.Separated). P_e is then computed from
// 1e−10, because ε = 0 would make α infinite.
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
	// A stump with ε ≤ separated counts as perfect.
	separated = 1e-10
	// An edge 1 − 2ε ≤ noEdge counts as 0. The relative rounding error of a sum of N
	// weights is at most N·2⁻⁵³, and that of the edge twice as much: 2⁻³⁹ for N = 8,192.
	// That is coarser than the resolution of boost's search, 2⁻⁴⁶.
	noEdge = 0x1p-39
)

// NewDiscrete prepares POEBoost.DS on d with labels y = ±1, which are copied. The error
// joins all faults of y and cfg.
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

// Train runs all remaining rounds. If ctx is cancelled, Train stops between two rounds
// and returns the cause; a later call continues with the next round.
func (b *Discrete) Train(ctx context.Context) error { return boost.Run(ctx, "poeboost", b.Round) }

// Round runs one round. It returns false if training has ended; [Discrete.Stopped] says
// why. It costs one search and some 2N exponentials, and allocates nothing.
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

// choose sets P_e, α and the left side of (6) from ε.
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
