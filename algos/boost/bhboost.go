package boost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
)

// BHBoostConfig says how to boost. Zero fields mean the defaults given.
type BHBoostConfig struct {
	Rounds    int       // 1 to MaxRounds; 0 is 50
	Weights   []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	Bins      int       // B, bins of equal width per feature, 1 to MaxBins; 0 is 16
	Quantiles bool      // use the bins of the data, which must be quantised, instead; Bins is then 0
	Smoothing float64   // e > 0; 0 is 1/(N·B)
	Shrink    float64   // what scores are multiplied by, in (0, 1]; 0 is 1
}

// BHBoost boosts with real-valued scores over the bins of one feature (Lin, Liu
// and Fuh, Fast object detection with occlusions, ECCV 2004; slides, 43–53; the
// features are the projections). With p⁺ₖ and p⁻ₖ the weights under D of the two
// classes in bin k, together 1, a round takes the feature with the least
// Bhattacharyya coefficient and scores its bins,
//
//	BC = Σₖ √(p⁺ₖp⁻ₖ),   sₖ = ½ ln((p⁺ₖ+e)/(p⁻ₖ+e)),   D ← D e^(−yh)/Z.
//
// Without smoothing Z = 2·BC; e keeps the score of a bin that lacks a class
// finite, and makes that of an empty bin 0. (The slides write 1/α before the
// logarithm; there is no α, it is 1. Their Z has a product for the sum of the two
// terms.)
//
// Bins of equal width are the slides': edges min + (max−min)·k/B, a value on one
// lies above it. They fail on skewed features; quantile bins do not. A constant
// feature lies in one bin and takes part: it has the largest BC there is.
type BHBoost struct {
	sample
	columns   *binned
	edges     [][]float64
	smoothing float64
	shrink    float64
	pairs     []pairs
	log       []BHBoostRound
	scores    []float64 // of all rounds; a round's Profile has a part of it
}

// A BHBoostRound is what one round found.
type BHBoostRound struct {
	Profile    Profile // its scores shrunk
	BC         float64 // the Bhattacharyya coefficient Σ√(p⁺p⁻)
	Z          float64 // the normaliser Σ Dᵢ e^(−yᵢh(xᵢ))
	TrainError float64 // of f so far, by sample weight; f = 0 counts as −1
	Bound      float64 // ∏Z so far: the mean of e^(−yf), which is never below TrainError
}

const defaultWidths = 16

// NewBHBoost prepares boosting on d with labels y = ±1, which are copied. The
// error joins everything that is wrong with them and cfg.
func NewBHBoost(d *Data, y []float64, cfg BHBoostConfig) (*BHBoost, error) {
	s, err := newSample(d, y, cfg.Weights, cfg.Rounds)
	errs := []error{err}
	switch {
	case cfg.Quantiles && !d.Quantised():
		errs = append(errs, errors.New("boost: quantile bins need quantised data"))
	case cfg.Quantiles && cfg.Bins != 0:
		errs = append(errs, fmt.Errorf("boost: %d bins: the data's quantile bins are used", cfg.Bins))
	case cfg.Bins < 0 || cfg.Bins > MaxBins:
		errs = append(errs, fmt.Errorf("boost: %d bins: want 1 to %d, or 0 for %d", cfg.Bins, MaxBins, defaultWidths))
	}
	if cfg.Smoothing != 0 && !(cfg.Smoothing > 0 && cfg.Smoothing <= math.MaxFloat64) {
		errs = append(errs, fmt.Errorf("boost: smoothing %v: want a positive number", cfg.Smoothing))
	}
	_, shrink, err := leafRange(0, cfg.Shrink, math.MaxFloat64, 1)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}

	b := &BHBoost{sample: s, shrink: shrink, smoothing: cfg.Smoothing, edges: make([][]float64, d.dim)}
	widest := 1
	if cfg.Quantiles {
		b.columns = d.binned
		for j := range b.edges {
			b.edges[j] = edgesAbove(d.Cuts(j))
			widest = max(widest, len(b.edges[j])+1)
		}
	} else {
		if cfg.Bins == 0 {
			cfg.Bins = defaultWidths
		}
		widest = cfg.Bins
		b.columns = d.equalWidths(b.edges, cfg.Bins)
	}
	if b.smoothing == 0 {
		b.smoothing = 1 / (float64(d.rows) * float64(widest))
	}
	b.pairs = make([]pairs, d.dim)
	b.log = make([]BHBoostRound, 0, s.logSize())
	b.scores = make([]float64, 0, s.logSize()*widest)
	return b, nil
}

