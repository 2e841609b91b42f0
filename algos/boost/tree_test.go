package boost

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/internal/logistic"
)

// slowSplit is the split with the least Σ√(W⁺W⁻) among the given rows, tried on
// every one, and that sum; ok is false if no row set is divided.
func slowSplit(d *Data, x [][]float64, y, w []float64, rows []int) (best Split, cost float64, ok bool) {
	cost = math.Inf(1)
	for j := range d.Dim() {
		for _, cut := range d.Cuts(j) {
			var part [2][2]float64
			for _, i := range rows {
				part[Split{j, cut}.above(x[i])][class(y[i])] += w[i]
			}
			if c := math.Sqrt(part[0][0]*part[0][1]) + math.Sqrt(part[1][0]*part[1][1]); c < cost-1e-13 {
				best, cost, ok = Split{j, cut}, c, true
			}
		}
	}
	return best, cost, ok
}

func slowUndivided(y, w []float64, rows []int) float64 {
	var part [2]float64
	for _, i := range rows {
		part[class(y[i])] += w[i]
	}
	return math.Sqrt(part[0] * part[1])
}

// slowTree grows a tree greedily and returns it with the leaf of each row.
func slowTree(d *Data, x [][]float64, y, w []float64, depth int) (Tree, []int) {
	rows := make([]int, len(x))
	for i := range rows {
		rows[i] = i
	}
	root, _, _ := slowSplit(d, x, y, w, rows)
	t := stub(root.Feature, root.Threshold, 0, 0)
	if depth == 2 {
		for side := range 2 {
			var part []int
			for _, i := range rows {
				if root.above(x[i]) == side {
					part = append(part, i)
				}
			}
			if s, cost, ok := slowSplit(d, x, y, w, part); ok && cost < slowUndivided(y, w, part)-1e-13 {
				t.Children[side] = s
			}
		}
	}
	leaf := make([]int, len(x))
	for i := range x {
		leaf[i] = t.Leaf(x[i])
	}
	return t, leaf
}

func sameShape(a, b Tree) bool { return a.Root == b.Root && a.Children == b.Children }

func treeTask(seed uint64) (x [][]float64, y, weights []float64) {
	r := rand.New(rand.NewPCG(seed, 31))
	rows, dim := 2+r.IntN(150), 1+r.IntN(7)
	x = drawRows(r, rows, dim, []int{0, 3, 25}[seed%3])
	if seed%4 == 0 {
		for i := range x {
			for j := range x[i] {
				if r.IntN(3) > 0 {
					x[i][j] = 0
				}
			}
		}
	}
	y = drawLabels(r, x)
	weights = make([]float64, rows)
	for i := range weights {
		weights[i] = r.Float64()
	}
	return x, y, weights
}

// slowNewton is a node of the tree that LogitTrees' documentation describes, tried on every
// row: the rows in it, and what it does with them.
type slowNewton struct {
	d    *Data
	x    [][]float64
	g, h []float64 // ω(y₊−p) and ω·2p(1−p)
}

func (s *slowNewton) sums(rows []int) (g, h float64) {
	for _, i := range rows {
		g, h = g+s.g[i], h+s.h[i]
	}
	return g, h
}

func (s *slowNewton) worth(rows []int) float64 {
	g, h := s.sums(rows)
	return g * g / (h + 1)
}

func divideRows(x [][]float64, by Split, rows []int) (parts [2][]int) {
	for _, i := range rows {
		side := by.above(x[i])
		parts[side] = append(parts[side], i)
	}
	return parts
}

// check fails unless t grows as (1) says among rows from node k on. A split that gains as
// much as the best to within 1e−6 of the sums is as good.
func (s *slowNewton) check(t *testing.T, tree *LogitTreesRound, k int, rows []int) {
	if len(rows) == 0 {
		return
	}
	if first := 1<<tree.Depth - 1; k >= first {
		g, h := s.sums(rows)
		if v := 0.3 * min(max(g/(h+1), -2), 2); !near(tree.Leaves[k-first], v, 1e-6) {
			t.Fatalf("leaf %d is %v, want %v", k-first, tree.Leaves[k-first], v)
		}
		return
	}
	own, best := s.worth(rows), math.Inf(-1)
	for j := range s.d.Dim() {
		for _, cut := range s.d.Cuts(j) {
			parts := divideRows(s.x, Split{j, cut}, rows)
			best = max(best, s.worth(parts[0])+s.worth(parts[1]))
		}
	}
	got := tree.Splits[k]
	parts := divideRows(s.x, got, rows)
	const slack = 1e-6
	switch gain := s.worth(parts[0]) + s.worth(parts[1]); {
	case got.Feature == noFeature && (k == 0 || best > own+slack*(1+own)):
		t.Fatalf("node %d of %d rows does not divide, worth %v; divided it is worth %v", k, len(rows), own, best)
	case got.Feature != noFeature && gain < best-slack*(1+best):
		t.Fatalf("node %d divides by %+v into worth %v, the best is %v", k, got, gain, best)
	case got.Feature != noFeature && k > 0 && gain < own-slack*(1+own):
		t.Fatalf("node %d divides by %+v, worth %v; undivided it is worth %v", k, got, gain, own)
	}
	s.check(t, tree, 2*k+1, parts[0])
	s.check(t, tree, 2*k+2, parts[1])
}

