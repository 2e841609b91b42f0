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

// ENSEMBLES: split by Σ√(W₊W₋), leaves G/(H+1) with G = Σω(y₊−p) and
// H = Σω·2p(1−p), clipped ±2, shrunk by .3.
func TestLogitTreesAreTheRecipe(t *testing.T) {
	for seed := range uint64(60) {
		x, y, ω := treeTask(seed)
		d := mustQuantise(t, x, 20)
		if d.Candidates() == 0 {
			continue
		}
		b, err := NewLogitTrees(d, y, LogitTreesConfig{Weights: ω, Rounds: 8})
		if err != nil {
			t.Fatal(err)
		}
		f, w := make([]float64, len(x)), make([]float64, len(x))
		for b.Round() {
			sum := 0.0
			for i := range x {
				w[i] = ω[i] / (1 + math.Exp(2*y[i]*f[i]))
				sum += w[i]
			}
			for i := range w {
				w[i] /= sum
			}
			want, leaf := slowTree(d, x, y, w, 2)
			got := b.log[len(b.log)-1].Tree
			if !sameShape(got, want) {
				t.Fatalf("seed %d, round %d: %+v, want %+v", seed, len(b.log), got, want)
			}
			var g, h [4]float64
			for i, k := range leaf {
				p := 1 / (1 + math.Exp(-2*f[i]))
				g[k] += ω[i] * ((1+y[i])/2 - p)
				h[k] += ω[i] * 2 * p * (1 - p)
			}
			for i, k := range leaf {
				v := 0.3 * min(max(g[k]/(h[k]+1), -2), 2)
				if got := b.log[len(b.log)-1].Tree.Value(x[i]); !near(got, v, 1e-10) {
					t.Fatalf("seed %d: leaf %d is %v, want %v", seed, k, got, v)
				}
				f[i] += v
			}
		}
		loss := 0.0
		total := 0.0
		for i := range x {
			loss += ω[i] * math.Log1p(math.Exp(-2*y[i]*f[i]))
			total += ω[i]
		}
		if !near(b.Cost(), loss/total, 1e-10) {
			t.Errorf("seed %d: cost %v, want %v", seed, b.Cost(), loss/total)
		}
	}
}

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
	l, err := NewLogitTrees(d, y, LogitTreesConfig{Rounds: 20})
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
	if tree := l.log[0].Tree; tree.Depth() != 2 || tree.Root.Feature != 0 || tree.Children[0].Feature != 1 {
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
			"AnyBoost": func(d *Data) *Ensemble {
				b, err := NewAnyBoost(d, y, AnyBoostConfig{Weights: ω, Rounds: 40, Cost: LogitCost})
				mustTrain(t, b, err)
				return b.Ensemble()
			},
			"LogitTrees": func(d *Data) *Ensemble {
				b, err := NewLogitTrees(d, y, LogitTreesConfig{Weights: ω, Rounds: 40, Depth: 1})
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
	for i, f := range b.f {
		cost -= float64(b.weights[i] * logistic.LogSigmoid(2*f*b.y[i]))
	}
	return cost / b.total
}