// edgesAbove returns the smallest numbers above each cut: x > cut is x ≥ edge.
func edgesAbove(cuts []float64) []float64 {
	edges := make([]float64, len(cuts))
	for k, c := range cuts {
		edges[k] = math.Nextafter(c, math.Inf(1))
	}
	return edges
}

// equalWidths divides every feature into n bins of equal width, whose inner edges
// it writes to edges.
func (d *Data) equalWidths(edges [][]float64, n int) *binned {
	bins := make([]byte, len(d.columns))
	for j := range d.dim {
		column := d.Column(j)
		lo, hi := slices.Min(column), slices.Max(column)
		edges[j] = make([]float64, n-1)
		for k := range edges[j] {
			at := float64(k + 1)
			edge := lo + float64((hi-lo)*at)/float64(n)
			if !(math.Abs(edge) <= math.MaxFloat64) { // hi−lo or its product overflows
				share := at / float64(n)
				edge = float64(lo*(1-share)) + float64(hi*share)
			}
			edges[j][k] = edge
		}
		into := bins[j*d.rows : (j+1)*d.rows]
		for i, v := range column {
			into[i] = byte(binOf(edges[j], v))
		}
	}
	return newBinned(d.rows, bins, func(int) bool { return false })
}

// Train runs all rounds that are left. If ctx is cancelled it returns its cause
// between two rounds; what has been learnt stays, and Train may be called again.
func (b *BHBoost) Train(ctx context.Context) error { return train(ctx, b.Round) }

// Round runs one round and reports whether it did; otherwise all are done. It
// allocates nothing.
func (b *BHBoost) Round() bool {
	if b.finished() {
		return false
	}
	Fix(b.signed, b.dist, b.y)
	b.columns.pairsTo(b.pairs, b.signed)
	p, n := bySign(b.signed)
	slack := float64(tieIn(p - n))
	feature, least := 0, math.Inf(1)
	for j := range b.pairs {
		if len(b.edges[j]) == 0 && b.columns == b.data.binned {
			b.pairs[j] = pairs{p, n} // a constant column, which is not summed
		}
		bc := 0.0
		for k := range len(b.edges[j]) + 1 {
			bc += root2(b.pairs[j][2*k], b.pairs[j][2*k+1])
		}
		if bc < least-slack {
			feature, least = j, bc
		}
	}

	bins := b.columns.column(feature)
	var w [MaxBins + 1][2]float64 // p⁻, p⁺ of each bin
	for i, bin := range bins {
		w[bin][class(b.y[i])] += b.dist[i]
	}
	edges := b.edges[feature]
	at := len(b.scores)
	bc := 0.0
	var factor [MaxBins + 1][2]float64
	for k := range len(edges) + 1 {
		bc += math.Sqrt(w[k][0] * w[k][1])
		s := float64(b.shrink * logistic.Log((w[k][1]+b.smoothing)/(w[k][0]+b.smoothing)) / 2)
		b.scores = append(b.scores, s)
		factor[k] = [2]float64{logistic.Exp(s), logistic.Exp(-s)}
	}
	scores := b.scores[at:len(b.scores):len(b.scores)]
	z := 0.0
	for i, bin := range bins {
		d := float64(b.dist[i] * factor[bin][class(b.y[i])])
		b.dist[i] = d
		z += d
		b.f[i] += scores[bin]
	}
	for i := range b.dist {
		b.dist[i] /= z
	}
	bound := z
	if b.done > 0 {
		bound *= b.log[b.done-1].Bound
	}
	b.log = append(b.log, BHBoostRound{
		Profile: Profile{Feature: feature, Edges: edges, Scores: scores},
		BC:      bc, Z: z, TrainError: b.trainError(), Bound: bound,
	})
	b.done++
	b.finished()
	return true
}

// Rounds returns what each round found.
func (b *BHBoost) Rounds() []BHBoostRound {
	rounds := slices.Clone(b.log)
	for k := range rounds {
		rounds[k].Profile = rounds[k].Profile.clone()
	}
	return rounds
}

// Ensemble returns f(x) = Σ h(x) so far.
func (b *BHBoost) Ensemble() *Ensemble {
	e := newEnsemble(b.data.dim, 0)
	for _, r := range b.log {
		e.profiles = append(e.profiles, r.Profile.clone())
	}
	return e
}
