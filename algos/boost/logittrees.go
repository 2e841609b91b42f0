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
	Clip    float64   // leaves lie in ±Clip; 0 is 2
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
// all rows. A round costs O(depth·cells + N·depth); the cells are the rows searched of a
// dense column, and those outside the dominant bin of a sparse one. It allocates nothing.
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
	unit  float64   // 1 in units of fixed point
	pairs []int64   // the slope and curvature in fixed point, packed
	class []uint8   // 1 for y = +1, else 0
	leaf  []uint8   // in the last tree

	whole, part view           // what is searched: in every tenth round, in the others
	gains       []float64      // of each column, over all nodes of the last search of all
	index       []int32        // scratch: the place of each row in part.rows, −1 without one
	order       []binnedColumn // scratch: columns

	shift int // a histogram holds bin b of node k at k<<shift + b
	hist  *[2]histograms
	nodes [1 << MaxDepth]nodeStats // of the level being divided
	next  [1 << MaxDepth]nodeStats
}

// A view is the rows and columns that a round searches.
type view struct {
	rows    []int32        // ascending; nil: all
	pairs   []int64        // of each row
	node    []uint16       // the number of its node << shift
	columns []binnedColumn // by ascending feature
}

// A binnedColumn is a column of a view. Its rows are places in the view.
type binnedColumn struct {
	sparseColumn
	cuts  int
	dense bool // rows is empty, and bins has the bins of all rows of the view
}

// histograms are those of one column by node.
type histograms [1 << 12]int64

// A nodeStats is a node of the tree being grown.
type nodeStats struct {
	total int64 // Σ pairs
	gain  float64
	split int // the best split's column, or noFeature
	cut   int
	left  int64 // Σ pairs of the left child
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
	if err := errors.Join(append(errs, leafErr)...); err != nil {
		return nil, err
	}
	n := d.rows
	b := &LogitTrees{
		Booster: base, depth: depth, clip: clip, shrink: shrink, trim: trim,
		growth: logistic.Exp(2 * clip * shrink),
		z:      slices.Repeat([]float64{1}, n), sum: base.total / 2,
		pairs: make([]int64, n), class: make([]uint8, n), leaf: make([]uint8, n),
		gains: make([]float64, d.dim), index: make([]int32, n), order: make([]binnedColumn, 0, d.dim),
		hist: new([2]histograms),
	}
	for i, v := range y {
		b.class[i] = uint8(class(v))
	}
	b.whole = view{pairs: b.pairs, node: make([]uint16, n), columns: d.binned.varying(d)}
	most := 0
	for _, c := range b.whole.columns {
		most = max(most, c.cuts)
	}
	b.shift = bits.Len(uint(most))
	b.part = b.whole.scratch(columns, n)
	b.step = b.round
	b.weigh([2 << MaxDepth]float64{1, 1})
	return b, nil
}

// varying returns the columns that are not constant.
func (b *binned) varying(d *Data) []binnedColumn {
	columns := make([]binnedColumn, 0, len(b.dense)+len(b.sparse))
	for _, j := range b.dense {
		columns = append(columns, binnedColumn{sparseColumn{feature: j, bins: b.column(j)}, len(d.Cuts(j)), true})
	}
	for _, s := range b.sparse {
		columns = append(columns, binnedColumn{s, len(d.Cuts(s.feature)), false})
	}
	slices.SortFunc(columns, func(a, b binnedColumn) int { return a.feature - b.feature })
	return columns
}

// scratch returns an empty view with memory for any columns of v, so many, and n rows.
func (v *view) scratch(columns, n int) view {
	columns = min(columns, len(v.columns))
	part := view{
		rows: make([]int32, 0, n), pairs: make([]int64, n), node: make([]uint16, n),
		columns: make([]binnedColumn, columns),
	}
	sparse := 0
	for _, c := range v.columns {
		sparse = max(sparse, len(c.rows))
	}
	rows, bins := make([]int32, columns*sparse), make([]byte, columns*n)
	for k := range part.columns {
		part.columns[k].sparseColumn = sparseColumn{
			rows: rows[k*sparse : k*sparse : (k+1)*sparse], bins: bins[k*n : k*n : (k+1)*n],
		}
	}
	return part
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
		clear(b.gains)
	} else {
		for k, i := range v.rows {
			v.pairs[k] = b.pairs[i]
		}
	}
	b.log = append(b.log, LogitTreesRound{Depth: b.depth})
	t := &b.log[len(b.log)-1]
	tree := b.grow(t, v)
	factor := b.value(t, tree)
	b.weigh(factor)
	if all && len(b.log) < b.rounds {
		b.choose()
	}
	return true
}

