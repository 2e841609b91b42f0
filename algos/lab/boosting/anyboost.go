package boosting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// A Step says how AnyBoost chooses α.
type Step uint8

const (
	// LineStep minimises the cost along h: α is the root of its derivative.
	LineStep Step = iota
	// TheoremStep is α = −⟨∇C, h⟩/(L‖h‖²), with which the cost converges (slides,
	// 60). Since ‖h‖ = 1 and L = max|C″|, α is mean(−C′yh)/max|C″|. ExpCost has no
	// such L.
	TheoremStep
)

// AnyBoostConfig says how to boost. Zero fields mean the defaults given.
type AnyBoostConfig struct {
	Rounds  int       // the limit of rounds, 1 to boost.MaxRounds; 0 is 50
	Weights []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	Cost    Cost      // ExpCost by default
	Step    Step      // LineStep by default
}

// AnyBoost is gradient descent in the space of functions (Mason, Baxter, Bartlett
// and Frean, Boosting algorithms as gradient descent, NIPS 12, 1999; slides,
// 54–60) over stumps. It lowers C(f) = Σ ωᵢ C(yᵢf(xᵢ))/Σω. A round takes the h
// that maximises
//
//	−⟨∇C(f), h⟩ = Σ ωᵢ (−C′(yᵢfᵢ)) yᵢ h(xᵢ)/Σω,
//
// which is the stump of least weighted error under D ∝ −ωC′(yf), and adds α·h.
// With the exponential cost and line search it is AdaBoost. Departures from the slides: D
// is C′(yᵢfᵢ)/ΣC′(yⱼfⱼ), a positive distribution (59), and C(f) is the mean of C(yf) (57).
//
// Training ends before a round whose −⟨∇C, h⟩ is not positive (boost.NoDescent). The line
// search finds the root of the cost's derivative between 0 and the first of 1, 2,
// 4, … 64 where it is positive. If it is positive at none, α is 64 and training
// ends (boost.NoMinimum). C(f+αh) is convex in α for ExpCost (root in closed form) and
// LogitCost (safeguarded Newton). With TanhCost there may be several roots; bisection
// finds one. At f = 0 it has none, because sech² is even: the derivative −sech²α·⟨−∇C, h⟩
// is negative for every α. So line search with TanhCost ends after one round; use
// TheoremStep.
type AnyBoost struct {
	data    *boost.Data
	y       []float64
	weights []float64 // ω
	total   float64   // Σω
	rounds  int       // the number requested
	cost    Cost
	theorem bool // the step is TheoremStep
	search  *boost.Search
	f       []float64 // f(xᵢ) so far
	slope   []float64 // −ωC′
	scale   float64   // Σ of slope
	dist    []float64 // D, slope/scale
	signed  []int64   // −ωC′y in fixed point
	margin  []float64 // yh of the round
	log     []AnyBoostRound
	stop    boost.Stop
}

// An AnyBoostRound is what one round found.
type AnyBoostRound struct {
	Stump      boost.Stump
	Alpha      float64 // α, its weight in f, > 0
	Descent    float64 // −⟨∇C, h⟩ before it
	Cost       float64 // C(f) after it
	TrainError float64 // of f so far, by sample weight; f = 0 counts as −1
}

// longestStep is the largest α of the line search.
const longestStep = 64

const defaultRounds = 50

