package crf

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/lab/bblr"
)

// labellings yields all labellings of n sites.
func labellings(n int) func(yield func([]float64) bool) {
	return func(yield func([]float64) bool) {
		y := make([]float64, n)
		for s := range 1 << n {
			for i := range y {
				y[i] = float64(2*(s>>i&1) - 1)
			}
			if !yield(y) {
				return
			}
		}
	}
}

// randomField returns costs of a graph. Some pairs forbid a labelling.
func randomField(g *Graph, scale float64, r *rand.Rand) *Field {
	f := &Field{Site: make([][2]float64, g.sites), Pair: make([][2][2]float64, len(g.pairs))}
	for i := range f.Site {
		f.Site[i] = [2]float64{scale * r.NormFloat64(), scale * r.NormFloat64()}
	}
	for l := range f.Pair {
		for a := range 2 {
			for b := range 2 {
				f.Pair[l][a][b] = scale * r.NormFloat64()
			}
		}
		if r.IntN(5) == 0 {
			f.Pair[l][1][1] = math.Inf(1)
		}
	}
	return f
}

// graphs are the 3×4 grid, one that is wider than long, a cycle with a site apart, and
// a complete graph.
func graphs(t *testing.T) map[string]*Graph {
	t.Helper()
	ring, err := NewGraph(6, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}})
	if err != nil {
		t.Fatal(err)
	}
	var all [][2]int
	for j := range 7 {
		for i := range j {
			all = append(all, [2]int{i, j})
		}
	}
	complete, err := NewGraph(7, all)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Graph{"3×4": Grid(3, 4), "4×2": Grid(4, 2), "1×1": Grid(1, 1), "ring": ring, "complete": complete}
}

// Reference: enumeration of all labellings, 4,096 on a 3×4 grid. The partition function,
// the marginals of sites and pairs, the expected errors and the least energy are sums and
// minima of it. Costs of 1,000 nats change nothing.
func TestInferenceAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, g := range graphs(t) {
		for _, scale := range []float64{0, 1, 30, 1000} {
			f := randomField(g, scale, r)
			truth := make([]float64, g.sites)
			for i := range truth {
				truth[i] = float64(2*r.IntN(2) - 1)
			}
			least := math.Inf(1)
			for y := range labellings(g.sites) {
				least = min(least, g.Energy(f, y))
			}
			z := 0.0
			site, equal, both := make([]float64, g.sites), make([]float64, len(g.pairs)), make([]float64, len(g.pairs))
			for y := range labellings(g.sites) {
				p := math.Exp(least - g.Energy(f, y))
				z += p
				for i, v := range y {
					if v > 0 {
						site[i] += p
					}
				}
				for l, q := range g.pairs {
					if y[q[0]] == y[q[1]] {
						equal[l] += p
						if y[q[0]] > 0 {
							both[l] += p
						}
					}
				}
			}
			m := g.Marginals(f)
			if want := math.Log(z) - least; math.Abs(m.LogZ-want) > 1e-10*(1+math.Abs(want)) || g.LogPartition(f) != m.LogZ {
				t.Errorf("%s, costs of %v: ln Z is %v, want %v", name, scale, m.LogZ, want)
			}
			for what, c := range map[string][2][]float64{"Site": {m.Site, site}, "Equal": {m.Equal, equal}, "Both": {m.Both, both}} {
				for k, got := range c[0] {
					if want := c[1][k] / z; math.Abs(got-want) > 1e-9 {
						t.Errorf("%s, costs of %v: %s[%d] is %v, want %v", name, scale, what, k, got, want)
					}
				}
			}
			if got := g.Energy(f, g.Argmin(f)); math.Abs(got-least) > 1e-10*(1+math.Abs(least)) {
				t.Errorf("%s, costs of %v: Argmin has the energy %v, want %v", name, scale, got, least)
			}
			// A local minimum: no better than the least energy, and no single change helps.
			y := g.ICM(f, truth)
			e := g.Energy(f, y)
			if start := g.Energy(f, truth); e > start || e < least-1e-9*(1+math.Abs(least)) {
				t.Errorf("%s, costs of %v: ICM goes from %v to %v, the least is %v", name, scale, start, e, least)
			}
			for i := range y {
				y[i] = -y[i]
				if other := g.Energy(f, y); other < e-1e-9*(1+math.Abs(e)) {
					t.Errorf("%s, costs of %v: ICM stops at %v, another label of site %d has %v", name, scale, e, i, other)
				}
				y[i] = -y[i]
			}
		}
	}
}

var likelihoods = map[string]bblr.Likelihood{
	"logistic": {}, "BBLR1": bblr.Counts(1, 1, 100), "steep": {Mix: 0.3, Theta: 0.2, Gamma: 5},
	"no least probability": {Mix: 0.1, Theta: 0, Gamma: 2}, "BBLR2": bblr.Counts(40, 60, 100),
}

// samplesOf returns images on 3×4 grids and pages.
func samplesOf(n int, seed uint64) (images, pages []Sample) {
	r := rand.New(rand.NewPCG(seed, 1))
	g := Grid(3, 4)
	scene := Scene{Rows: 3, Columns: 4, Signal: 0.5, Outliers: 0.1, Range: 6, Likeness: 0.5}
	page := Page{Faces: 7, Signal: 0.5, Outliers: 0.1, Range: 6, Likeness: 1}
	for range n {
		images, pages = append(images, scene.Draw(g, r)), append(pages, page.Draw(r))
	}
	return images, pages
}

