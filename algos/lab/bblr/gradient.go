package bblr

import (
	"fmt"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/sla"
	"hamlet/algos/internal/triangle"
)

// curveOf returns the losses of l.
func curveOf(l Likelihood) sla.Curve { return sla.NewCurve(l.A(), l.B(), l.C(), l.Gamma) }

// sideOf returns the loss of the label y.
func sideOf(l Likelihood, y float64) sla.Side {
	if y > 0 {
		return sla.NewSide(l.A(), l.B(), l.C())
	}
	return sla.NewSide(l.C(), l.B(), l.A())
}

// Loss returns −ln p(y | z) for y = ±1 (equations 21 and 22; also 5 and 6, in y·z).
// With w > 0 it saturates at −ln a or −ln c.
func Loss(l Likelihood, z, y float64) float64 {
	s := sideOf(l, y)
	loss, _ := s.At(float64(float64(y*l.Gamma) * z))
	return loss
}

// each calls visit with each row's index, the side of its label, and y·wᵀx. It
// panics if a row is not as long as w.
func each(l Likelihood, x [][]float64, y, w []float64, visit func(i int, s *sla.Side, m float64)) {
	plus, minus := sideOf(l, 1), sideOf(l, -1)
	for i, row := range x {
		s := &minus
		if y[i] > 0 {
			s = &plus
		}
		visit(i, s, float64(y[i]*sla.Product(w, row)))
	}
}

// TotalLoss returns equation 39, Σ −ln p(y_i | wᵀx_i) + λ/2·|w|², in nats.
func TotalLoss(l Likelihood, x [][]float64, y, w []float64, λ float64) float64 {
	sum := 0.0
	each(l, x, y, w, func(_ int, s *sla.Side, m float64) {
		loss, _ := s.At(float64(l.Gamma * m))
		sum += loss
	})
	return sum + float64(0.5*float64(λ*triangle.Dot(w, w)))
}

// GradientTo sets dst, as long as w, to the gradient of TotalLoss by w: minus
// equations 25 and 26 plus λw. dst may not share memory with w or x.
func GradientTo(dst []float64, l Likelihood, x [][]float64, y, w []float64, λ float64) {
	if len(dst) != len(w) {
		panic(fmt.Sprintf("bblr: a gradient of %d entries for %d weights", len(dst), len(w)))
	}
	for j, v := range w {
		dst[j] = float64(λ * v)
	}
	each(l, x, y, w, func(i int, s *sla.Side, m float64) {
		if _, slope := s.At(float64(l.Gamma * m)); slope != 0 {
			sla.AddScaled(dst, float64(slope*float64(y[i]*l.Gamma)), x[i])
		}
	})
}

// A HyperGradient is the gradient of the log likelihood (equation 24), without a
// prior, by the parameters of the likelihood.
type HyperGradient struct {
	Mix   float64 // equations 31 and 32
	Theta float64 // 33; 0 where Mix is 0
	Gamma float64 // 34 and 35
}

// HyperGradientOf returns equations 31 to 35 at wᵀx_i. A term too large for float64
// is infinite: at a = 0 and γz = −800, ∂ln p/∂w is about e⁸⁰⁰θ.
func HyperGradientOf(l Likelihood, x [][]float64, y, w []float64) HyperGradient {
	var g HyperGradient
	each(l, x, y, w, func(i int, s *sla.Side, m float64) {
		_, _, h := partials(l, s, m, y[i])
		g.add(h, 1)
	})
	return g
}

// add adds weight·h to g.
func (g *HyperGradient) add(h HyperGradient, weight float64) {
	g.Mix += float64(weight * h.Mix)
	g.Theta += float64(weight * h.Theta)
	g.Gamma += float64(weight * h.Gamma)
}

// partials returns the loss −ln p(y | m) at the margin m = yz, its derivative by
// γm, and the derivatives of ln p by the parameters. s is the side of y. With σ =
// σ(γm), and 1−θ instead of θ for y = −1,
//
//	p = wθ + (1−w)σ,   ∂p/∂w = θ − σ,   ∂p/∂θ = ±w,   ∂p/∂γ = (1−w)·σ(1−σ)·m.
func partials(l Likelihood, s *sla.Side, m, y float64) (loss, slope float64, g HyperGradient) {
	v := float64(l.Gamma * m)
	loss, slope = s.At(v)
	inverse := logistic.Exp(loss) // 1/p, also where p underflows
	θ := l.Theta
	if y < 0 {
		θ = 1 - l.Theta
	}
	if θ > 0 {
		g.Mix = float64(θ * inverse)
	}
	if s.Lo == 0 {
		g.Mix -= 1 / s.B
	} else {
		g.Mix -= float64(logistic.Sigmoid(v) * inverse)
	}
	if l.Mix > 0 {
		g.Theta = float64(float64(y*l.Mix) * inverse)
	}
	if slope != 0 { // 0·∞ is 0 here: σ(1−σ) vanishes faster than z grows
		g.Gamma = float64(-slope * m)
	}
	return loss, slope, g
}

// Probs returns p(y = +1 | wᵀx_i) for each row.
func Probs(l Likelihood, x [][]float64, w []float64) []float64 {
	p := make([]float64, len(x))
	for i, row := range x {
		p[i] = l.Prob(sla.Product(w, row))
	}
	return p
}
