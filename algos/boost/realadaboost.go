package boost

import (
	"cmp"
	"errors"
	"math"
)

// RealAdaBoostConfig says how to boost. Zero fields mean the defaults given.
type RealAdaBoostConfig struct {
	Rounds    int       // 1 to MaxRounds; 0 is 50
	Weights   []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	Smoothing float64   // s > 0; 0 is 1/N
	Depth     int       // of the trees: 1 or, over quantised data, 2; 0 is 1
	Clip      float64   // leaves lie in ±Clip; 0 is no limit
	Shrink    float64   // what a tree's leaves are multiplied by, in (0, 1]; 0 is 1
}

// RealAdaBoost is Schapire and Singer's algorithm (Improved boosting algorithms
// using confidence-rated predictions, Machine Learning 37, 1999, section 4) over
// hypotheses that partition the domain. W± are the weights under D of the classes
// in a part. From D₁ ∝ ω, a round takes the partition with the least Σ√(W⁺W⁻),
// gives each part the value
//
//	½ ln((W⁺+s)/(W⁻+s)),
//
// and multiplies D by e^(−yh)/Z. Without smoothing Z is 2Σ√(W⁺W⁻), the least
// possible with these parts. At depth 2 the partition is greedy: the root is split
// by that rule, then each child.
// Rounds continue after the classes are separated, since smoothing keeps values
// finite. Training ends early only if every feature is constant.
type RealAdaBoost struct {
	Booster[RealAdaBoostRound]
	search    *treeSearch
	smoothing float64
	clip      float64
	shrink    float64
}

// A RealAdaBoostRound is what one round found.
type RealAdaBoostRound struct {
	Tree       Tree    // its leaves clipped and shrunk; at depth 1 Leaves[0] is the left and Leaves[3] the right
	Z          float64 // the normaliser Σ Dᵢ e^(−yᵢh(xᵢ))
	TrainError float64 // of f so far, by sample weight; f = 0 counts as −1
	Bound      float64 // ∏Z so far: the mean of e^(−yf), which is never below TrainError
}

func (r RealAdaBoostRound) addTo(e *Ensemble) { e.trees = append(e.trees, r.Tree) }

// NewRealAdaBoost prepares boosting on d with labels y = ±1, which it copies. The
// error joins all that is wrong with y and cfg.
func NewRealAdaBoost(d *Data, y []float64, cfg RealAdaBoostConfig) (*RealAdaBoost, error) {
	smoothing := cmp.Or(cfg.Smoothing, 1/float64(d.rows))
	base, err := newBooster[RealAdaBoostRound](d, y, cfg.Weights, cfg.Rounds)
	search, depthErr := d.newTreeSearch(cmp.Or(cfg.Depth, 1))
	clip, shrink, leafErr := leafRange(cfg.Clip, cfg.Shrink, math.MaxFloat64, 1)
	if err := errors.Join(err, depthErr, checkSmoothing(smoothing), leafErr); err != nil {
		return nil, err
	}
	b := &RealAdaBoost{Booster: base, search: search, smoothing: smoothing, clip: clip, shrink: shrink}
	b.step = b.round
	return b, nil
}

func (b *RealAdaBoost) round() bool {
	Fix(b.signed, b.dist, b.y)
	t, ok := b.search.find(b.signed)
	if !ok {
		return b.end(NoCandidate)
	}
	var w partition
	b.divide(&w, b.search.leaf)
	for k := range t.Leaves {
		v := w.score(t.rowsOf(k), b.smoothing)
		t.Leaves[k] = float64(b.shrink * min(max(v, -b.clip), b.clip))
	}
	z := b.add(b.search.leaf, t.Leaves[:])
	b.log = append(b.log, RealAdaBoostRound{Tree: t, Z: z, TrainError: b.trainError(), Bound: b.bound})
	return true
}