// Every round grows the tree of the documentation: here all search all, as there are no
// more than eight columns and the first round is the tenth's.
func TestLogitTreesAreTheFormula(t *testing.T) {
	for seed := range uint64(60) {
		x, y, ω := treeTask(seed)
		d := mustQuantise(t, x, 20)
		if d.Candidates() == 0 {
			continue
		}
		depth := 1 + int(seed%MaxDepth)
		b, err := NewLogitTrees(d, y, LogitTreesConfig{Weights: ω, Rounds: 8, Depth: depth, Trim: 1e-9})
		if err != nil {
			t.Fatal(err)
		}
		all := make([]int, len(x))
		for i := range all {
			all[i] = i
		}
		f := make([]float64, len(x))
		slow := &slowNewton{d: d, x: x, g: make([]float64, len(x)), h: make([]float64, len(x))}
		for b.Round() {
			for i := range x {
				p := 1 / (1 + math.Exp(-2*f[i]))
				slow.g[i], slow.h[i] = ω[i]*((1+y[i])/2-p), ω[i]*2*p*(1-p)
			}
			slow.check(t, &b.log[len(b.log)-1], 0, all)
			for i := range x { // as trained: the next round is judged by itself
				f[i] = b.Ensemble().F(x[i])
			}
		}
		loss, total := 0.0, 0.0
		for i := range x {
			loss += ω[i] * math.Log1p(math.Exp(-2*y[i]*f[i]))
			total += ω[i]
		}
		if len(b.log) != 8 || !near(b.Cost(), loss/total, 1e-10) {
			t.Errorf("seed %d: %d rounds, cost %v, want %v", seed, len(b.log), b.Cost(), loss/total)
		}
	}
}

// Between searches of all, a round searches the columns that gained most, and the rows
// whose slopes are all but Trim of the sum. Leaves still come from all rows.
func TestLogitTreesSearchTheBestPart(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 43))
	x := drawRows(r, 900, 30, 0)
	for i := range x {
		for j := range 12 {
			if r.IntN(5) > 0 {
				x[i][j] = 0 // sparse columns
			}
		}
	}
	y := drawLabels(r, x)
	d := mustQuantise(t, x, 32)
	const trim = 0.05
	b, err := NewLogitTrees(d, y, LogitTreesConfig{Rounds: 60, Columns: 9, Trim: trim})
	if err != nil {
		t.Fatal(err)
	}
	f, trimmed := make([]float64, len(x)), 0
	for b.Round() {
		tree := &b.log[len(b.log)-1]
		if at := len(b.log) - 1; at%screen == 0 {
			all, kept := 0.0, 0.0
			for i := range x {
				all += math.Abs(slopeOf(b, i))
			}
			for _, i := range b.part.rows {
				kept += math.Abs(slopeOf(b, int(i)))
			}
			if len(b.part.columns) != 9 || kept < (1-trim)*all {
				t.Fatalf("round %d: %d columns, and rows with %v of the slopes' %v", at, len(b.part.columns), kept, all)
			}
			trimmed = max(trimmed, len(x)-len(b.part.rows))
			for j := range b.gains { // the best nine
				chosen := slices.ContainsFunc(b.part.columns, func(c column) bool { return c.feature == j })
				for _, c := range b.part.columns {
					if !chosen && b.gains[j] > b.gains[c.feature] {
						t.Fatalf("round %d: column %d gained %v, and not it but %d with %v is searched", at, j, b.gains[j], c.feature, b.gains[c.feature])
					}
				}
			}
		} else {
			for _, s := range tree.Splits[:15] {
				if s.Feature != noFeature && !slices.ContainsFunc(b.part.columns, func(c column) bool { return c.feature == s.Feature }) {
					t.Fatalf("round %d divides by column %d, which it does not search", at, s.Feature)
				}
			}
		}
		var g, h [16]float64
		leaf := make([]int, len(x))
		for i := range x {
			k := 0
			for k < 15 {
				k = 2*k + 1 + tree.Splits[k].above(x[i])
			}
			leaf[i] = k - 15
			p := 1 / (1 + math.Exp(-2*f[i]))
			g[k-15] += (1+y[i])/2 - p
			h[k-15] += 2 * p * (1 - p)
		}
		for i, k := range leaf {
			if v := 0.3 * min(max(g[k]/(h[k]+1), -2), 2); !near(tree.Leaves[k], v, 1e-6) {
				t.Fatalf("round %d: leaf %d is %v, want %v of all rows", len(b.log)-1, k, tree.Leaves[k], v)
			}
			f[i] += tree.Leaves[k]
		}
	}
	if len(b.log) != 60 || trimmed == 0 {
		t.Errorf("%d rounds; at most %d rows were left out", len(b.log), trimmed)
	}
}