// Reference: equation 40 by its factors. The probability of the labels is the product of
// the classifiers' probabilities and of the normal densities of D, over the sum of such
// products.
func TestLossAgainstEquation40(t *testing.T) {
	images, pages := samplesOf(3, 3)
	normal := func(d, mean float64) float64 { return math.Exp(-(d - mean) * (d - mean) / 2) }
	const m0, m1 = -0.7, 1.1
	for name, l := range likelihoods {
		for _, s := range append(images, pages...) {
			m := Model{Unary: l, W: []float64{0.8, -0.3, 0.2, 0.1}, V: [2]float64{(m0*m0 - m1*m1) / 2, m1 - m0}}
			if l.Gamma == 0 {
				l.Gamma = 1
			}
			product := func(y []float64) float64 {
				p := 1.0
				for i, x := range s.X {
					μ := l.Prob(m.z(x))
					if y[i] < 0 {
						μ = 1 - μ
					}
					p *= μ
				}
				for k, q := range s.Graph.pairs {
					match := y[q[0]] == y[q[1]] && (s.Match == Equal || y[q[0]] > 0)
					switch {
					case s.exclusive(k):
						if y[q[0]] > 0 && y[q[1]] > 0 {
							p = 0
						}
					case match:
						p *= normal(s.D[k], m1)
					default:
						p *= normal(s.D[k], m0)
					}
				}
				return p
			}
			z := 0.0
			for y := range labellings(len(s.Y)) {
				z += product(y)
			}
			if got, want := m.Loss(s), -math.Log(product(s.Y)/z); math.Abs(got-want) > 1e-9*(1+want) {
				t.Errorf("%s, %d sites: the loss is %v, want %v", name, len(s.Y), got, want)
			}
		}
	}
}

// The gradient is that of differences.
func TestGradientAgainstDifferences(t *testing.T) {
	images, pages := samplesOf(2, 4)
	for name, l := range likelihoods {
		for kind, samples := range map[string][]Sample{"images": images, "pages": pages} {
			j := &objective{samples: samples, model: Model{Unary: l, W: make([]float64, 4)}, lambda: 0.1, grad: make([]float64, 6)}
			at := []float64{0.8, -0.3, 0.2, 0.1, -0.3, 0.9}
			j.value(at)
			grad := slices.Clone(j.grad)
			for k := range at {
				const h = 1e-5
				up, down := slices.Clone(at), slices.Clone(at)
				up[k] += h
				down[k] -= h
				want := (j.value(up) - j.value(down)) / (2 * h)
				if math.Abs(grad[k]-want) > 1e-6*(1+math.Abs(want)) {
					t.Errorf("%s, %s: entry %d of the gradient is %v, by differences %v", name, kind, k, grad[k], want)
				}
			}
		}
	}
}

// A fit ends where the gradient vanishes, and no random step from there is better. The
// logistic field's minimum does not depend on the start.
func TestFit(t *testing.T) {
	samples, _ := samplesOf(12, 5)
	var ends []float64
	for _, start := range [][]float64{{0, 0, 0, 0}, {2, -1, 1, 0.5}} {
		for _, name := range []string{"logistic", "BBLR1"} {
			m, r, err := Fit(t.Context(), samples, Model{Unary: likelihoods[name], W: start}, 0.1)
			if err != nil {
				t.Fatal(err)
			}
			if r.LossEnd > r.LossStart || r.Gradient > 1e-3 {
				t.Errorf("%s: the loss goes from %v to %v, with a gradient of %v", name, r.LossStart, r.LossEnd, r.Gradient)
			}
			if name == "logistic" {
				ends = append(ends, r.LossEnd)
			}
			j := &objective{samples: samples, model: Model{Unary: m.Unary, W: make([]float64, 4)}, lambda: 0.1, grad: make([]float64, 6)}
			rnd := rand.New(rand.NewPCG(1, 1))
			for range 10 {
				at := append(slices.Clone(m.W), m.V[:]...)
				for k := range at {
					at[k] += 0.02 * rnd.NormFloat64()
				}
				if v := j.value(at); v < r.LossEnd {
					t.Errorf("%s: the loss is %v near an end of %v", name, v, r.LossEnd)
				}
			}
		}
	}
	if math.Abs(ends[0]-ends[1]) > 1e-6*ends[0] {
		t.Errorf("the logistic field ends at the losses %v", ends)
	}
}

// FitMatch finds the means that the data are drawn with, so v = (0, 2·Likeness).
func TestFitMatch(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	g := Grid(6, 8)
	scene := Scene{Rows: 6, Columns: 8, Likeness: 0.6}
	var samples []Sample
	for range 100 {
		samples = append(samples, scene.Draw(g, r))
	}
	v, err := FitMatch(samples)
	if err != nil || math.Abs(v[0]) > 0.1 || math.Abs(v[1]-1.2) > 0.1 {
		t.Errorf("v = %v, error %v; want about (0, 1.2)", v, err)
	}
	one := samples[0]
	one.Y = slices.Repeat([]float64{1}, g.sites)
	if _, err := FitMatch([]Sample{one}); !errors.Is(err, ErrOneKind) {
		t.Errorf("labels that are all equal: error %v, want %v", err, ErrOneKind)
	}
}

// What exact inference cannot do is refused: a column of 17 pixels.
func TestTooWide(t *testing.T) {
	pairs := [][2]int{}
	for i := range 17 {
		pairs = append(pairs, [2]int{i, i + 17})
	}
	if _, err := NewGraph(34, pairs); !errors.Is(err, ErrTooWide) {
		t.Errorf("17 open sites: error %v, want %v", err, ErrTooWide)
	}
	for _, bad := range [][][2]int{{{1, 0}}, {{0, 0}}, {{0, 2}}, {{-1, 1}}, {{0, 1}, {0, 1}}} {
		if _, err := NewGraph(2, bad); err == nil {
			t.Errorf("pairs %v of 2 sites: no error", bad)
		}
	}
}
