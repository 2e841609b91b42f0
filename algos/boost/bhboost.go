package boost

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// BHBoostConfig says how to boost. Zero fields mean the defaults given.
type BHBoostConfig struct {
	Rounds    int       // 1 to MaxRounds; 0 is 50
	Weights   []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	Smoothing float64   // e > 0; 0 is 1/(N·B)
	Shrink    float64   // what scores are multiplied by, in (0, 1]; 0 is 1
}

// BHBoost boosts with real-valued scores over the bins of one feature (Lin, Liu and
// Fuh, Fast object detection with occlusions, ECCV 2004; slides, 43–53). Let p⁺ₖ
// and p⁻ₖ be the weights under D of the two classes in bin k, with total 1. A round
// takes the feature with the least Bhattacharyya coefficient BC and scores its
// bins,
//
//	BC = Σₖ √(p⁺ₖp⁻ₖ),   sₖ = ½ ln((p⁺ₖ+e)/(p⁻ₖ+e)),   D ← D e^(−yh)/Z.
//
// Without smoothing Z = 2·BC. With e > 0, scores are finite; that of an empty bin
// is 0.
//
// The slides have bins of equal width. They fail on skewed features; quantile bins do
// not. A value on an edge lies above it. A constant feature has one bin, and so the
// largest BC possible.
type BHBoost struct {
	Booster[BHBoostRound]
	columns   *binned
	edges     [][]float64
	smoothing float64
	shrink    float64
	pairs     []pairs
	scores    []float64 // of all rounds; a Profile's Scores are a slice of it
}

// A BHBoostRound is what one round found.
type BHBoostRound struct {
	Profile    Profile // its scores shrunk
	BC         float64 // the Bhattacharyya coefficient Σ√(p⁺p⁻)
	Z          float64 // the normaliser Σ Dᵢ e^(−yᵢh(xᵢ))
	TrainError float64 // of f so far, by sample weight; f = 0 counts as −1
	Bound      float64 // ∏Z so far: the mean of e^(−yf), which is never below TrainError
}

func (r BHBoostRound) addTo(e *Ensemble) { e.profiles = append(e.profiles, r.Profile) }

// NewBHBoost prepares boosting with the bins of d, which must be quantised. It copies
// the labels y = ±1. The error joins all that is wrong with d, y and cfg.
func NewBHBoost(d *Data, y []float64, cfg BHBoostConfig) (*BHBoost, error) {
	if !d.Quantised() {
		return nil, errors.New("boost: quantile bins need quantised data")
	}
	edges := make([][]float64, d.dim)
	for j := range edges {
		edges[j] = edgesAbove(d.Cuts(j))
	}
	return newBHBoost(d, y, cfg, d.binned, edges)
}

// NewBHBoostOver is NewBHBoost with other bins, over any data. edges has the inner
// edges of each feature, ascending, fewer than MaxBins.
func NewBHBoostOver(d *Data, y []float64, edges [][]float64, cfg BHBoostConfig) (*BHBoost, error) {
	columns := newBinned(d.rows, d.dim)
	for j := range d.dim {
		var size [MaxBins + 1]int
		into := columns.column(j)
		for i, v := range d.Column(j) {
			into[i] = byte(binOf(edges[j], v))
			size[into[i]]++
		}
		most := slices.Max(size[:])
		columns.place(j, slices.Index(size[:], most), most, int(slices.Max(into))+1)
	}
	return newBHBoost(d, y, cfg, columns, edges)
}

// newBHBoost prepares boosting with the columns and their inner edges.
func newBHBoost(d *Data, y []float64, cfg BHBoostConfig, columns *binned, edges [][]float64) (*BHBoost, error) {
	widest := 1
	for _, e := range edges {
		widest = max(widest, len(e)+1)
	}
	smoothing := cmp.Or(cfg.Smoothing, 1/(float64(d.rows)*float64(widest)))
	base, baseErr := newBooster[BHBoostRound](d, y, cfg.Weights, cfg.Rounds)
	_, shrink, shrinkErr := leafRange(0, cfg.Shrink, math.MaxFloat64, 1)
	if err := errors.Join(baseErr, checkSmoothing(smoothing), shrinkErr); err != nil {
		return nil, err
	}
	b := &BHBoost{
		Booster: base, columns: columns, edges: edges, smoothing: smoothing, shrink: shrink,
		pairs: make([]pairs, d.dim), scores: make([]float64, 0, base.logSize()*widest),
	}
	b.step = b.round
	return b, nil
}

// edgesAbove returns the smallest number above each cut: x > cut is x ≥ edge.
func edgesAbove(cuts []float64) []float64 {
	edges := make([]float64, len(cuts))
	for k, c := range cuts {
		edges[k] = math.Nextafter(c, math.Inf(1))
	}
	return edges
}

func (b *BHBoost) round() bool {
	Fix(b.signed, b.dist, b.y)
	b.columns.pairsTo(b.pairs, b.signed, nil)
	p, n := bySign(b.signed)
	slack := float64(tieIn(p - n))
	feature, least := 0, math.Inf(1)
	for j := range b.pairs {
		if len(b.edges[j]) == 0 && b.columns == b.data.binned {
			b.pairs[j] = pairs{p, n} // pairsTo skips constant columns
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
	var w partition
	b.divide(&w, bins)
	edges := b.edges[feature]
	at := len(b.scores)
	bc := 0.0
	for k := range len(edges) + 1 {
		bc += math.Sqrt(w[k][0] * w[k][1])
		b.scores = append(b.scores, float64(b.shrink*w.score(k, b.smoothing)))
	}
	scores := b.scores[at:len(b.scores):len(b.scores)]
	z := b.add(bins, scores)
	b.log = append(b.log, BHBoostRound{
		Profile: Profile{Feature: feature, Edges: edges, Scores: scores},
		BC:      bc, Z: z, TrainError: b.trainError(), Bound: b.bound,
	})
	return true
}

// A Profile is a weak hypothesis over bins of one feature: h(x) = Scores[k], where
// k is the number of edges ≤ x_feature. A NaN falls into the first bin.
type Profile struct {
	Feature int
	Edges   []float64 // inner edges, not descending
	Scores  []float64 // one more than edges
}

// Value returns h(x).
func (p *Profile) Value(x []float64) float64 { return p.Scores[binOf(p.Edges, x[p.Feature])] }

// binOf returns how many edges are ≤ v.
func binOf(edges []float64, v float64) int {
	lo, hi := 0, len(edges)
	for lo < hi {
		mid := (lo + hi) / 2
		if v >= edges[mid] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