func slopeOf(b *LogitTrees, i int) float64 {
	g, _ := unpack(b.pairs[i])
	return g
}

// Packed sums are those of their parts, whatever the order and the signs.
func TestPairsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 44))
	for range 200 {
		total, g, h := int64(0), int64(0), int64(0)
		for range 1 + r.IntN(300) {
			slope, curve := r.Int64N(1<<21)-1<<20, r.Int64N(1<<22)
			total, g, h = total+(slope<<32+curve), g+slope, h+curve
			if r.IntN(4) == 0 {
				total, g, h = total-(slope<<32+curve), g-slope, h-curve
			}
			if gotG, gotH := unpack(total); gotG != float64(g) || gotH != float64(h) {
				t.Fatalf("sums %v and %v, want %d and %d", gotG, gotH, g, h)
			}
			if got := slope64(slope<<32 + curve); got != float64(max(slope, -slope)) {
				t.Fatalf("slope %v of %d", got, slope)
			}
		}
	}
	for _, v := range []float64{0, 0.49, 0.5, 0.51, 1.5, 2.5, 1 << 30, 1<<40 + 0.75, 1<<51 - 1} {
		if got := nearest(v); float64(got) != math.RoundToEven(v) {
			t.Errorf("nearest to %v is %d", v, got)
		}
	}
}

func slope64(pair int64) float64 { return float64(slope(pair)) }

func TestRealAdaBoostGrowsTheTreeOfLeastZ(t *testing.T) {
	for seed := range uint64(60) {
		x, y, ω := treeTask(seed)
		d := mustQuantise(t, x, 20)
		if d.Candidates() == 0 {
			continue
		}
		b, err := NewRealAdaBoost(d, y, RealAdaBoostConfig{Weights: ω, Rounds: 8, Depth: 2, Clip: 2, Shrink: 0.3})
		if err != nil {
			t.Fatal(err)
		}
		dist := make([]float64, len(x))
		for {
			b.WeightsTo(dist)
			if !b.Round() {
				break
			}
			want, leaf := slowTree(d, x, y, dist, 2)
			got := b.log[len(b.log)-1].Tree
			if !sameShape(got, want) {
				t.Fatalf("seed %d, round %d: %+v, want %+v", seed, len(b.log), got, want)
			}
			var w [4][2]float64
			for i, k := range leaf {
				w[k][class(y[i])] += dist[i]
			}
			s := 1 / float64(len(x))
			z := 0.0
			for i, k := range leaf {
				v := 0.3 * min(max(math.Log((w[k][1]+s)/(w[k][0]+s))/2, -2), 2)
				if !near(got.Value(x[i]), v, 1e-10) {
					t.Fatalf("seed %d: leaf %d is %v, want %v", seed, k, got.Value(x[i]), v)
				}
				z += dist[i] * math.Exp(-y[i]*v)
			}
			if !near(b.log[len(b.log)-1].Z, z, 1e-12) {
				t.Errorf("seed %d: Z %v, want %v", seed, b.log[len(b.log)-1].Z, z)
			}
		}
	}
}

