package boost

import (
	"context"
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
)

// AdaBoostConfig says how to boost. Zero fields mean the defaults given.
type AdaBoostConfig struct {
	Rounds  int       // at most so many, 1 to MaxRounds; 0 is 50
	Weights []float64 // ω, a sample weight for each row, not negative; nil is 1 each
}

// AdaBoost is the algorithm of Freund and Schapire (slides, 7) over stumps. From
// D₁ ∝ ω, a round takes the stump h of least weighted error and
//
//	ε = Σ Dᵢ [h(xᵢ) ≠ yᵢ],   α = ½ ln((1−ε)/ε),
//	Dᵢ ← Dᵢ e^(−α yᵢ h(xᵢ))/Z,   Z = Σ Dᵢ e^(−α yᵢ h(xᵢ)).
//
// It ends before a round with ε ≥ ½ to within 1e−14 (NoEdge) and after one with
// ε ≤ 1e−10, which counts as 1e−10 in α (Separated): ε = 0 would make α infinite.
type AdaBoost struct {
	sample
	search *Search
	signs  []float64
	log    []AdaBoostRound
	gamma2 float64 // Σγ²
}

// An AdaBoostRound is what one round found.
type AdaBoostRound struct {
	Stump   Stump
	Epsilon float64 // ε, its weighted error
	Alpha   float64 // α, its weight in f, > 0
	Z       float64 // the normaliser; 2√(ε(1−ε)) unless ε was clipped

	TrainError float64 // of f so far, by sample weight; f = 0 counts as −1
	Bound      float64 // ∏Z so far: the mean of e^(−yf), which is never below TrainError
	GammaBound float64 // exp(−2Σγ²), γ = ½−ε; never below ∏ 2√(ε(1−ε))
}

// separated is the ε from which on a hypothesis counts as perfect.
const separated = 1e-10

// NewAdaBoost prepares boosting on d with labels y = ±1, which are copied. The
// error joins everything that is wrong with them and cfg.
func NewAdaBoost(d *Data, y []float64, cfg AdaBoostConfig) (*AdaBoost, error) {
	s, err := newSample(d, y, cfg.Weights, cfg.Rounds)
	if err != nil {
		return nil, err
	}
	return &AdaBoost{
		sample: s,
		search: d.NewSearch(),
		signs:  make([]float64, d.rows),
		log:    make([]AdaBoostRound, 0, s.logSize()),
	}, nil
}

// Train runs all rounds that are left. If ctx is cancelled it returns its cause
// between two rounds; what has been learnt stays, and Train may be called again.
func (b *AdaBoost) Train(ctx context.Context) error { return train(ctx, b.Round) }

// Round runs one round and reports whether it did; otherwise Stopped says why
// not. It allocates nothing.
func (b *AdaBoost) Round() bool {
	if b.finished() {
		return false
	}
	Fix(b.signed, b.dist, b.y)
	c, ok := b.search.Best(b.signed)
	if !ok {
		b.stop = NoCandidate
		return false
	}
	h := b.data.Stump(c)
	b.data.SignsTo(b.signs, c)
	// Whether a row is right is as good as random to the processor; the sums of
	// products with 0 and 1 are the same and have no branch to mispredict.
	right, wrong := 0.0, 0.0
	for i, v := range b.signs {
		v *= float64(h.Polarity)
		b.signs[i] = v
		is := (1 + float64(v*b.y[i])) / 2
		right += float64(b.dist[i] * is)
		wrong += float64(b.dist[i] * (1 - is))
	}
	if wrong >= 0.5 || max(c.Edge, -c.Edge) <= noEdge {
		b.stop = NoEdge
		return false
	}
	α := -logistic.Logit(max(wrong, separated)) / 2
	up := logistic.Exp(α)
	down := 1 / up
	z := float64(right*down) + float64(wrong*up)
	factor := [2]float64{down / z, up / z}
	for i, v := range b.signs {
		b.dist[i] *= factor[math.Float64bits(v*b.y[i])>>63]
		b.f[i] += float64(α * v)
	}

	γ := 0.5 - wrong
	b.gamma2 += float64(γ * γ)
	bound := z
	if b.done > 0 {
		bound *= b.log[b.done-1].Bound
	}
	b.log = append(b.log, AdaBoostRound{
		Stump: h, Epsilon: wrong, Alpha: α, Z: z,
		TrainError: b.trainError(), Bound: bound, GammaBound: logistic.Exp(-2 * b.gamma2),
	})
	b.done++
	if wrong <= separated {
		b.stop = Separated
	} else {
		b.finished()
	}
	return true
}

// Rounds returns what each round found.
func (b *AdaBoost) Rounds() []AdaBoostRound { return slices.Clone(b.log) }

// Ensemble returns f(x) = Σ α h(x) so far.
func (b *AdaBoost) Ensemble() *Ensemble {
	e := newEnsemble(b.data.dim, len(b.log))
	for _, r := range b.log {
		e.trees = append(e.trees, r.Stump.times(r.Alpha))
	}
	return e
}
