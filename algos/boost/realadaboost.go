package boost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
)

// RealAdaBoostConfig says how to boost. Zero fields mean the defaults given.
type RealAdaBoostConfig struct {
	Rounds    int       // 1 to MaxRounds; 0 is 50
	Weights   []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	Smoothing float64   // s > 0; 0 is 1/N
	Depth     int       // of the trees: 1 or, over quantised data, 2; 0 is 1
	Clip      float64   // leaves are cut off at ±Clip; 0 is no limit
	Shrink    float64   // what a tree's leaves are multiplied by, in (0, 1]; 0 is 1
}

// RealAdaBoost is Schapire and Singer's algorithm (Improved boosting algorithms
// using confidence-rated predictions, Machine Learning 37, 1999, section 4) over
// hypotheses that partition the domain. From D₁ ∝ ω, a round takes the partition
// with the least Σ√(W⁺W⁻) over its parts, W± the weight of each class in a part
// under D, gives each part the value
//
//	½ ln((W⁺+s)/(W⁻+s)),
//
// and multiplies D by e^(−yh)/Z. Without smoothing Z would be 2Σ√(W⁺W⁻), the least
// that values on these parts can reach. With depth 2 the partition is grown
// greedily: the root's split by that rule, then each child's.
//
// Rounds go on after the classes are separated, since smoothing keeps the values
// finite; training ends early only where every feature is constant.
type RealAdaBoost struct {
	sample
	search    *treeSearch
	smoothing float64
	clip      float64
	shrink    float64
	log       []RealAdaBoostRound
}

// A RealAdaBoostRound is what one round found.
type RealAdaBoostRound struct {
	Tree       Tree    // its leaves clipped and shrunk; at depth 1 Leaves[0] is the left and Leaves[3] the right
	Z          float64 // the normaliser Σ Dᵢ e^(−yᵢh(xᵢ))
	TrainError float64 // of f so far, by sample weight; f = 0 counts as −1
	Bound      float64 // ∏Z so far: the mean of e^(−yf), which is never below TrainError
}

// NewRealAdaBoost prepares boosting on d with labels y = ±1, which are copied.
// The error joins everything that is wrong with them and cfg.
func NewRealAdaBoost(d *Data, y []float64, cfg RealAdaBoostConfig) (*RealAdaBoost, error) {
	s, err := newSample(d, y, cfg.Weights, cfg.Rounds)
	if cfg.Smoothing == 0 {
		cfg.Smoothing = 1 / float64(d.rows)
	}
	if cfg.Depth == 0 {
		cfg.Depth = 1
	}
	search, depthErr := d.newTreeSearch(cfg.Depth)
	errs := []error{err, depthErr}
	if !(cfg.Smoothing > 0 && cfg.Smoothing <= math.MaxFloat64) {
		errs = append(errs, fmt.Errorf("boost: smoothing %v: want a positive number", cfg.Smoothing))
	}
	clip, shrink, err := leafRange(cfg.Clip, cfg.Shrink, math.MaxFloat64, 1)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return &RealAdaBoost{
		sample: s, search: search,
		smoothing: cfg.Smoothing, clip: clip, shrink: shrink,
		log: make([]RealAdaBoostRound, 0, s.logSize()),
	}, nil
}

// leafRange checks how leaves are clipped and shrunk; zeros are the defaults.
func leafRange(clip, shrink, defaultClip, defaultShrink float64) (float64, float64, error) {
	var errs []error
	if clip == 0 {
		clip = defaultClip
	}
	if shrink == 0 {
		shrink = defaultShrink
	}
	if !(clip > 0) {
		errs = append(errs, fmt.Errorf("boost: leaves clipped at ±%v: want a positive number", clip))
	}
	if !(shrink > 0 && shrink <= 1) {
		errs = append(errs, fmt.Errorf("boost: leaves shrunk by %v: want a number in (0, 1]", shrink))
	}
	return clip, shrink, errors.Join(errs...)
}

// Train runs all rounds that are left. If ctx is cancelled it returns its cause
// between two rounds; what has been learnt stays, and Train may be called again.
func (b *RealAdaBoost) Train(ctx context.Context) error { return train(ctx, b.Round) }

// Round runs one round and reports whether it did; otherwise Stopped says why
// not. It allocates nothing.
func (b *RealAdaBoost) Round() bool {
	if b.finished() {
		return false
	}
	Fix(b.signed, b.dist, b.y)
	t, ok := b.search.find(b.signed)
	if !ok {
		b.stop = NoCandidate
		return false
	}
	var w [4][2]float64 // W⁻, W⁺ of each leaf
	for i, leaf := range b.search.leaf {
		w[leaf&3][class(b.y[i])] += b.dist[i]
	}
	if t.Children[0].Feature < 0 {
		w[1] = w[0] // leaf 1 has no rows; it takes leaf 0's value
	}
	if t.Children[1].Feature < 0 {
		w[3] = w[2]
	}
	var factor [4][2]float64
	for k := range t.Leaves {
		v := logistic.Log((w[k][1]+b.smoothing)/(w[k][0]+b.smoothing)) / 2
		v = float64(b.shrink * min(max(v, -b.clip), b.clip))
		t.Leaves[k] = v
		factor[k] = [2]float64{logistic.Exp(v), logistic.Exp(-v)}
	}
	z := 0.0
	for i, leaf := range b.search.leaf {
		d := float64(b.dist[i] * factor[leaf&3][class(b.y[i])])
		b.dist[i] = d
		z += d
		b.f[i] += t.Leaves[leaf&3]
	}
	for i := range b.dist {
		b.dist[i] /= z
	}
	bound := z
	if b.done > 0 {
		bound *= b.log[b.done-1].Bound
	}
	b.log = append(b.log, RealAdaBoostRound{Tree: t, Z: z, TrainError: b.trainError(), Bound: bound})
	b.done++
	b.finished()
	return true
}

// class returns 1 for y = +1 and 0 for −1.
func class(y float64) int {
	if y > 0 {
		return 1
	}
	return 0
}

// Rounds returns what each round found.
func (b *RealAdaBoost) Rounds() []RealAdaBoostRound { return slices.Clone(b.log) }

// Ensemble returns f(x) = Σ h(x) so far.
func (b *RealAdaBoost) Ensemble() *Ensemble {
	e := newEnsemble(b.data.dim, len(b.log))
	for _, r := range b.log {
		e.trees = append(e.trees, r.Tree)
	}
	return e
}
