package boost

// A node is one of the tree that LogitTrees grows.
type node struct {
	total int64 // Σ pairs
	gain  float64
	split int // the best split's column, or noFeature
	cut   int
	left  int64 // Σ pairs of the left child
	rows  int32 // how many of the view's
	hist  int   // which histograms are its own, or its parent's before fill; noHist: it does not divide
}

const noHist = -1

// A searcher finds the best splits of the nodes of a level. It keeps their histograms.
//
// A histogram of a parent is the sum of its children's, to the bit, as pairs are integers. So
// fill adds up only the rows of the smaller child of each pair. The other one's histograms are
// the parent's without them.
type searcher struct {
	hist   []int64
	list   []int32 // scratch: rows to add up, ascending
	sorted []int32 // scratch: rows to add up, the fewest cells first
	gains  cutGains
	used   int     // how many nodes have histograms
	unit   float64 // 1 in units of fixed point
	doubt  float64 // what a gain is multiplied by to be compared without quotients; only setUnit writes both
}

// newSearcher returns a searcher for v and its parts.
func newSearcher(v *view, depth int) searcher {
	return searcher{
		hist: make([]int64, len(v.columns)<<v.shift<<(depth-1)),
		list: make([]int32, len(v.kept)), sorted: make([]int32, len(v.kept)),
	}
}

// of returns histograms number k of v's columns.
func (s *searcher) of(v *view, k int) []int64 {
	n := len(v.columns) << v.shift
	return s.hist[k*n : (k+1)*n : (k+1)*n]
}

// fill makes the histograms of a level's nodes. Those of the level before are lost.
func (s *searcher) fill(v *view, nodes []node, of []uint8, pairs []int64) {
	if len(nodes) == 1 {
		nodes[0].hist, s.used = 0, 1
		h := s.of(v, 0)
		clear(h)
		for k := range v.blocks {
			b := &v.blocks[k]
			add(h[b.first<<v.shift:], b.codes, b.rows, pairs)
		}
		v.complete(h, nodes[0].total)
		return
	}
	var small [1 << (MaxDepth - 1)]uint8 // 255 for the smaller child of a node that was divided
	var at [1 << (MaxDepth - 1)]uint32   // where its histograms begin
	for k := 0; k < len(nodes); k += 2 {
		if nodes[k].hist == noHist {
			continue
		}
		child := k
		if nodes[k+1].rows < nodes[k].rows {
			child++
		}
		small[child] = 255
		nodes[child].hist = s.used
		s.used++
		at[child] = uint32(nodes[child].hist * len(v.columns) << v.shift)
		clear(s.of(v, nodes[child].hist))
	}
	list := s.list[:pick(s.list, of, v.kept, &small)]
	for k := range v.blocks {
		b, rows := &v.blocks[k], list
		if manyRows*len(list) > len(b.rows) {
			rows = s.sorted[:b.pick(s.sorted, of, &small)]
		}
		addByNode(s.hist[b.first<<v.shift:], &at, of, b.codes, b.spans, rows, pairs)
	}
	for k := range nodes {
		if small[k] == 0 {
			continue
		}
		h := s.of(v, nodes[k].hist)
		v.complete(h, nodes[k].total)
		subtract(s.of(v, nodes[k^1].hist), h)
	}
}

// manyRows: from a third of a block's rows on they are added up sorted by their number of cells.
// It costs time to pick them in that order, and the ends of loops over cells are foreseen.
const manyRows = 3

// pick writes the rows of small nodes to list, the fewest cells first, and returns how many.
func (b *block) pick(list []int32, node []uint8, small *[1 << (MaxDepth - 1)]uint8) int {
	n := 0
	for _, r := range b.rows {
		list[n] = int32(r.row)
		n += int(small[node[r.row]&(1<<(MaxDepth-1)-1)] & 1)
	}
	return n
}

// subtract subtracts part from h.
func subtract(h, part []int64) {
	part = part[:len(h)]
	for k, v := range part {
		h[k] -= v
	}
}

// complete sets the dominant bins of a node's histograms, of which total is the sum of each.
func (v *view) complete(h []int64, total int64) {
	for k := range v.columns {
		c := &v.columns[k]
		own := h[k<<v.shift:][:c.cuts+1]
		own[c.dominant] = total - sum(own)
	}
}

// worth returns G²/(H+1) in units of fixed point.
func (s *searcher) worth(total int64) float64 {
	g, h := unpack(total)
	return float64(g*g) / (h + s.unit)
}

// scan sets the best split of each node that is better than its gain. Of equal ones the first
// column's and the lowest cut's is taken.
func (s *searcher) scan(v *view, nodes []node) {
	for k := range nodes {
		n := &nodes[k]
		if n.total == 0 || n.hist == noHist {
			continue
		}
		h := s.of(v, n.hist)
		tg, th := unpack(n.total)
		for k := range v.columns {
			c, own := &v.columns[k], h[k<<v.shift:][:1<<v.shift]
			if !promising(own, tg, th, s.unit, float64(n.gain*s.doubt)) {
				continue
			}
			if gain, cut := bestCut(&s.gains, own, c.cuts, tg, th, s.unit); gain > n.gain {
				n.gain, n.split, n.cut, n.left = gain, c.feature, cut, sum(own[:cut+1])
			}
		}
	}
}

// scanAll is scan. It also sets gains to what each column gains over all nodes.
func (s *searcher) scanAll(v *view, nodes []node, gains []float64) {
	for k := range v.columns {
		c, total := &v.columns[k], 0.0
		for i := range nodes {
			n := &nodes[i]
			if n.total == 0 || n.hist == noHist {
				continue
			}
			own := s.of(v, n.hist)[k<<v.shift:][:1<<v.shift]
			tg, th := unpack(n.total)
			gain, cut := bestCut(&s.gains, own, c.cuts, tg, th, s.unit)
			total += max(0, gain-s.worth(n.total))
			if gain > n.gain {
				n.gain, n.split, n.cut, n.left = gain, c.feature, cut, sum(own[:cut+1])
			}
		}
		gains[c.feature] += total
	}
}

// setUnit sets unit and doubt.
//
// A quotient costs four products. So cuts are first compared without, by promising: a gain is l/ab
// but for a relative error of some 10⁻¹⁵. Where products may be infinite, doubt makes all promising.
func (s *searcher) setUnit(unit float64) {
	s.unit, s.doubt = unit, 1-0x1p-48
	if !(unit > 0x1p-200 && unit < 0x1p200) {
		s.doubt = 0
	}
}

// sumByNode adds the pairs of each node. Neighbours go to two sums, which do not wait for
// each other.
func sumByNode(total *[1 << MaxDepth]int64, node []uint8, pairs []int64) {
	var odd [1 << MaxDepth]int64
	pairs = pairs[:len(node)]
	for i := 0; i+1 < len(node); i += 2 {
		total[node[i]&(1<<MaxDepth-1)] += pairs[i]
		odd[node[i+1]&(1<<MaxDepth-1)] += pairs[i+1]
	}
	if n := len(node); n%2 == 1 {
		total[node[n-1]&(1<<MaxDepth-1)] += pairs[n-1]
	}
	for k, v := range odd {
		total[k] += v
	}
}
