package boost

// noFeature is the Feature of a node that does not divide.
const noFeature = -1

// A Split divides inputs into those with x_feature ≤ threshold, on the left, and
// those above it. A NaN goes left.
type Split struct {
	Feature   int // −1: the node does not divide; all inputs go left
	Threshold float64
}

func (s Split) above(x []float64) int {
	if s.Feature >= 0 && x[s.Feature] > s.Threshold {
		return 1
	}
	return 0
}

// A Tree is a weak hypothesis with real values: a root, its two children, and four
// leaves, the left child's first. At depth 1 the children do not divide; the two
// leaves of such a child are equal.
type Tree struct {
	Root     Split
	Children [2]Split
	Leaves   [4]float64
}

// stub returns a tree of depth 1.
func stub(feature int, threshold, left, right float64) Tree {
	end := Split{Feature: noFeature}
	return Tree{
		Root:     Split{Feature: feature, Threshold: threshold},
		Children: [2]Split{end, end},
		Leaves:   [4]float64{left, left, right, right},
	}
}

// Times returns α·h.
func (h Stump) Times(α float64) Tree {
	α *= float64(h.Polarity)
	return stub(h.Feature, h.Threshold, -α, α)
}

// rowsOf returns the leaf whose rows determine leaf k. That is k, except for the
// second leaf of a child that does not divide: it has no rows.
func (t *Tree) rowsOf(k int) int {
	if t.Children[k/2].Feature < 0 {
		return k &^ 1
	}
	return k
}

// Depth returns 1 or 2; 0 if not even the root divides.
func (t *Tree) Depth() int {
	switch {
	case t.Root.Feature < 0:
		return 0
	case t.Children[0].Feature < 0 && t.Children[1].Feature < 0:
		return 1
	}
	return 2
}

// Leaf returns the number of the leaf that x falls into, 0 to 3.
func (t *Tree) Leaf(x []float64) int {
	side := t.Root.above(x)
	return 2*side + t.Children[side].above(x)
}

// Value returns h(x), the value of x's leaf.
func (t *Tree) Value(x []float64) float64 { return t.Leaves[t.Leaf(x)] }
