package crf

import (
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
)

// Marginals are probabilities under p(y) ∝ e^−E(y).
type Marginals struct {
	LogZ  float64   // ln Σ e^−E(y)
	Site  []float64 // P(yᵢ = +1)
	Equal []float64 // P(yᵢ = yⱼ) for each pair
	Both  []float64 // P(yᵢ = yⱼ = +1) for each pair
}

// logAdd returns ln(eᵃ + eᵇ).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + logistic.Log1p(logistic.Exp(b-a))
}

// extendTo sets table, of 2^width states, to the closed table before the step minus the
// costs that site i adds.
func (g *Graph) extendTo(table, closed []float64, f *Field, i int) {
	s := &g.steps[i]
	for label := range 2 {
		half := table[label<<(s.width-1):][:len(closed)]
		for k, v := range closed {
			for _, p := range s.pairs {
				v -= f.Pair[p.index][k>>p.bit&1][label]
			}
			half[k] = v - f.Site[i][label]
		}
	}
}

// forward returns the table of each step: the logarithm of the sum of e^−E over the
// labels of eliminated sites. The last number is LogZ.
func (g *Graph) forward(f *Field) (tables [][]float64, logZ float64) {
	closed := []float64{0}
	for i := range g.steps {
		s := &g.steps[i]
		table := make([]float64, 1<<s.width)
		g.extendTo(table, closed, f, i)
		tables = append(tables, table)
		closed = make([]float64, s.left)
		for k := range closed {
			closed[k] = math.Inf(-1)
		}
		for k, v := range table {
			closed[s.to[k]] = logAdd(closed[s.to[k]], v)
		}
	}
	return tables, closed[0]
}

// LogPartition returns ln Σ e^−E(y).
func (g *Graph) LogPartition(f *Field) float64 {
	g.check(f)
	_, logZ := g.forward(f)
	return logZ
}

// Marginals returns the exact marginals. It costs O(2^open) for each site.
func (g *Graph) Marginals(f *Field) *Marginals {
	g.check(f)
	tables, logZ := g.forward(f)
	m := &Marginals{
		LogZ: logZ, Site: make([]float64, g.sites),
		Equal: make([]float64, len(g.pairs)), Both: make([]float64, len(g.pairs)),
	}
	after := []float64{0} // for each state of the closed table: the same sum over later sites
	for i := g.sites - 1; i >= 0; i-- {
		s, table := &g.steps[i], tables[i]
		top := len(table) / 2
		for k, v := range table {
			p := logistic.Exp(v + after[s.to[k]] - logZ)
			if k >= top {
				m.Site[i] += p
			}
			for _, q := range s.pairs {
				if k>>q.bit&1 == k/top {
					m.Equal[q.index] += p
					if k >= top {
						m.Both[q.index] += p
					}
				}
			}
		}
		if i == 0 {
			break
		}
		before := make([]float64, top)
		for k := range before {
			var sums [2]float64
			for label := range sums {
				v := after[s.to[label*top+k]] - f.Site[i][label]
				for _, q := range s.pairs {
					v -= f.Pair[q.index][k>>q.bit&1][label]
				}
				sums[label] = v
			}
			before[k] = logAdd(sums[0], sums[1])
		}
		after = before
	}
	for _, p := range [][]float64{m.Site, m.Equal, m.Both} {
		for k, v := range p {
			p[k] = min(v, 1) // rounding
		}
	}
	return m
}

// Argmin returns the labels of least energy. Ties are broken in a fixed way.
func (g *Graph) Argmin(f *Field) []float64 {
	g.check(f)
	closed := []float64{0}
	best := make([][]int32, g.sites) // for each closed state the state of the table that leads to it
	for i := range g.steps {
		s := &g.steps[i]
		table := make([]float64, 1<<s.width)
		g.extendTo(table, closed, f, i)
		closed = make([]float64, s.left)
		best[i] = make([]int32, s.left)
		for k := range closed {
			closed[k], best[i][k] = math.Inf(-1), -1
		}
		for k, v := range table {
			if t := s.to[k]; best[i][t] < 0 || v > closed[t] {
				closed[t], best[i][t] = v, int32(k)
			}
		}
	}
	y := make([]float64, g.sites)
	state := int32(0)
	for i := g.sites - 1; i >= 0; i-- {
		k := best[i][state]
		top := int32(1) << (g.steps[i].width - 1)
		y[i] = -1
		if k >= top {
			y[i] = 1
		}
		state = k & (top - 1)
	}
	return y
}

// ICM returns a local minimum of the energy: it starts at y and sets one label after the
// other to the better one, until none changes (iterated conditional modes; Besag 1986,
// "On the statistical analysis of dirty pictures", Journal of the Royal Statistical
// Society B 48). y is not changed.
func (g *Graph) ICM(f *Field, y []float64) []float64 {
	g.check(f)
	y = slices.Clone(y)
	pairsOf := make([][]int, g.sites)
	for l, p := range g.pairs {
		pairsOf[p[0]], pairsOf[p[1]] = append(pairsOf[p[0]], l), append(pairsOf[p[1]], l)
	}
	const sweeps = 1000 // at most; each change lowers the energy, so that few are needed
	for range sweeps {
		changed := false
		for i := range y {
			cost := f.Site[i]
			for _, l := range pairsOf[i] {
				p := g.pairs[l]
				for label := range cost {
					if p[0] == i {
						cost[label] += f.Pair[l][label][indexOf(y[p[1]])]
					} else {
						cost[label] += f.Pair[l][indexOf(y[p[0]])][label]
					}
				}
			}
			if now := indexOf(y[i]); cost[1-now] < cost[now] {
				y[i] = -y[i]
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	return y
}