// A flatTree is a tree as rows in bins go down it: row i goes right at node k, by heap
// order, if bins[column[k]+i] > cut[k].
type flatTree struct {
	column [1<<MaxDepth - 1]int
	cut    [1<<MaxDepth - 1]uint8
}

// grow finds the splits of t among v's rows and columns.
func (b *LogitTrees) grow(t *LogitTreesRound, v *view) (tree flatTree) {
	clear(v.node)
	b.nodes[0] = nodeStats{total: sum(v.pairs)}
	for level := range b.depth {
		nodes := b.nodes[:1<<level]
		b.search(v, nodes)
		first := len(nodes) - 1
		for k := range nodes {
			n := &nodes[k]
			at := first + k
			t.Splits[at] = Split{Feature: noFeature}
			tree.cut[at] = MaxBins // above all bins: to the left
			b.next[2*k], b.next[2*k+1] = nodeStats{total: n.total}, nodeStats{}
			if n.split != noFeature {
				t.Splits[at] = Split{Feature: n.split, Threshold: b.data.Cuts(n.split)[n.cut]}
				tree.column[at], tree.cut[at] = n.split*b.data.rows, uint8(n.cut)
				b.next[2*k], b.next[2*k+1] = nodeStats{total: n.left}, nodeStats{total: n.total - n.left}
			}
		}
		if level+1 < b.depth {
			b.descend(v, tree.column[first:2*first+1], tree.cut[first:2*first+1])
		}
		b.nodes, b.next = b.next, b.nodes
	}
	return tree
}

// descend moves v's rows from a level's nodes to their children.
func (b *LogitTrees) descend(v *view, column []int, cut []uint8) {
	bins, shift := b.data.binned.bins, b.shift
	if v.rows == nil {
		for i, node := range v.node {
			k := node >> shift
			child := 2 * k
			if bins[column[k]+i] > cut[k] {
				child++
			}
			v.node[i] = child << shift
		}
		return
	}
	for at, i := range v.rows {
		k := v.node[at] >> shift
		child := 2 * k
		if bins[column[k]+int(i)] > cut[k] {
			child++
		}
		v.node[at] = child << shift
	}
}

