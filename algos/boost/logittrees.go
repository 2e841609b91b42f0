package boost

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"hamlet/algos/internal/logistic"
)

// LogitTreesConfig says how to boost. Zero fields mean the defaults, those of the
// live ensemble.
type LogitTreesConfig struct {
	Rounds  int       // 1 to MaxRounds; 0 is N/10, at least 1 and at most 100
	Weights []float64 // ω, a sample weight for each row, not negative; nil is 1 each
	Depth   int       // of the trees, 1 to MaxDepth; 0 is 4
	Clip    float64   // leaves lie in ±Clip; 0 is 2. Clip·Shrink is at most 350
	Shrink  float64   // what a tree's leaves are multiplied by, in (0, 1]; 0 is 0.3

	// Columns is how many columns most rounds search; 0 is a third of them, at least 8.
	Columns int

	// Trim is the share of Σ ω|y₊−p| that may be left out of most searches; 0 is 0.02.
	Trim float64
}

// screen is how often a round searches all.
const screen = 10

// LogitTrees lowers the logistic cost C(z) = ln(1+e^(−2z)) of the margins z = yf by trees
// with real-valued leaves. With p = σ(2f), y₊ = (1+y)/2 and, over the rows of a node,
//
//	G = Σ ω(y₊−p),   H = Σ ω·2p(1−p),
//
// −G·v + ½(H+1)v² is, to second order and up to a factor, the cost of the value v for all
// of them, with a Gaussian prior on v that is worth one example. Its least value is
// −½·G²/(H+1), at the Newton step v = G/(H+1). So a round divides a node where
//
//	G_l²/(H_l+1) + G_r²/(H_r+1)                                                  (1)
//
// is largest, if that exceeds G²/(H+1). It divides the root in any case, because the
// children may gain. A leaf's value is shrink · clip(G/(H+1)). (Friedman, Hastie and
// Tibshirani, Additive logistic regression, Annals of Statistics 28, 2000, section 4;
// Chen and Guestrin, XGBoost, 2016, eqs. 5 to 7.)
//
// # Cost
//
// Every tenth round searches all rows of all columns. The rounds after it search the
// columns that gained most there, and leave out the rows with the smallest ω|y₊−p|
// (weight trimming: Friedman, Hastie and Tibshirani, section 9). Leaves' values come from
// all rows. A cell is a row of a column outside the column's fullest bin. A round costs
// O(cells + N·depth) for the root, and on every further level the cells in the smaller children.
// It allocates nothing.
//
// ω(y₊−p) and ω·2p(1−p) are rounded to fixed point and packed into one int64: the first
// in the upper 32 bits, the second in the lower. A unit is at most 2⁻²⁹ of what the
// slopes can add up to, so sums are exact in any order, and neither half overflows.
type LogitTrees struct {
	Booster[LogitTreesRound]
	depth  int
	clip   float64
	shrink float64
	trim   float64
	growth float64 // no slope grows by more in a round: e^(2·shrink·clip)

	z     []float64 // e^(−2yf), at most largestZ; of row i as all below
	sum   float64   // Σ ω·z/(1+z) = Σ ω|y₊−p|
	pairs []int64   // the slope and curvature in fixed point, packed
	class []uint8   // 1 for y = +1, else 0
	node  []uint8   // in the tree being grown, then the leaf

	whole, part view      // what is searched: in every tenth round, in the others
	gains       []float64 // of each column, over all nodes of the last search of all
	order       []column  // scratch: columns

	nodes [1 << MaxDepth]node // of the level being divided
	next  [1 << MaxDepth]node
	searcher
}

// A LogitTreesRound is what one round found.
type LogitTreesRound struct {
	Depth  int
	Splits [1<<MaxDepth - 1]Split // 2^Depth − 1, by heap order: split k leads to 2k+1 and 2k+2
	Leaves [1 << MaxDepth]float64 // 2^Depth, clipped and shrunk
}

func (r LogitTreesRound) addTo(e *Ensemble) {
	e.grove.depth = r.Depth
	e.grove.add(r.Splits[:1<<r.Depth-1], r.Leaves[:1<<r.Depth])
}

// largestZ keeps e^(−2yf) finite.
const largestZ = 1e300

// mostStep bounds a round's step. Beyond twice as much a row's factor e^±2·step is no number, and what a CPU
// makes of that differs.
const mostStep = 350

