package boost

import (
	"fmt"
)

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

// A treeSearch finds the splits of a tree. The root's split has the least Σ√(W⁺W⁻)
// over both sides; at depth 2 so has each child's among its rows. A child divides
// only if that lowers its Σ√(W⁺W⁻); the root always divides, because its children
// may gain. It costs one pass over the data and one over the rows of the smaller
// child: the larger child's histograms are the root's minus the smaller's, exactly.
type treeSearch struct {
	data    *Data
	depth   int
	leaf    []byte   // the leaf of each row in the tree found last
	columns []divide // the best division of each column

	// root needs quantised data; the others need depth 2 as well.
	root, small []pairs // histograms by class of the root and the smaller child
	masked      []int64 // the weights of the smaller child's rows, 0 elsewhere
	rows        []int32 // of the smaller child
}

// newTreeSearch returns a search for trees of depth 1 or, over quantised data, 2.
func (d *Data) newTreeSearch(depth int) (*treeSearch, error) {
	if depth != 1 && depth != 2 {
		return nil, fmt.Errorf("boost: trees of depth %d: want 1 or 2", depth)
	}
	if depth == 2 && !d.Quantised() {
		return nil, fmt.Errorf("boost: trees of depth 2 need quantised data")
	}
	s := &treeSearch{data: d, depth: depth, leaf: make([]byte, d.rows), columns: make([]divide, d.dim)}
	if d.Quantised() {
		s.root = make([]pairs, d.dim)
	}
	if depth == 2 {
		s.small = make([]pairs, d.dim)
		s.masked = make([]int64, d.rows)
		s.rows = make([]int32, 0, d.rows)
	}
	return s, nil
}

// find returns the tree with leaves 0, and sets s.leaf. It returns false if every
// feature is constant. w are signed weights in fixed point.
func (s *treeSearch) find(w []int64) (Tree, bool) {
	d := s.data
	p, n := bySign(w)
	if d.Quantised() {
		d.binned.pairsTo(s.root, w, nil)
		for j := range s.columns {
			s.columns[j] = undivided
			if cuts := len(d.Cuts(j)); cuts > 0 {
				s.columns[j] = divideBins(&s.root[j], cuts)
			}
		}
	} else {
		for j := range s.columns {
			s.columns[j] = d.sorted.divide(j, w)
		}
	}
	feature, root, ok := least(s.columns, p-n)
	if !ok {
		return Tree{}, false
	}
	t := stub(feature, d.Cuts(feature)[root.cut], 0, 0)
	above := s.divideRows(feature, root.cut)
	if s.depth == 2 {
		s.divideChildren(&t, w, above)
	}
	return t, true
}

// divideRows assigns the rows to leaf 0 or, above the cut, leaf 2. It returns the
// number of rows above.
func (s *treeSearch) divideRows(feature, cut int) (above int) {
	d := s.data
	threshold := d.Cuts(feature)[cut]
	for i, v := range d.Column(feature) {
		s.leaf[i] = 0
		if v > threshold {
			s.leaf[i] = 2
			above++
		}
	}
	return above
}

// divideChildren finds the splits of t's children and moves rows above them to
// leaves 1 and 3.
func (s *treeSearch) divideChildren(t *Tree, w []int64, above int) {
	d := s.data
	smaller := 0
	if 2*above < d.rows {
		smaller = 1
	}
	s.rows = s.rows[:0]
	for i, leaf := range s.leaf {
		s.masked[i] = 0
		if leaf == byte(2*smaller) {
			s.masked[i] = w[i]
			s.rows = append(s.rows, int32(i))
		}
	}
	d.binned.pairsTo(s.small, s.masked, s.rows)
	p, n := bySign(w)
	sp, sn := bySign(s.masked)
	var splits [2]divide
	features := [2]int{noFeature, noFeature}
	for _, side := range [2]int{smaller, 1 - smaller} {
		cp, cn := sp, sn
		if side != smaller {
			cp, cn = p-sp, n-sn
		}
		for j := range s.columns {
			s.columns[j] = undivided
			cuts := len(d.Cuts(j))
			if cuts == 0 {
				continue
			}
			h := &s.small[j]
			if side != smaller {
				h = &s.root[j]
				h.subtract(&s.small[j], cuts+1)
			}
			s.columns[j] = divideBins(h, cuts)
		}
		feature, best, ok := least(s.columns, cp-cn)
		if ok && best.cost < root2(cp, cn)-float64(tieIn(cp-cn)) {
			features[side], splits[side] = feature, best
		}
	}
	for side, feature := range features {
		if feature == noFeature {
			continue
		}
		cut := splits[side].cut
		t.Children[side] = Split{Feature: feature, Threshold: d.Cuts(feature)[cut]}
		for i, b := range d.binned.column(feature) {
			if s.leaf[i] == byte(2*side) && int(b) > cut {
				s.leaf[i]++
			}
		}
	}
}
