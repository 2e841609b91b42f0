package boost

import (
	"cmp"
	"errors"

	"hamlet/algos/internal/logistic"
)

// LogitTreesConfig says how to boost. Zero fields mean the defaults, those of the
// live ensemble.
type LogitTreesConfig struct {
	Rounds  int       // 1 to MaxRounds; 0 is N/10, at least 1 and at most 100
	Weights []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	Depth   int       // of the trees: 1 or, over quantised data, 2; 0 is 2 over quantised data, else 1
	Clip    float64   // leaves lie in ±Clip; 0 is 2
	Shrink  float64   // what a tree's leaves are multiplied by, in (0, 1]; 0 is 0.3
}

// LogitTrees lowers the logistic cost C(z) = ln(1+e^(−2z)) of the margins z = yf by trees
// with real-valued leaves. With p = σ(2f) and y₊ = (1+y)/2, a round grows a tree
// by Σ√(W⁺W⁻) under D ∝ −ωC′ ∝ ω·|y₊−p| and gives each leaf one damped Newton step,
//
//	shrink · clip(G/(H+1)),   G = Σ ω(y₊−p),   H = Σ ω·2p(1−p)
//
// over its rows: G = −½ΣωyC′ and H = ½ΣωC″ (Friedman, Hastie and Tibshirani,
// Additive logistic regression, Annals of Statistics 28, 2000, section 4). The 1 is
// a Gaussian prior on the leaf. Depth 2 improves results only with such leaves and
// shrinkage.
type LogitTrees struct {
	Booster[LogitTreesRound]
	search *treeSearch
	clip   float64
	shrink float64
	slope  []float64 // ω·|y₊−p|
}

// A LogitTreesRound is what one round found.
type LogitTreesRound struct {
	Tree       Tree    // its leaves clipped and shrunk
	TrainError float64 // of f so far, by sample weight; f = 0 counts as −1
}

func (r LogitTreesRound) addTo(e *Ensemble) { e.trees = append(e.trees, r.Tree) }

// NewLogitTrees prepares boosting on d with labels y = ±1, which it copies. The
// error joins all that is wrong with y and cfg.
func NewLogitTrees(d *Data, y []float64, cfg LogitTreesConfig) (*LogitTrees, error) {
	depth := 1
	if d.Quantised() {
		depth = 2
	}
	base, err := newBooster[LogitTreesRound](d, y, cfg.Weights, cmp.Or(cfg.Rounds, min(max(d.rows/10, 1), 100)))
	search, depthErr := d.newTreeSearch(cmp.Or(cfg.Depth, depth))
	clip, shrink, leafErr := leafRange(cfg.Clip, cfg.Shrink, 2, 0.3)
	if err := errors.Join(err, depthErr, leafErr); err != nil {
		return nil, err
	}
	b := &LogitTrees{Booster: base, search: search, clip: clip, shrink: shrink, slope: make([]float64, d.rows)}
	b.step = b.round
	for i, ω := range b.weights {
		b.slope[i] = ω / 2
	}
	return b, nil
}

func (b *LogitTrees) round() bool {
	if Fix(b.signed, b.slope, b.y) == 0 {
		return b.end(NoDescent) // every p is the label to the last digit
	}
	t, ok := b.search.find(b.signed)
	if !ok {
		return b.end(NoCandidate)
	}
	var g, h [4]float64
	for i, leaf := range b.search.leaf {
		s := b.slope[i] // ω(1−p) of the label; p(1−p) = s/ω·(1−s/ω)
		g[leaf&3] += float64(s * b.y[i])
		if ω := b.weights[i]; ω > 0 {
			h[leaf&3] += float64(2 * s * (1 - s/ω))
		}
	}
	for k := range t.Leaves {
		from := t.rowsOf(k)
		t.Leaves[k] = float64(b.shrink * min(max(g[from]/(h[from]+1), -b.clip), b.clip))
	}

	total := 0.0
	for i, leaf := range b.search.leaf {
		f := b.f[i] + t.Leaves[leaf&3]
		b.f[i] = f
		s := float64(b.weights[i] * logistic.Sigmoid(-2*f*b.y[i]))
		b.slope[i] = s
		total += s
	}
	if total > 0 {
		for i, s := range b.slope {
			b.dist[i] = s / total
		}
	}
	b.log = append(b.log, LogitTreesRound{Tree: t, TrainError: b.trainError()})
	return true
}
