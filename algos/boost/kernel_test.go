package boost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/internal/cpu"
)

// sameBits reports whether a and b are the same numbers to the bit.
func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
}

// drawBytes returns n numbers below most.
func drawBytes(r *rand.Rand, n, most int) []uint8 {
	b := make([]uint8, n)
	for i := range b {
		b[i] = uint8(r.IntN(most))
	}
	return b
}

func drawMasks(r *rand.Rand, n int) []uint8 {
	b := drawBytes(r, n, 2)
	for i := range b {
		b[i] = -b[i]
	}
	return b
}

// drawPair returns a pair as rows have it; one in ten is 0.
func drawPair(r *rand.Rand) int64 {
	if r.IntN(10) == 0 {
		return 0
	}
	size := int64(1) << r.IntN(20)
	return (r.Int64N(2*size+1)-size)<<32 + r.Int64N(size)
}

func drawPairs(r *rand.Rand, n int) []int64 {
	pairs := make([]int64, n)
	for i := range pairs {
		pairs[i] = drawPair(r)
	}
	return pairs
}

// sizes are numbers of rows around those that a kernel takes at once.
func sizes(visit func(n int, r *rand.Rand)) {
	for n := range 140 {
		visit(n, rand.New(rand.NewPCG(uint64(n), 1)))
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		visit(r.IntN(5000), r)
	}
}

// The kernels that the CPU chooses give the bits of those in Go.
func TestRowKernelsGiveTheSameBits(t *testing.T) {
	sizes(func(n int, r *rand.Rand) {
		nodes := 1 << r.IntN(MaxDepth)
		columns := 1 + r.IntN(4)
		node, kept, bins := drawBytes(r, n, nodes), drawMasks(r, n), drawBytes(r, n*columns, 256)
		var s splits
		for k := range nodes {
			s.column[k], s.cut[k] = r.IntN(columns)*n, uint8(r.IntN(256))
		}
		inGo, node2 := s, slices.Clone(node)
		descend(node, kept, bins, &s, nodes)
		descendGo(node2, kept, bins, &inGo, nodes, 0)
		if !slices.Equal(node, node2) || s != inGo {
			t.Fatalf("n=%d: descend gives %v and %v, in Go %v and %v", n, node, s.right, node2, inGo.right)
		}

		small := [1 << (MaxDepth - 1)]uint8(drawMasks(r, 1<<(MaxDepth-1)))
		node = drawBytes(r, n, 1<<(MaxDepth-1))
		list, list2 := make([]int32, n), make([]int32, n)
		m, m2 := pick(list, node, kept, &small), pickGo(list2, node, kept, &small, 0, 0)
		if m != m2 || !slices.Equal(list[:m], list2[:m]) {
			t.Fatalf("n=%d: pick gives %v, in Go %v", n, list[:m], list2[:m2])
		}

		z, weights, pairs := make([]float64, n), make([]float64, n), make([]int64, n)
		for i := range z {
			z[i], weights[i] = math.Exp(40*r.NormFloat64()), math.Exp(3*r.NormFloat64())
			if r.IntN(9) == 0 {
				z[i] = []float64{0, largestZ, math.SmallestNonzeroFloat64, 1}[r.IntN(4)]
			}
		}
		var factor [2 << MaxDepth]float64
		for k := range factor {
			factor[k] = math.Exp(30 * r.NormFloat64())
		}
		node, class := drawBytes(r, n, 1<<MaxDepth), drawBytes(r, n, 2)
		unit := math.Ldexp(1, r.IntN(20))
		z2, pairs2 := slices.Clone(z), slices.Clone(pairs)
		sum := weigh(z, weights, pairs, node, class, &factor, unit)
		sum2 := weighGo(z2, weights, pairs2, node, class, &factor, unit, 0)
		if !sameBits(z, z2) || !slices.Equal(pairs, pairs2) || !sameBits([]float64{sum}, []float64{sum2}) {
			t.Fatalf("n=%d: weigh gives %v, in Go %v", n, sum, sum2)
		}
	})
}

func TestHistogramKernelsGiveTheSameSums(t *testing.T) {
	sizes(func(n int, r *rand.Rand) {
		const bins, nodes = 200, 1 << (MaxDepth - 1)
		pairs, node := drawPairs(r, n), drawBytes(r, n, nodes)
		var codes []uint16
		var rows []cells
		spans, list := make([]span, n), []int32{}
		for i := range n {
			from := uint32(len(codes))
			for range r.IntN(14) {
				codes = append(codes, uint16(r.IntN(bins)))
			}
			spans[i] = span{from, uint32(len(codes))}
			if len(codes) > int(from) {
				rows = append(rows, cells{uint32(i), spans[i]})
			}
			if r.IntN(2) == 0 {
				list = append(list, int32(i))
			}
		}
		var at [nodes]uint32
		for k, p := range r.Perm(nodes) {
			at[k] = uint32(p * bins)
		}
		h := drawPairs(r, nodes*bins)
		h2 := slices.Clone(h)
		add(h, codes, rows, pairs)
		addGo(h2, codes, rows, pairs)
		if !slices.Equal(h, h2) {
			t.Fatalf("n=%d: add gives other sums than in Go", n)
		}
		addByNode(h, &at, node, codes, spans, list, pairs)
		addByNodeGo(h2, &at, node, codes, spans, list, pairs)
		if !slices.Equal(h, h2) {
			t.Fatalf("n=%d: addByNode gives other sums than in Go", n)
		}
	})
}

