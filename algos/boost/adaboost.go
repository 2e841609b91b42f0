package boost

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// AdaBoostConfig says how to boost. Zero fields mean the defaults given.
type AdaBoostConfig struct {
	Rounds  int       // the limit of rounds, 1 to MaxRounds; 0 is 50
	Weights []float64 // ω, a sample weight for each row, not negative; nil is 1 each
}

// AdaBoost is the algorithm of Freund and Schapire (slides, 7) over stumps. From
// D₁ ∝ ω, a round takes the stump h of least weighted error and
//
//	ε = Σ Dᵢ [h(xᵢ) ≠ yᵢ],   α = ½ ln((1−ε)/ε),
//	Dᵢ ← Dᵢ e^(−α yᵢ h(xᵢ))/Z,   Z = Σ Dᵢ e^(−α yᵢ h(xᵢ)).
//
// Training ends before a round with ε ≥ ½ to within 1e−14 (NoEdge). It ends after
// one with ε ≤ 1e−10 (Separated); α then uses 1e−10, because ε = 0 would make α
// infinite.
type AdaBoost struct {
	Booster[AdaBoostRound]
	search *Search
	margin []float64 // yh of the round
	gamma2 float64   // Σγ²
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

func (r AdaBoostRound) addTo(e *Ensemble) { e.trees = append(e.trees, r.Stump.Times(r.Alpha)) }

// separated is the largest ε of a hypothesis that counts as perfect.
const separated = 1e-10

// NewAdaBoost prepares boosting on d with labels y = ±1, which it copies. The error
// joins all that is wrong with y and cfg.
func NewAdaBoost(d *Data, y []float64, cfg AdaBoostConfig) (*AdaBoost, error) {
	base, err := newBooster[AdaBoostRound](d, y, cfg.Weights, cfg.Rounds)
	if err != nil {
		return nil, err
	}
	b := &AdaBoost{Booster: base, search: d.NewSearch(), margin: make([]float64, d.rows)}
	b.step = b.round
	return b, nil
}

func (b *AdaBoost) round() bool {
	Fix(b.signed, b.dist, b.y)
	c, ok := b.search.Best(b.signed)
	if !ok {
		return b.end(NoCandidate)
	}
	h, right, wrong := b.data.MarginsTo(b.margin, c, b.y, b.dist)
	if wrong >= 0.5 || c.NoEdge() {
		return b.end(NoEdge)
	}
	α := -logistic.Logit(max(wrong, separated)) / 2
	up := logistic.Exp(α)
	down := 1 / up
	z := float64(right*down) + float64(wrong*up)
	factor := [2]float64{down / z, up / z}
	for i, m := range b.margin {
		b.dist[i] *= factor[math.Float64bits(m)>>63]
		b.f[i] += float64(α * (m * b.y[i]))
	}

	γ := 0.5 - wrong
	b.gamma2 += float64(γ * γ)
	b.bound *= z
	b.log = append(b.log, AdaBoostRound{
		Stump: h, Epsilon: wrong, Alpha: α, Z: z,
		TrainError: b.trainError(), Bound: b.bound, GammaBound: logistic.Exp(-2 * b.gamma2),
	})
	if wrong <= separated {
		b.stop = Separated
	}
	return true
}