// NewLogitTrees prepares boosting on d, which is quantised, with labels y = ±1, which it
// copies. The error joins all that is wrong with d, y and cfg.
func NewLogitTrees(d *Data, y []float64, cfg LogitTreesConfig) (*LogitTrees, error) {
	base, err := newBooster[LogitTreesRound](d, y, cfg.Weights, cmp.Or(cfg.Rounds, min(max(d.rows/10, 1), 100)))
	errs := []error{err}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("boost: "+format, args...)) }
	depth, columns, trim := cmp.Or(cfg.Depth, 4), cmp.Or(cfg.Columns, max(8, (d.dim+2)/3)), cmp.Or(cfg.Trim, 0.02)
	if depth < 1 || depth > MaxDepth {
		bad("trees of depth %d: want 1 to %d", depth, MaxDepth)
	}
	if columns < 1 {
		bad("%d columns: want at least 1, or 0 for a third", columns)
	}
	if !(trim >= 0 && trim < 1) {
		bad("%v of the slopes trimmed: want less than 1, or 0 for 0.02", trim)
	}
	if !d.Quantised() {
		bad("logit trees need quantised data")
	}
	clip, shrink, leafErr := leafRange(cfg.Clip, cfg.Shrink, 2, 0.3)
	if leafErr == nil && !(clip*shrink <= mostStep) {
		bad("leaves up to %v times a shrinkage of %v: want at most %v", clip, shrink, float64(mostStep))
	}
	if err := errors.Join(append(errs, leafErr)...); err != nil {
		return nil, err
	}
	n := d.rows
	b := &LogitTrees{
		Booster: base, depth: depth, clip: clip, shrink: shrink, trim: trim,
		growth: logistic.Exp(2 * clip * shrink),
		z:      slices.Repeat([]float64{1}, n), sum: base.total / 2,
		pairs: make([]int64, n), class: make([]uint8, n), node: make([]uint8, n),
		gains: make([]float64, d.dim),
	}
	for i, v := range y {
		b.class[i] = uint8(class(v))
	}
	b.whole = newView(d)
	b.part = b.whole.scratch(columns)
	b.order = make([]column, 0, len(b.whole.columns))
	b.searcher = newSearcher(&b.whole, depth)
	b.step = b.round
	b.weigh([2 << MaxDepth]float64{1, 1})
	return b, nil
}

func (b *LogitTrees) round() bool {
	if b.sum == 0 {
		return b.end(NoDescent) // every p is the label to the last digit
	}
	if len(b.whole.columns) == 0 {
		return b.end(NoCandidate)
	}
	all := len(b.log)%screen == 0
	v := &b.part
	if all {
		v = &b.whole
	}
	b.log = append(b.log, LogitTreesRound{Depth: b.depth})
	t := &b.log[len(b.log)-1]
	b.grow(t, v, all)
	b.weigh(b.value(t, all))
	if all && len(b.log) < b.rounds {
		b.choose()
	}
	return true
}

// grow finds the splits of t among v's rows and columns. It leaves the leaf of every row in
// b.node, and the leaves' sums over v's rows in b.nodes. If all, it sets b.gains.
func (b *LogitTrees) grow(t *LogitTreesRound, v *view, all bool) {
	if all {
		clear(b.gains)
	}
	clear(b.node)
	b.nodes[0] = node{total: v.sum(b.pairs), rows: int32(len(v.rows))}
	for level := range b.depth {
		nodes := b.nodes[:1<<level]
		b.fill(v, nodes, b.node, b.pairs)
		for k := range nodes {
			n := &nodes[k]
			n.split, n.gain = noFeature, -1 // the root divides in any case
			if level > 0 {
				n.gain = b.worth(n.total)
			}
		}
		if all {
			b.scanAll(v, nodes, b.gains)
		} else {
			b.scan(v, nodes)
		}
		var s splits
		first := len(nodes) - 1
		for k := range nodes {
			n := &nodes[k]
			left, right := &b.next[2*k], &b.next[2*k+1]
			if n.split == noFeature {
				t.Splits[first+k] = Split{Feature: noFeature}
				s.cut[k] = MaxBins // above all bins: to the left
				*left, *right = node{total: n.total, hist: noHist}, node{hist: noHist}
				continue
			}
			t.Splits[first+k] = Split{Feature: n.split, Threshold: b.data.Cuts(n.split)[n.cut]}
			s.column[k], s.cut[k] = n.split*b.data.rows, uint8(n.cut)
			*left, *right = node{total: n.left, hist: n.hist}, node{total: n.total - n.left, hist: n.hist}
		}
		descend(b.node, v.kept, b.data.binned.bins, &s, len(nodes))
		for k := range nodes {
			b.next[2*k].rows, b.next[2*k+1].rows = nodes[k].rows-s.right[k], s.right[k]
		}
		b.nodes, b.next = b.next, b.nodes
	}
}