// Exclusive or: no stump has an edge, and the root of a tree gains nothing either;
// its children separate the classes.
func TestDepthTwoLearnsExclusiveOr(t *testing.T) {
	x := [][]float64{{0, 0}, {0, 1}, {1, 0}, {1, 1}}
	y := []float64{-1, 1, 1, -1}
	d := mustQuantise(t, x, 0)
	a, err := NewAdaBoost(d, y, AdaBoostConfig{})
	mustTrain(t, a, err)
	if a.Stopped() != NoEdge || len(a.log) != 0 {
		t.Errorf("AdaBoost ran %d rounds and stopped with %v", len(a.log), a.Stopped())
	}
	l, err := NewLogitTrees(d, y, LogitTreesConfig{Rounds: 20, Depth: 2})
	mustTrain(t, l, err)
	r, err := NewRealAdaBoost(d, y, RealAdaBoostConfig{Rounds: 20, Depth: 2})
	mustTrain(t, r, err)
	for i := range x {
		for _, e := range []*Ensemble{l.Ensemble(), r.Ensemble()} {
			if e.F(x[i])*y[i] <= 0 {
				t.Errorf("f(%v) = %v", x[i], e.F(x[i]))
			}
		}
	}
	if tree := l.log[0]; tree.Depth != 2 || tree.Splits[0].Feature != 0 || tree.Splits[1].Feature != 1 {
		t.Errorf("tree %+v", tree)
	}
}

// If every feature has at most 255 distinct values, both searches give the same
// ensemble to the last bit.
func TestBothSearchesGiveTheSameEnsemble(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 41))
		rows := []int{30, 250, 3000}[seed%3]
		x := drawRows(r, rows, 8, 250)
		if seed%2 == 0 {
			for i := range x {
				for j := range 5 {
					if r.IntN(5) > 0 {
						x[i][j] = 0
					}
				}
			}
		}
		y := drawLabels(r, x)
		ω := make([]float64, rows)
		for i := range ω {
			ω[i] = r.Float64()
		}
		exact, quantised := mustData(t, x), mustQuantise(t, x, 0)
		for j := range 8 {
			if !slices.Equal(exact.Cuts(j), quantised.Cuts(j)) {
				t.Fatalf("feature %d: %d cuts, quantised %d", j, len(exact.Cuts(j)), len(quantised.Cuts(j)))
			}
		}
		for name, train := range map[string]func(d *Data) *Ensemble{
			"AdaBoost": func(d *Data) *Ensemble {
				b, err := NewAdaBoost(d, y, AdaBoostConfig{Weights: ω, Rounds: 40})
				mustTrain(t, b, err)
				return b.Ensemble()
			},
			"Real AdaBoost": func(d *Data) *Ensemble {
				b, err := NewRealAdaBoost(d, y, RealAdaBoostConfig{Weights: ω, Rounds: 40})
				mustTrain(t, b, err)
				return b.Ensemble()
			},
		} {
			a, b := train(exact), train(quantised)
			if a.Len() == 0 || !slices.Equal(a.trees, b.trees) {
				t.Errorf("seed %d: %s has %d hypotheses in sorted order, %d by histograms, not the same", seed, name, a.Len(), b.Len())
			}
		}
	}
}

// Cost returns Σ ω ln(1+e^(−2yf))/Σω so far, in nats.
func (b *LogitTrees) Cost() float64 {
	cost := 0.0
	fs := make([]float64, len(b.y))
	b.FTo(fs)
	for i, f := range fs {
		cost -= float64(b.weights[i] * logistic.LogSigmoid(2*f*b.y[i]))
	}
	return cost / b.total
}

// A step that is so long that a row's factor were no number is refused. The longest that is taken gives numbers.
func TestLogitTreesRefuseLongSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(350, 1))
	x, y := make([][]float64, 64), make([]float64, 64)
	for i := range x {
		x[i], y[i] = []float64{r.NormFloat64(), float64(i % 5)}, float64(2*(i%2)-1)
	}
	d := mustQuantise(t, x, 16)
	for _, clip := range []float64{350.1, 1e6, math.Inf(1)} {
		if _, err := NewLogitTrees(d, y, LogitTreesConfig{Clip: clip, Shrink: 1}); err == nil {
			t.Errorf("leaves up to %v are taken", clip)
		}
	}
	b, err := NewLogitTrees(d, y, LogitTreesConfig{Clip: 350, Shrink: 1, Rounds: 30})
	mustTrain(t, b, err)
	for i, z := range b.z {
		if !(z >= 0) || math.IsInf(z, 0) {
			t.Fatalf("row %d has the odds %v", i, z)
		}
	}
}
