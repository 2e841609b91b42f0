package crf

import (
	"errors"
	"fmt"
	"slices"
)

// MaxOpen bounds the open sites of a graph. A table then has 2¹⁶ numbers.
const MaxOpen = 16

// ErrTooWide says that exact inference would need too large tables. Number the sites
// so that neighbours are close.
var ErrTooWide = errors.New("too many open sites")

// A Graph says which sites have a pair. It never changes, so goroutines may share it.
type Graph struct {
	sites int
	pairs [][2]int // i < j
	steps []step   // of the elimination, one for each site
}

// A step adds a site to the table and then eliminates the open sites that have no pair
// with a later one.
//
//	closed table of step i−1   2^(width−1) states; bit b is the label of open site b
//	table of step i            2^width states; the top bit is site i
//	closed table of step i     to[s] is the state without the eliminated sites
type step struct {
	width int
	pairs []openPair
	to    []int32
	left  int // states of the closed table
}

// An openPair is a pair of the site that a step adds.
type openPair struct {
	index int // of the pair in the graph
	bit   int // of the pair's earlier site in the step's table
}

// NewGraph returns a graph of sites 0 … sites−1. A pair {i, j} has i < j; no pair may be
// there twice. The order of the sites is the order of elimination.
func NewGraph(sites int, pairs [][2]int) (*Graph, error) {
	g := &Graph{sites: sites, pairs: slices.Clone(pairs), steps: make([]step, sites)}
	last := make([]int, sites) // the last site that a site has a pair with, or itself
	for i := range last {
		last[i] = i
	}
	seen := map[[2]int]bool{}
	for _, p := range pairs {
		if p[0] < 0 || p[0] >= p[1] || p[1] >= sites || seen[p] {
			return nil, fmt.Errorf("crf: pair %v of %d sites: want two sites in rising order, once", p, sites)
		}
		seen[p] = true
		last[p[0]] = max(last[p[0]], p[1])
	}
	var open []int // by bit
	for i := range g.steps {
		open = append(open, i)
		if len(open) > MaxOpen {
			return nil, fmt.Errorf("crf: %d sites, %d pairs: %w", sites, len(pairs), ErrTooWide)
		}
		s := &g.steps[i]
		s.width = len(open)
		for k, p := range pairs {
			if p[1] == i {
				s.pairs = append(s.pairs, openPair{index: k, bit: slices.Index(open, p[0])})
			}
		}
		s.to, s.left = closing(open, last, i)
		open = slices.DeleteFunc(open, func(j int) bool { return last[j] <= i })
	}
	return g, nil
}

// closing returns for each labelling of the open sites that of those which stay open
// after site i, and the number of the latter.
func closing(open, last []int, i int) (to []int32, left int) {
	to = make([]int32, 1<<len(open))
	bit := 0
	for b, j := range open {
		if last[j] <= i {
			continue
		}
		for s := range to {
			to[s] |= int32(s >> b & 1 << bit)
		}
		bit++
	}
	return to, 1 << bit
}

// Grid returns an image whose pixels have pairs with those above, below and beside. Site
// column·rows + row is a pixel. Exact inference costs 2^rows for a pixel, so rows should
// be the fewer; it panics if they are more than MaxOpen−1.
func Grid(rows, columns int) *Graph {
	var pairs [][2]int
	for i := range rows * columns {
		if (i+1)%rows != 0 {
			pairs = append(pairs, [2]int{i, i + 1})
		}
		if i+rows < rows*columns {
			pairs = append(pairs, [2]int{i, i + rows})
		}
	}
	return mustGraph(rows*columns, pairs)
}

func mustGraph(sites int, pairs [][2]int) *Graph {
	g, err := NewGraph(sites, pairs)
	if err != nil {
		panic(err)
	}
	return g
}

// Sites returns the number of sites.
func (g *Graph) Sites() int { return g.sites }

// Pairs returns the pairs, to read only.
func (g *Graph) Pairs() [][2]int { return g.pairs }

// A Field is an energy on a graph, in nats:
//
//	E(y) = Σᵢ Site[i][yᵢ] + Σₗ Pair[l][yᵢ][yⱼ],
//
// where a label −1 has the index 0 and +1 the index 1. A cost may be +Inf, but at least
// one labelling must have a finite energy.
type Field struct {
	Site [][2]float64
	Pair [][2][2]float64
}

// check panics if f does not fit g.
func (g *Graph) check(f *Field) {
	if len(f.Site) != g.sites || len(f.Pair) != len(g.pairs) {
		panic(fmt.Sprintf("crf: costs of %d sites and %d pairs for a graph of %d and %d",
			len(f.Site), len(f.Pair), g.sites, len(g.pairs)))
	}
}

// indexOf returns the index of a label ±1.
func indexOf(y float64) int {
	if y > 0 {
		return 1
	}
	return 0
}

// Energy returns E(y).
func (g *Graph) Energy(f *Field, y []float64) float64 {
	g.check(f)
	sum := 0.0
	for i, v := range y {
		sum += f.Site[i][indexOf(v)]
	}
	for l, p := range g.pairs {
		sum += f.Pair[l][indexOf(y[p[0]])][indexOf(y[p[1]])]
	}
	return sum
}