// NewAnyBoost prepares boosting on d with labels y = ±1, which it copies. The error
// joins all that is wrong with y and cfg.
func NewAnyBoost(d *boost.Data, y []float64, cfg AnyBoostConfig) (*AnyBoost, error) {
	rounds := cmp.Or(cfg.Rounds, defaultRounds)
	weights, total, err := d.SampleWeights(cfg.Weights)
	errs := []error{d.CheckLabels(y), err}
	if rounds < 0 || rounds > boost.MaxRounds {
		errs = append(errs, fmt.Errorf("boost: %d rounds: want 1 to %d, or 0 for %d", rounds, boost.MaxRounds, defaultRounds))
	}
	if cfg.Cost > TanhCost {
		errs = append(errs, fmt.Errorf("boost: unknown cost %d: want ExpCost, LogitCost or TanhCost", cfg.Cost))
	}
	if cfg.Step > TheoremStep {
		errs = append(errs, fmt.Errorf("boost: unknown step %d: want LineStep or TheoremStep", cfg.Step))
	}
	if cfg.Step == TheoremStep && cfg.Cost == ExpCost {
		errs = append(errs, errors.New("boost: the theorem's step needs a cost of bounded curvature: LogitCost or TanhCost"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	n := d.Rows()
	b := &AnyBoost{
		data: d, y: slices.Clone(y), weights: weights, total: total, rounds: rounds,
		cost: cfg.Cost, theorem: cfg.Step == TheoremStep, search: d.NewSearch(),
		f: make([]float64, n), slope: make([]float64, n), dist: make([]float64, n),
		signed: make([]int64, n), margin: make([]float64, n),
		log: make([]AnyBoostRound, 0, min(rounds, 1<<13)),
	}
	for i, w := range weights {
		b.dist[i] = w / total
	}
	b.descend()
	return b, nil
}

// Train runs the remaining rounds. If ctx is cancelled, it stops between two rounds
// and returns the cause. The rounds done are kept, and Train may be called again.
func (b *AnyBoost) Train(ctx context.Context) error { return boost.Run(ctx, "boost", b.Round) }

// Round runs one round. It returns false if training has ended; Stopped says why.
func (b *AnyBoost) Round() bool {
	if b.stop != boost.Running {
		return false
	}
	done := b.round()
	if b.stop == boost.Running && len(b.log) == b.rounds {
		b.stop = boost.Rounds
	}
	return done
}

// Stopped returns why training has ended, or boost.Running.
func (b *AnyBoost) Stopped() boost.Stop { return b.stop }

// Rounds returns what each round found.
func (b *AnyBoost) Rounds() []AnyBoostRound { return slices.Clone(b.log) }

// Ensemble returns f(x) = Σ αh(x) so far.
func (b *AnyBoost) Ensemble() *boost.Ensemble {
	var trees []boost.Tree
	for _, r := range b.log {
		trees = append(trees, r.Stump.Times(r.Alpha))
	}
	return boost.NewEnsemble(b.data.Dim(), trees)
}

// FTo writes f(xᵢ) of each example to dst, of length N.
func (b *AnyBoost) FTo(dst []float64) { copyTo(dst, b.f) }

// WeightsTo writes D, the distribution over the examples for the next round, to
// dst, of length N. It sums to 1.
func (b *AnyBoost) WeightsTo(dst []float64) { copyTo(dst, b.dist) }

func copyTo(dst, values []float64) {
	if len(dst) != len(values) {
		panic(fmt.Sprintf("boost: a vector of length %d for %d rows", len(dst), len(values)))
	}
	copy(dst, values)
}

// descend computes slope, scale and D from f.
func (b *AnyBoost) descend() {
	b.scale = 0
	for i, f := range b.f {
		b.slope[i] = float64(b.weights[i] * b.cost.Slope(f*b.y[i]))
		b.scale += b.slope[i]
	}
	if b.scale > 0 {
		for i, s := range b.slope {
			b.dist[i] = s / b.scale
		}
	}
}

func (b *AnyBoost) round() bool {
	if boost.Fix(b.signed, b.slope, b.y) == 0 { // the slope is 0 everywhere
		b.stop = boost.NoDescent
		return false
	}
	c, ok := b.search.Best(b.signed)
	if !ok {
		b.stop = boost.NoCandidate
		return false
	}
	h, right, wrong := b.data.MarginsTo(b.margin, c, b.y, b.slope)
	descent := (right - wrong) / b.total
	if !(descent > 0) || c.NoEdge() {
		b.stop = boost.NoDescent
		return false
	}
	var α float64
	switch {
	case b.theorem:
		α = descent / b.cost.Curvature()
	case b.cost == ExpCost:
		α, ok = expStep(right, wrong)
	default:
		α, ok = b.lineStep()
	}

	cost, errs := 0.0, 0.0
	for i, m := range b.margin {
		b.f[i] += float64(α * m * b.y[i])
		cost += float64(b.weights[i] * b.cost.Value(b.f[i]*b.y[i]))
		if (b.f[i] > 0) != (b.y[i] > 0) {
			errs += b.weights[i]
		}
	}
	b.descend()
	b.log = append(b.log, AnyBoostRound{
		Stump: h, Alpha: α, Descent: descent, Cost: cost / b.total, TrainError: errs / b.total,
	})
	if !ok {
		b.stop = boost.NoMinimum
	}
	return true
}

// expStep returns the α at which wrong·e^α = right·e^(−α), or longestStep and false
// if α would be longer.
func expStep(right, wrong float64) (float64, bool) {
	if wrong == 0 {
		return longestStep, false
	}
	α := (logistic.Log(right) - logistic.Log(wrong)) / 2
	if !(α < longestStep) {
		return longestStep, false
	}
	return α, true
}

// lineStep returns the root of the cost's derivative in α, or longestStep and false
// if the derivative is positive at none of 1, 2, 4, … longestStep.
func (b *AnyBoost) lineStep() (float64, bool) {
	hi := 1.0
	for ; ; hi *= 2 {
		if g, _ := b.along(hi); g > 0 {
			break
		}
		if hi == longestStep {
			return longestStep, false
		}
	}
	lo := 0.0
	α := hi / 2
	for range 200 {
		g, g2 := b.along(α)
		if g > 0 {
			hi = α
		} else {
			lo = α
		}
		next := lo + (hi-lo)/2
		if b.cost == LogitCost {
			// Newton's step, where it stays inside. A step of 1e−10 leaves an error
			// of its square.
			step := g / g2
			if newton := α - step; newton > lo && newton < hi {
				if math.Abs(step) <= 1e-10*α {
					return newton, true
				}
				next = newton
			}
		}
		if next <= lo || next >= hi {
			break // no float64 between lo and hi
		}
		α = next
	}
	return α, true
}

// along returns the first and second derivative of C(f+αh) in α; g2 is set only for
// LogitCost.
func (b *AnyBoost) along(α float64) (g, g2 float64) {
	if b.cost == LogitCost {
		for i, m := range b.margin {
			s := logistic.Sigmoid(-2 * (float64(b.f[i]*b.y[i]) + float64(α*m)))
			g -= float64(float64(b.weights[i]*2*s) * m)
			g2 += float64(b.weights[i] * 4 * s * (1 - s))
		}
		return g, g2
	}
	for i, m := range b.margin {
		s := b.cost.Slope(float64(b.f[i]*b.y[i]) + float64(α*m))
		g -= float64(float64(b.weights[i]*s) * m)
	}
	return g, 0
}

// A Cost is a function C of the margin z = yf(x); AnyBoost lowers its mean. All
// fall with z, so −C′ > 0 and the weights D ∝ −C′ are positive.
type Cost uint8

const (
	ExpCost   Cost = iota // C = e^(−z): AdaBoost's
	LogitCost             // C = ln(1+e^(−2z)): the negative log likelihood of P = 1/(1+e^(−2f))
	TanhCost              // C = 1−tanh z: bounded, so examples with very negative margins lose weight
)

// String returns "exp", "logit" or "tanh".
func (c Cost) String() string {
	if c > TanhCost {
		return fmt.Sprintf("Cost(%d)", uint8(c))
	}
	return [...]string{"exp", "logit", "tanh"}[c]
}

// Value returns C(z). For ExpCost it is +Inf from z = −709.8 on.
func (c Cost) Value(z float64) float64 {
	switch c {
	case LogitCost:
		return -logistic.LogSigmoid(2 * z)
	case TanhCost:
		return 2 * logistic.Sigmoid(-2*z) // 1 − tanh z, without cancellation
	}
	return logistic.Exp(-z)
}

// Slope returns −C′(z), which is positive until it underflows to 0.
func (c Cost) Slope(z float64) float64 {
	switch c {
	case LogitCost:
		return 2 * logistic.Sigmoid(-2*z)
	case TanhCost: // sech²z = (1 − tanh z)(1 + tanh z)
		s := logistic.Sigmoid(-2 * math.Abs(z))
		return 4 * s * (1 - s)
	}
	return logistic.Exp(-z)
}

// Curvature returns max|C″|, the Lipschitz constant of C′. It is 1 for LogitCost,
// where C″ = 4σ(2z)σ(−2z). It is 4/√27 for TanhCost, where C″ = 2 tanh z·sech²z is
// greatest at tanh z = 1/√3. It is +Inf for ExpCost.
func (c Cost) Curvature() float64 {
	switch c {
	case LogitCost:
		return 1
	case TanhCost:
		return 0.76980035891950101
	}
	return math.Inf(1)
}
