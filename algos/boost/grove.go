package boost

import (
	"math"

	"hamlet/algos/internal/codec"
)

// A grove is a sum of binary trees of one depth, up to MaxDepth. The children of split k
// are the splits 2k+1 on the left and 2k+2 on the right. The children of the last splits
// are the leaves, from left to right. The zero grove has no trees.
type grove struct {
	depth      int
	features   []int32   // by tree, 2^depth − 1 each
	thresholds []float64 // likewise; +Inf where a node does not split: all rows go left, its feature is 0
	leaves     []float64 // by tree, 2^depth each
	room       int       // for how many trees the first add makes room
}

// MaxDepth bounds the depth of LogitTrees' trees.
const MaxDepth = 5

// len returns the number of trees.
func (g *grove) len() int { return len(g.leaves) >> g.depth }

// splits returns the number of splits of a tree.
func (g *grove) splits() int { return 1<<g.depth - 1 }

// add adds a tree: its splits in heap order, and its leaves.
func (g *grove) add(splits []Split, leaves []float64) {
	if g.leaves == nil {
		g.features, g.thresholds = make([]int32, 0, g.room*len(splits)), make([]float64, 0, g.room*len(splits))
		g.leaves = make([]float64, 0, g.room*len(leaves))
	}
	for _, s := range splits {
		if s.Feature < 0 {
			s = Split{Feature: 0, Threshold: math.Inf(1)}
		}
		g.features, g.thresholds = append(g.features, int32(s.Feature)), append(g.thresholds, s.Threshold)
	}
	g.leaves = append(g.leaves, leaves...)
}

// f returns the sum of the trees at x. A comparison is a number, as a branch would be
// unpredictable.
func (g *grove) f(x []float64) float64 {
	if g.depth == 4 {
		return sum4(x, g.features, g.thresholds, g.leaves)
	}
	sum := 0.0
	n := g.splits()
	for t, at := 0, 0; t < len(g.leaves); t, at = t+n+1, at+n {
		features, thresholds := g.features[at:at+n], g.thresholds[at:at+n]
		k := 0
		for k < n {
			k = 2*k + 1 + above(x[features[k]], thresholds[k])
		}
		sum += g.leaves[t+k-n]
	}
	return sum
}

// write appends the trees, each
//
//	of its splits: feature (int32, −1 for none) and threshold | leaves
func (g *grove) write(w *codec.Writer) {
	n := g.splits()
	for t := range g.len() {
		for k := t * n; k < (t+1)*n; k++ {
			if math.IsInf(g.thresholds[k], 1) {
				w.Uint32(math.MaxUint32)
				w.Float64(0)
				continue
			}
			w.Uint32(uint32(g.features[k]))
			w.Float64(g.thresholds[k])
		}
		w.Float64(g.leaves[t<<g.depth : (t+1)<<g.depth]...)
	}
}

// readGrove reads trees of that depth on dim inputs.
func readGrove(r *codec.Reader, trees, depth uint32, dim int) grove {
	if depth > MaxDepth || (depth == 0) != (trees == 0) {
		r.Fail("%d trees of depth %d", trees, depth)
		return grove{}
	}
	g := grove{depth: int(depth)}
	n := g.splits()
	if trees == 0 || !r.Fits(uint64(trees), 12*n+8*(n+1)) {
		return grove{}
	}
	g.features, g.thresholds = make([]int32, 0, int(trees)*n), make([]float64, 0, int(trees)*n)
	g.leaves = make([]float64, int(trees)*(n+1))
	for t := range int(trees) {
		for range n {
			feature, threshold := int32(r.Uint32()), r.Finite()
			switch {
			case feature == noFeature && math.Float64bits(threshold) == 0:
				feature, threshold = 0, math.Inf(1)
			case feature < 0 || int(feature) >= dim:
				r.Fail("a split of input %d of %d", feature, dim)
			}
			g.features, g.thresholds = append(g.features, feature), append(g.thresholds, threshold)
		}
		r.Fill(g.leaves[t*(n+1) : (t+1)*(n+1)])
	}
	return g
}
