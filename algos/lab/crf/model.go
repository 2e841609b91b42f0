package crf

import (
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/lab/bblr"
)

// A Match says when two sites match.
type Match int

const (
	Equal Match = iota // their labels are equal
	Both               // both are +1
)

// of reports whether labels match.
func (m Match) of(y, z float64) bool { return y == z && (m == Equal || y > 0) }

// A Sample is what is measured of one image, and its labels.
type Sample struct {
	Graph *Graph
	Match Match
	X     [][]float64 // the features of each site
	D     []float64   // how alike the sites of each pair look; unused where Exclusive
	// Exclusive says which pairs are never both +1. They have no measurement. nil means no such pairs.
	Exclusive []bool
	Y         []float64 // labels ±1; unused in prediction
}

func (s *Sample) exclusive(l int) bool { return s.Exclusive != nil && s.Exclusive[l] }

// matched returns matchₗ of the labels: 0 or 1.
func (s *Sample) matched(l int) float64 {
	if p := s.Graph.pairs[l]; s.Match.of(s.Y[p[0]], s.Y[p[1]]) {
		return 1
	}
	return 0
}

// A Model says how likely labels are.
type Model struct {
	Unary bblr.Likelihood // p(y | x) of a site alone, at z = wᵀx + b; its zero value is logistic regression
	W     []float64       // w, then b
	V     [2]float64      // v₀ and v₁: Jₗ = v₀ + v₁Dₗ
}

// gamma is the steepness; 0 means 1.
func (m *Model) gamma() float64 {
	if m.Unary.Gamma == 0 {
		return 1
	}
	return m.Unary.Gamma
}

// z returns wᵀx + b.
func (m *Model) z(x []float64) float64 {
	d := len(m.W) - 1
	if len(x) != d {
		panic(fmt.Sprintf("crf: a site of %d features for %d weights", len(x), d))
	}
	sum := m.W[d]
	for j, v := range x {
		sum += float64(m.W[j] * v)
	}
	return sum
}

// Label returns the label of a site alone: the sign of wᵀx + b, as package bblr has it.
func (m *Model) Label(x []float64) float64 {
	if m.z(x) > 0 {
		return 1
	}
	return -1
}

// logLikelihoods returns ln p(−1 | x) and ln p(+1 | x) of a site at z, and the derivative
// by z of their difference f,
//
//	f′ = γ·bσ(1−σ)·(1/p(+1) + 1/p(−1)) = γ·((1−σ)·b/(b + a/σ) + σ·b/(b + c/(1−σ))).
func (m *Model) logLikelihoods(z float64) (minus, plus, slope float64) {
	l := m.Unary
	l.Gamma = m.gamma()
	minus, plus = -bblr.Loss(l, z, -1), -bblr.Loss(l, z, 1)
	u := float64(l.Gamma * z)
	b, up, down := l.B(), logistic.Sigmoid(u), logistic.Sigmoid(-u)
	part := func(lo, σ float64) float64 { // b/(b + lo/σ)
		switch {
		case b == 0:
			return 0
		case lo == 0:
			return 1
		case σ == 0:
			return 0
		}
		return b / (b + lo/σ)
	}
	slope = float64(l.Gamma * (float64(down*part(l.A(), up)) + float64(up*part(l.C(), down))))
	return minus, plus, slope
}

// FieldTo sets f to the energy of s's measurements:
//
//	Site[i][yᵢ] = −ln p(yᵢ | xᵢ),   Pair[l][yᵢ][yⱼ] = −Jₗ·matchₗ(y).
//
// An exclusive pair costs +Inf for (+1, +1) and 0 else. f's slices are reused.
func (m *Model) FieldTo(f *Field, s Sample) {
	m.fieldTo(f, s, nil)
}

// fieldTo also sets slopes, if not nil, to df/dz of each site.
func (m *Model) fieldTo(f *Field, s Sample, slopes []float64) {
	f.Site, f.Pair = f.Site[:0], f.Pair[:0]
	for i, x := range s.X {
		minus, plus, slope := m.logLikelihoods(m.z(x))
		f.Site = append(f.Site, [2]float64{-minus, -plus})
		if slopes != nil {
			slopes[i] = slope
		}
	}
	for l := range s.Graph.pairs {
		if s.exclusive(l) {
			f.Pair = append(f.Pair, [2][2]float64{1: {1: math.Inf(1)}})
			continue
		}
		J := m.V[0] + float64(m.V[1]*s.D[l])
		cost := [2][2]float64{1: {1: -J}}
		if s.Match == Equal {
			cost[0][0] = -J
		}
		f.Pair = append(f.Pair, cost)
	}
}

// Predict returns the labels of least energy, and the marginals.
func (m *Model) Predict(s Sample) ([]float64, *Marginals) {
	var f Field
	m.FieldTo(&f, s)
	return s.Graph.Argmin(&f), s.Graph.Marginals(&f)
}

// Loss returns −ln p(y | x, D) = E(y) + ln Z of the labels of s.
func (m *Model) Loss(s Sample) float64 {
	var f Field
	m.FieldTo(&f, s)
	return s.Graph.Energy(&f, s.Y) + s.Graph.LogPartition(&f)
}

// gradient returns Loss and adds its gradient by (w, b, v₀, v₁) to grad. f and slopes
// are scratch.
func (m *Model) gradient(grad []float64, s Sample, f *Field, slopes []float64) float64 {
	m.fieldTo(f, s, slopes)
	p := s.Graph.Marginals(f)
	d := len(m.W) - 1
	for i, x := range s.X {
		g := float64(slopes[i] * (p.Site[i] - float64(indexOf(s.Y[i])))) // −½(y − E y)·f′
		for j, v := range x {
			grad[j] += float64(g * v)
		}
		grad[d] += g
	}
	expected := p.Equal
	if s.Match == Both {
		expected = p.Both
	}
	for l, e := range expected {
		if s.exclusive(l) {
			continue
		}
		g := e - s.matched(l)
		grad[d+1] += g
		grad[d+2] += float64(g * s.D[l])
	}
	return s.Graph.Energy(f, s.Y) + p.LogZ
}
