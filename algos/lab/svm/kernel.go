package svm

import (
	"context"
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// A Kernel is the classifier f(x) = Σ aⱼ·(exp(−|x−xⱼ|²/2s²) + Bias²) over the rows with
// α > 0, its support vectors; aⱼ = αⱼyⱼ.
type Kernel struct {
	rows     [][]float64
	coef     []float64
	constant float64 // Σ aⱼ·Bias²
	width    float64 // s²
}

// FitKernel fits a machine with a Gaussian kernel of width s² > 0. Package bblr has the
// same kernel. It keeps N² numbers, and a pass costs O(N²). Otherwise it is like Fit. The
// Kernel shares the rows of x.
func FitKernel(ctx context.Context, cfg Config, width float64,
	x [][]float64, y, weight []float64) (*Kernel, Report, error) {
	if !(width > 0 && width <= math.MaxFloat64) {
		return nil, Report{}, fmt.Errorf("svm: a kernel of width %v: want a positive, finite number", width)
	}
	g := &gram{k: make([][]float64, len(x)), f: make([]float64, len(x))}
	for i, row := range x {
		g.k[i] = make([]float64, len(x))
		for j := range i + 1 {
			g.k[i][j] = gaussian(row, x[j], width) + float64(cfg.Bias*cfg.Bias)
			g.k[j][i] = g.k[i][j]
		}
	}
	r, err := fit(ctx, cfg, g, len(x), y, weight)
	if err != nil {
		return nil, Report{}, err
	}
	m := &Kernel{width: width}
	for i, a := range r.Alpha {
		if a > 0 {
			c := float64(a * y[i])
			m.rows, m.coef = append(m.rows, x[i]), append(m.coef, c)
			m.constant += float64(c * cfg.Bias * cfg.Bias)
		}
	}
	return m, r, nil
}

// gaussian returns exp(−|x−z|²/2s²).
func gaussian(x, z []float64, width float64) float64 {
	if len(x) != len(z) {
		panic(fmt.Sprintf("svm: a row of %d entries beside one of %d", len(x), len(z)))
	}
	sum := 0.0
	for j, v := range x {
		sum += float64((v - z[j]) * (v - z[j]))
	}
	return logistic.Exp(-sum / width / 2)
}

// Decision returns f(x).
func (m *Kernel) Decision(x []float64) float64 {
	sum := m.constant
	for j, row := range m.rows {
		sum += float64(m.coef[j] * gaussian(x, row, m.width))
	}
	return sum
}

// Label returns +1 where f(x) > 0, else −1.
func (m *Kernel) Label(x []float64) float64 {
	if m.Decision(x) > 0 {
		return 1
	}
	return -1
}

// A gram is the space of a kernel. w is known by its products with the rows alone.
type gram struct {
	k [][]float64 // xᵢᵀxⱼ
	f []float64   // wᵀxᵢ
}

func (g *gram) square(i int) float64   { return g.k[i][i] }
func (g *gram) decision(i int) float64 { return g.f[i] }
func (g *gram) clear()                 { clear(g.f) }

func (g *gram) add(s float64, i int) {
	for j, v := range g.k[i] {
		g.f[j] += float64(s * v)
	}
}