// bestCut gives the bits of the loop in Go, and promising leaves no cut out that gains more.
func TestCutKernelsGiveTheSameBits(t *testing.T) {
	var gains cutGains
	left := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 3))
		shift := 1 + r.IntN(8)
		h := make([]int64, 1<<shift)
		cuts := 1 + r.IntN(len(h)-1)
		for k := range h[:cuts+1] {
			if r.IntN(4) > 0 {
				h[k] = drawPair(r)
			}
		}
		s := &searcher{}
		s.setUnit(math.Ldexp(1, []int{0, 10, -100, -870, 600, 930}[r.IntN(6)]))
		total := sum(h)
		tg, th := unpack(total)
		gain, cut := bestCut(&gains, h, cuts, tg, th, s.unit)
		gain2, cut2 := bestCutGo(h, cuts, tg, th, s.unit)
		if !sameBits([]float64{gain}, []float64{gain2}) || gain >= 0 && cut != cut2 {
			t.Fatalf("seed %d: bestCut gives %v at %d, in Go %v at %d", seed, gain, cut, gain2, cut2)
		}
		for _, least := range []float64{-1, 0, s.worth(total), gain * (1 - 1e-16), gain / 2, gain * 2} {
			is := promising(h, tg, th, s.unit, float64(least*s.doubt))
			if !is && gain > least {
				t.Fatalf("seed %d: a cut gains %v, and none is promising for more than %v", seed, gain, least)
			}
			if !is {
				left++
			}
		}
	}
	if left == 0 && cpu.AVX2 {
		t.Error("all histograms were promising")
	}
}

func TestTreeKernelsGiveTheSameBits(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		dim, trees := 1+r.IntN(70), r.IntN(30)
		x := make([]float64, dim)
		for j := range x {
			x[j] = float64(r.IntN(5))
			if r.IntN(20) == 0 {
				x[j] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
			}
		}
		g := grove{depth: 4}
		for range 15 * trees {
			g.features = append(g.features, int32(r.IntN(dim)))
			t := float64(r.IntN(5))
			if r.IntN(10) == 0 {
				t = math.Inf(1)
			}
			g.thresholds = append(g.thresholds, t)
		}
		for range 16 * trees {
			g.leaves = append(g.leaves, r.NormFloat64())
		}
		want := 0.0
		for tree := range trees {
			k := 0
			for k < 15 {
				k = 2*k + 1 + above(x[g.features[15*tree+k]], g.thresholds[15*tree+k])
			}
			want += g.leaves[16*tree+k-15]
		}
		if got := []float64{g.f(x), sum4Go(x, g.features, g.thresholds, g.leaves)}; !sameBits(got, []float64{want, want}) {
			t.Fatalf("seed %d: the sums are %v, want %v", seed, got, want)
		}
	}
}

// After each level, every node's histograms are the sums over its rows, in views of one block and
// of several. scan and scanAll find the same splits.
func TestHistogramsAreSums(t *testing.T) {
	for _, size := range []struct{ rows, dim, bins int }{{300, 9, 32}, {1000, 40, 32}, {400, 300, 255}, {5, 3, 2}} {
		r := rand.New(rand.NewPCG(uint64(size.rows), 5))
		x := drawRows(r, size.rows, size.dim, 0)
		for i := range x {
			for j := range x[i] {
				if j%2 == 0 && r.IntN(5) > 0 {
					x[i][j] = 0
				}
			}
		}
		d := mustQuantise(t, x, size.bins)
		whole := newView(d)
		part := whole.scratch(1 + size.dim/3)
		var columns []column
		for _, k := range r.Perm(len(whole.columns))[:len(part.columns)] {
			columns = append(columns, whole.columns[k])
		}
		slices.SortFunc(columns, func(a, b column) int { return a.feature - b.feature })
		for i := range part.kept {
			if r.IntN(3) > 0 {
				part.kept[i] = 255
				part.rows = append(part.rows, int32(i))
			}
		}
		whole.partTo(&part, columns)
		if several := len(whole.blocks) > 1; several != (size.dim == 300) {
			t.Errorf("%d columns are in %d blocks", size.dim, len(whole.blocks))
		}
		for name, v := range map[string]*view{"all": &whole, "part": &part} {
			t.Run(fmt.Sprint(size, " ", name), func(t *testing.T) { checkHistograms(t, r, d, v) })
		}
	}
}