// value sets t's values. It returns e^(−2yh) by leaf and class. If all, b.nodes has the sums
// of all rows.
func (b *LogitTrees) value(t *LogitTreesRound, all bool) (factor [2 << MaxDepth]float64) {
	var total [1 << MaxDepth]int64
	if all {
		for k := range total {
			total[k] = b.nodes[k].total
		}
	} else {
		sumByNode(&total, b.node, b.pairs)
	}
	for k := range 1 << b.depth {
		g, h := unpack(total[k])
		v := float64(b.shrink * min(max(g/(h+b.unit), -b.clip), b.clip))
		t.Leaves[k] = v
		factor[2*k], factor[2*k+1] = logistic.Exp(2*v), logistic.Exp(-2*v)
	}
	return factor
}

// unpack returns the sums of slopes and curvatures in units of fixed point.
func unpack(v int64) (g, h float64) {
	low := int64(uint32(v))
	return float64((v - low) >> 32), float64(low)
}

// weigh multiplies each z by its leaf's factor and computes slopes and curvatures.
func (b *LogitTrees) weigh(factor [2 << MaxDepth]float64) {
	// Slopes add up to less than 2^exp, because ω bounds them too.
	_, exp := math.Frexp(min(b.total, float64(b.sum*b.growth)))
	b.setUnit(math.Ldexp(1, 30-exp))
	b.sum = weigh(b.z, b.weights, b.pairs, b.node, b.class, &factor, b.unit)
}

// slope returns the slope in a pair without its sign.
func slope(pair int64) uint64 {
	g := (pair - int64(uint32(pair))) >> 32
	return uint64(max(g, -g))
}

// best returns the columns with the largest gains, by ascending feature, as many as most
// rounds search. The next call overwrites them.
func (b *LogitTrees) best() []column {
	b.order = append(b.order[:0], b.whole.columns...)
	slices.SortFunc(b.order, func(k, l column) int {
		return cmp.Or(cmp.Compare(b.gains[l.feature], b.gains[k.feature]), k.feature-l.feature)
	})
	best := b.order[:len(b.part.columns)]
	slices.SortFunc(best, func(k, l column) int { return k.feature - l.feature })
	return best
}

// choose sets the rows and columns that the next rounds search.
func (b *LogitTrees) choose() {
	// By powers of two: rows whose slopes have at most cut bits add up to at most trim.
	var sums [65]uint64
	all := uint64(0)
	for _, p := range b.pairs {
		g := slope(p)
		sums[bits.Len64(g)] += g
		all += g
	}
	cut, left := 0, uint64(float64(b.trim*float64(all)))
	for cut < 64 && sums[cut+1] <= left {
		left -= sums[cut+1]
		cut++
	}
	rows := b.part.rows[:0]
	for i, p := range b.pairs {
		b.part.kept[i] = 0
		if bits.Len64(slope(p)) > cut {
			b.part.kept[i] = 255
			rows = append(rows, int32(i))
		}
	}
	b.part.rows = rows
	b.whole.partTo(&b.part, b.best())
}

// FTo writes f(xᵢ) of each example to dst, of length N. Beyond ±345 it is ±345.
func (b *LogitTrees) FTo(dst []float64) {
	b.data.check(len(dst))
	for i, z := range b.z {
		dst[i] = float64(-0.5 * b.y[i] * logistic.Log(max(z, 1/largestZ)))
	}
}

// WeightsTo writes D ∝ ω|y₊−p|, which sums to 1, to dst, of length N.
func (b *LogitTrees) WeightsTo(dst []float64) {
	b.data.check(len(dst))
	for i, z := range b.z {
		dst[i] = float64(b.weights[i]*float64(z/(1+z))) / b.sum
	}
}