// value sets the leaf of each row and t's values. It returns e^(−2yh) by leaf and class.
func (b *LogitTrees) value(t *LogitTreesRound, tree flatTree) (factor [2 << MaxDepth]float64) {
	bins := b.data.binned.bins
	var total [1 << MaxDepth]int64
	inner := 1<<b.depth - 1
	for i := range b.leaf {
		k := 0
		for k < inner {
			next := 2*k + 1
			if bins[tree.column[k]+i] > tree.cut[k] {
				next++
			}
			k = next
		}
		leaf := (k - inner) & (1<<MaxDepth - 1)
		b.leaf[i] = uint8(leaf)
		total[leaf] += b.pairs[i]
	}
	for k := range inner + 1 {
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
	b.unit = math.Ldexp(1, 30-exp)
	sum := 0.0
	for i, ω := range b.weights {
		class := b.class[i]
		z := min(float64(b.z[i]*factor[(int(b.leaf[i])<<1|int(class))&(2<<MaxDepth-1)]), largestZ)
		q := 1 / (1 + z)
		s := float64(ω * float64(z*q)) // ω|y₊−p|
		b.z[i] = z
		sum += s
		u := float64(s * b.unit)
		g, h := nearest(u), nearest(float64(2*float64(u*q)))
		b.pairs[i] = (g-int64(class^1)*2*g)<<32 + h
	}
	b.sum = sum
}

// nearest returns the integer nearest to 0 ≤ v < 2⁵¹.
func nearest(v float64) int64 {
	const ones = 1 << 52 // from here on a float64 has no fraction
	return int64(math.Float64bits(v+ones)) - int64(math.Float64bits(ones))
}

// slope returns the slope in a pair without its sign.
func slope(pair int64) uint64 {
	g := (pair - int64(uint32(pair))) >> 32
	return uint64(max(g, -g))
}

// best returns the columns with the largest gains, by ascending feature, as many as most
// rounds search. The next call overwrites them.
func (b *LogitTrees) best() []binnedColumn {
	b.order = append(b.order[:0], b.whole.columns...)
	slices.SortFunc(b.order, func(k, l binnedColumn) int {
		return cmp.Or(cmp.Compare(b.gains[l.feature], b.gains[k.feature]), k.feature-l.feature)
	})
	best := b.order[:len(b.part.columns)]
	slices.SortFunc(best, func(k, l binnedColumn) int { return k.feature - l.feature })
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
	v := &b.part
	v.rows = v.rows[:0]
	for i, p := range b.pairs {
		b.index[i] = -1
		if bits.Len64(slope(p)) > cut {
			b.index[i] = int32(len(v.rows))
			v.rows = append(v.rows, int32(i))
		}
	}
	v.pairs, v.node = v.pairs[:len(v.rows)], v.node[:len(v.rows)]

	best := b.best()
	for k := range best {
		c, to := &best[k], &v.columns[k]
		rows, bins := to.rows[:0], to.bins[:0]
		if c.dense {
			for _, i := range v.rows {
				bins = append(bins, c.bins[i])
			}
		}
		for at, i := range c.rows {
			if place := b.index[i]; place >= 0 {
				rows, bins = append(rows, place), append(bins, c.bins[at])
			}
		}
		*to = *c
		to.rows, to.bins = rows, bins
	}
}

// search finds the best split of each node among v's rows and columns.
func (b *LogitTrees) search(v *view, nodes []nodeStats) {
	for k := range nodes {
		nodes[k].split = noFeature
		nodes[k].gain = -1 // the root divides in any case
		if len(nodes) > 1 {
			nodes[k].gain = b.worth(nodes[k].total)
		}
	}
	entries := len(nodes) << b.shift
	var waiting *binnedColumn // a dense column that waits for another
	for k := range v.columns {
		c := &v.columns[k]
		switch h := &b.hist[0]; {
		case !c.dense:
			clear(h[:entries])
			bins := c.bins[:len(c.rows)]
			for at, i := range c.rows {
				h[(v.node[i]+uint16(bins[at]))&(1<<12-1)] += v.pairs[i]
			}
			for k := range nodes {
				own := h[k<<b.shift:]
				own[c.dominant] = nodes[k].total - sum(own[:c.used])
			}
			b.scan(nodes, c, h)
		case waiting == nil:
			waiting = c
		default:
			b.fillBoth(v, waiting, c, entries)
			b.scan(nodes, waiting, &b.hist[0])
			b.scan(nodes, c, &b.hist[1])
			waiting = nil
		}
	}
	if waiting != nil {
		b.fillBoth(v, waiting, waiting, entries)
		b.scan(nodes, waiting, &b.hist[0])
	}
}

// fillBoth makes the histograms of two dense columns.
func (b *LogitTrees) fillBoth(v *view, c0, c1 *binnedColumn, entries int) {
	h0, h1 := &b.hist[0], &b.hist[1]
	clear(h0[:entries])
	clear(h1[:entries])
	n := len(v.node)
	b0, b1, pairs := c0.bins[:n], c1.bins[:n], v.pairs[:n]
	for i, node := range v.node {
		v := pairs[i]
		h0[(node+uint16(b0[i]))&(1<<12-1)] += v
		h1[(node+uint16(b1[i]))&(1<<12-1)] += v
	}
}

// worth returns G²/(H+1) in units of fixed point.
func (b *LogitTrees) worth(total int64) float64 {
	g, h := unpack(total)
	return float64(g*g) / (h + b.unit)
}

// scan takes the splits by column c that are better than the nodes' own. Of equal ones the
// first column's and the lowest cut's is taken.
func (b *LogitTrees) scan(nodes []nodeStats, c *binnedColumn, h *histograms) {
	unit, gains := b.unit, 0.0
	for k := range nodes {
		n := &nodes[k]
		if n.total == 0 {
			continue
		}
		tg, th := unpack(n.total)
		own := float64(tg*tg) / (th + unit)
		best, at, atLeft := own, -1, int64(0)
		if len(nodes) == 1 {
			best = -1
		}
		left := int64(0)
		from := k << b.shift
		for cut, v := range h[from : from+c.cuts] {
			if v == 0 {
				continue // the cut before divides alike
			}
			left += v
			g, hl := unpack(left)
			r := tg - g
			if gain := float64(g*g)/(hl+unit) + float64(r*r)/(th-hl+unit); gain > best {
				best, at, atLeft = gain, cut, left
			}
		}
		if at < 0 {
			continue
		}
		gains += max(0, best-own)
		if best > n.gain || best == n.gain && c.feature < n.split {
			n.gain, n.split, n.cut, n.left = best, c.feature, at, atLeft
		}
	}
	b.gains[c.feature] += gains
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