func checkHistograms(t *testing.T, r *rand.Rand, d *Data, v *view) {
	s := newSearcher(v, MaxDepth)
	s.setUnit(1024)
	pairs, of := drawPairs(r, d.rows), make([]uint8, d.rows)
	nodes := []node{{total: v.sum(pairs), rows: int32(len(v.rows))}}
	for range MaxDepth {
		s.fill(v, nodes, of, pairs)
		for k, n := range nodes {
			if n.hist == noHist {
				continue
			}
			h := s.of(v, n.hist)
			want := make([]int64, len(h))
			for _, i := range v.rows {
				for c, column := range v.columns {
					if int(of[i]) == k {
						want[c<<v.shift+int(d.binned.column(column.feature)[i])] += pairs[i]
					}
				}
			}
			if !slices.Equal(h, want) {
				t.Fatalf("node %d of %d has other histograms than its rows", k, len(nodes))
			}
		}
		for k := range nodes {
			nodes[k].split, nodes[k].gain = noFeature, s.worth(nodes[k].total)
		}
		other := slices.Clone(nodes)
		s.scan(v, nodes)
		s.scanAll(v, other, make([]float64, d.dim))
		if !slices.Equal(nodes, other) {
			t.Fatalf("scan finds %v, scanAll %v", nodes, other)
		}
		var next []node
		var split splits
		for k := range nodes {
			n := &nodes[k]
			split.cut[k] = MaxBins
			if n.hist == noHist || r.IntN(6) == 0 {
				next = append(next, node{total: n.total, hist: noHist, rows: n.rows}, node{hist: noHist})
				continue
			}
			c := r.IntN(len(v.columns))
			split.column[k], split.cut[k] = v.columns[c].feature*d.rows, uint8(r.IntN(v.columns[c].cuts))
			left := sum(s.of(v, n.hist)[c<<v.shift:][:split.cut[k]+1])
			next = append(next, node{total: left, hist: n.hist}, node{total: n.total - left, hist: n.hist})
		}
		if len(next) > 1<<(MaxDepth-1) {
			break
		}
		descend(of, v.kept, d.binned.bins, &split, len(nodes))
		for k := range nodes {
			if next[2*k].hist != noHist {
				next[2*k].rows, next[2*k+1].rows = nodes[k].rows-split.right[k], split.right[k]
			}
		}
		nodes = next
	}
}

// float32 is quantised as the same numbers in float64.
func TestQuantiseIsTheSameForFloat32(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		rows, dim, values := 1+r.IntN(400), 1+r.IntN(40), []float64{3, 40, 1e6}[r.IntN(3)]
		narrow, wide := make([][]float32, rows), make([][]float64, rows)
		for i := range narrow {
			narrow[i], wide[i] = make([]float32, dim), make([]float64, dim)
			for j := range dim {
				v := float32(math.Round(values*r.NormFloat64())) / 7
				switch r.IntN(9) {
				case 0:
					v = []float32{float32(math.Copysign(0, -1)), math.MaxFloat32, -math.MaxFloat32,
						math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32}[r.IntN(5)]
				case 1, 2, 3, 4:
					if j%3 > 0 {
						v = 0
					}
				}
				narrow[i][j], wide[i][j] = v, float64(v)
			}
		}
		most := 2 + r.IntN(MaxBins-1)
		got, want := mustQuantise(t, narrow, most), mustQuantise(t, wide, most)
		if !sameBits(got.cuts, want.cuts) || !slices.Equal(got.first, want.first) ||
			!slices.Equal(got.binned.bins, want.binned.bins) || !sameBits(got.columns(), want.columns()) ||
			!slices.Equal(got.binned.dense, want.binned.dense) || len(got.binned.sparse) != len(want.binned.sparse) {
			t.Fatalf("seed %d: %d rows of %d values in %d bins are quantised otherwise", seed, rows, dim, most)
		}
		for k, s := range got.binned.sparse {
			w := want.binned.sparse[k]
			if s.feature != w.feature || s.dominant != w.dominant || s.used != w.used ||
				!slices.Equal(s.rows, w.rows) || !slices.Equal(s.bins, w.bins) {
				t.Fatalf("seed %d: column %d lists other rows", seed, s.feature)
			}
		}
		narrow[r.IntN(rows)][r.IntN(dim)] = float32(math.Inf(1 - 2*r.IntN(2)))
		if _, err := Quantise(narrow, most); err == nil {
			t.Fatalf("seed %d: an infinite value is quantised", seed)
		}
	}
}
