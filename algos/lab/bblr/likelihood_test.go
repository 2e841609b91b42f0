package bblr

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// finite reports whether all are finite.
func finite(v ...float64) bool {
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// At |γz| = 800 losses are plateaus and gradients 0; without a plateau the loss is
// 800 and its slope −1.
func TestFarOut(t *testing.T) {
	for _, l := range []Likelihood{
		Counts(1, 1, 100), Counts(40, 60, 100), {Mix: 1e-300, Theta: 0.5, Gamma: 1}, {Mix: 1, Theta: 0.3, Gamma: 1},
		{Mix: 0.5, Theta: 1, Gamma: 1}, Counts(0, 0, 1),
	} {
		for _, u := range []float64{-1e300, -800, -745, -40, 40, 745, 800, 1e300} {
			for _, y := range []float64{1, -1} {
				s := sideOf(l, y)
				loss, slope := s.At(y * u)
				if !finite(loss, slope) || loss < 0 || slope > 0 || slope < -1 {
					t.Errorf("%+v, y = %v, u = %v: loss %v, slope %v", l, y, u, loss, slope)
				}
				if p := l.Prob(u); !(p >= 0 && p <= 1) {
					t.Errorf("%+v at %v: p = %v", l, u, p)
				}
				if o := l.LogOdds(u); math.IsNaN(o) {
					t.Errorf("%+v at %v: log-odds %v", l, u, o)
				}
			}
		}
		x, y := [][]float64{{800}, {-800}, {800}, {-800}}, []float64{1, 1, -1, -1}
		w, grad := []float64{1}, []float64{0}
		GradientTo(grad, l, x, y, w, 0)
		if !finite(grad[0], TotalLoss(l, x, y, w, 0)) {
			t.Errorf("%+v: loss %v, gradient %v", l, TotalLoss(l, x, y, w, 0), grad[0])
		}
		g := HyperGradientOf(l, x, y, w)
		if l.A() > 0 && l.C() > 0 && !finite(g.Mix, g.Theta, g.Gamma) || math.IsNaN(g.Mix+g.Theta+g.Gamma) {
			t.Errorf("%+v: hyper-gradient %+v", l, g)
		}
	}
	l := Counts(0, 0, 1)
	s := sideOf(l, 1)
	if loss, slope := s.At(-800); loss != 800 || slope != -1 {
		t.Errorf("without a plateau at −800: loss %v, slope %v", loss, slope)
	}
}

// The loss keeps its relative precision where the probability is near 1, which
// −ln(a + bσ) in doubles does not; the reference has 200 bits.
func TestLossIsPreciseNearCertainty(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		l := Likelihood{Mix: math.Pow(10, -14*r.Float64()), Theta: r.Float64(), Gamma: 1}
		v := 60*r.Float64() - 30
		// The loss of +1 is −ln(1 − q), q = c + b·σ(−v); by its series, for small q.
		num := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
		e := num(math.Exp(-math.Abs(v)))
		down := new(big.Float).SetPrec(200).Quo(e, new(big.Float).SetPrec(200).Add(num(1), e))
		if v < 0 {
			down.Sub(num(1), down)
		}
		q := new(big.Float).SetPrec(200).Mul(num(1-l.Mix), down)
		q.Add(q, num(l.Mix*(1-l.Theta)))
		small, _ := q.Float64()
		if small > 0.01 {
			continue
		}
		sum, power := num(0), num(1)
		for k := 1; k <= 40; k++ {
			power.Mul(power, q)
			sum.Add(sum, new(big.Float).SetPrec(200).Quo(power, num(float64(k))))
		}
		want, _ := sum.Float64()
		if got := Loss(l, v, 1); math.Abs(got-want) > 1e-14*want {
			t.Errorf("%+v at %v: %v, want %v", l, v, got, want)
		}
	}
}

// Counts keeps its ratios where their sums overflow.
func TestCountsOfAnySize(t *testing.T) {
	if l := Counts(1e308, 1e308, 1e308); math.Abs(l.Mix-2.0/3) > 1e-15 || l.Theta != 0.5 {
		t.Errorf("%+v", l)
	}
	if l := Counts(0, 3, 0); l.Mix != 1 || l.Theta != 0 {
		t.Errorf("%+v", l)
	}
}

// Responsibilities and densities have answers where both parts underflow.
func TestPriorFarOut(t *testing.T) {
	for _, p := range []GaussLaplace{
		{0.5, 1, 0.5, 0.1}, {1, 1, 0, 0.1}, {0, 1, 1, 0.1}, {0.5, 1e-3, 0.5, 1e-3},
	} {
		if err := p.Check(); err != nil {
			t.Error(err)
		}
		for _, a := range []float64{0, 1e-300, 1, -40, 1e8} {
			grad := []float64{0}
			p.GradientTo(grad, []float64{a})
			r := p.Responsibility(a)
			if d := p.LogDensity([]float64{a}); !finite(d, grad[0]) || !(r >= 0 && r <= 1) {
				t.Errorf("%+v at %v: log density %v, gradient %v, responsibility %v", p, a, d, grad[0], r)
			}
		}
	}
	if err := (GaussLaplace{GaussShare: 0.5, LaplaceShare: 0.6, GaussSD: -1}).Check(); err == nil {
		t.Error("a prior of no width is accepted")
	}
}
