package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// The oracles of the blr rows: the paper with its matrices, an inverse for every
// step, iterations instead of Newton steps, the trapezoidal rule for every
// integral. They share no code with package blr.

func sigma(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

func logSigma(z float64) float64 { return math.Min(z, 0) - math.Log1p(math.Exp(-math.Abs(z))) }

func lambdaOf(ξ float64) float64 {
	if ξ < 1e-4 {
		return 0.125
	}
	return math.Tanh(ξ/2) / (4 * ξ)
}

// expect integrates f under N(m, v); the trapezoidal rule converges faster than
// any power of its step.
func expect(m, v float64, f func(float64) float64) float64 {
	const n, reach = 4000, 12.0
	sum := 0.0
	for i := range n + 1 {
		u := -reach + 2*reach*float64(i)/n
		sum += math.Exp(-u*u/2) * f(m+math.Sqrt(v)*u)
	}
	return sum * 2 * reach / n / math.Sqrt(2*math.Pi)
}

// A gauss is a belief with its matrices.
type gauss struct {
	lambda, v *mat.Dense
	eta, w    []float64
}

func prior(d int, precision float64) *gauss {
	g := &gauss{lambda: mat.NewDense(d, d, nil), eta: make([]float64, d)}
	for j := range d {
		g.lambda.Set(j, j, precision)
	}
	return g.solved()
}

// solved fills in V and w.
func (g *gauss) solved() *gauss {
	d, _ := g.lambda.Dims()
	g.v = mat.NewDense(d, d, nil)
	if err := g.v.Inverse(g.lambda); err != nil {
		panic(err)
	}
	w := mat.NewVecDense(d, nil)
	w.MulVec(g.v, mat.NewVecDense(d, g.eta))
	g.w = w.RawVector().Data
	return g
}

// plus is g with h·xxᵀ and c·x added.
func (g *gauss) plus(x []float64, h, c float64) *gauss {
	d := len(x)
	n := &gauss{lambda: mat.DenseCopyOf(g.lambda), eta: make([]float64, d)}
	for i := range d {
		n.eta[i] = g.eta[i] + c*x[i]
		for j := range d {
			n.lambda.Set(i, j, n.lambda.At(i, j)+h*x[i]*x[j])
		}
	}
	return n.solved()
}

func (g *gauss) moments(x []float64) (m, a float64) {
	vx := mat.NewVecDense(len(x), x)
	return dotOf(g.w, x), mat.Inner(vx, g.v, vx)
}

func (g *gauss) logDetV() float64 {
	ld, _ := mat.LogDet(g.lambda)
	return -ld
}

// energy is ½wᵀV⁻¹w + ½ln|V|.
func (g *gauss) energy() float64 { return 0.5*dotOf(g.eta, g.w) + 0.5*g.logDetV() }

// divergence is KL(g‖other).
func (g *gauss) divergence(other *gauss) float64 {
	d := len(g.w)
	var p mat.Dense
	p.Mul(other.lambda, g.v)
	diff := mat.NewVecDense(d, nil)
	for j := range d {
		diff.SetVec(j, g.w[j]-other.w[j])
	}
	return 0.5 * (mat.Trace(&p) - float64(d) + other.logDetV() - g.logDetV() + mat.Inner(diff, other.lambda, diff))
}

func dotOf(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// learn adds an event by (51)–(53), ξ iterated by (31) until done says so: the
// bound (60) is given the values before and after a step.
func (g *gauss) learn(x []float64, y float64, done func(step int, before, after, ξ, next float64) bool) (*gauss, float64) {
	ξ := 0.0
	n := g.plus(x, 2*lambdaOf(ξ), y/2)
	bound := n.energy() + logSigma(ξ) - ξ/2 + lambdaOf(ξ)*ξ*ξ
	for step := 1; ; step++ {
		m, a := n.moments(x)
		next := math.Sqrt(a + m*m)
		n = g.plus(x, 2*lambdaOf(next), y/2)
		after := n.energy() + logSigma(next) - next/2 + lambdaOf(next)*next*next
		stop := done(step, bound, after, ξ, next)
		ξ, bound = next, after
		if stop {
			return n, ξ
		}
	}
}

func fixedPoint(step int, _, _, ξ, next float64) bool {
	return math.Abs(next-ξ) <= 1e-15*next || step == 3000
}

// paperRule is the paper's stop: (60) changes relatively less than tolerance.
func paperRule(tolerance float64) func(int, float64, float64, float64, float64) bool {
	return func(step int, before, after, _, _ float64) bool {
		return math.Abs(after-before) < tolerance*math.Abs(after) || step == 100
	}
}

// sample draws n labelled rows [1, normal…].
func sample(seed uint64, n, d int) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(seed, 4))
	w := make([]float64, d)
	for j := range w {
		w[j] = r.NormFloat64()
	}
	for range n {
		row := []float64{1}
		for range d - 1 {
			row = append(row, math.Round(1000*r.NormFloat64())/1000)
		}
		label := -1.0
		if r.Float64() < sigma(dotOf(w, row)) {
			label = 1
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y
}

// near wants got within tolerance of want, relative above 1.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) {
		t.Errorf("%s = %.17g, want %.17g (off by %.2g)", what, got, want, got-want)
	}
}

func nearAll(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d entries, want %d", what, len(got), len(want))
	}
	for i := range got {
		near(t, fmt.Sprintf("%s[%d]", what, i), got[i], want[i], tolerance)
	}
}

func nearMatrix(t *testing.T, what string, got [][]float64, want mat.Matrix, tolerance float64) {
	t.Helper()
	if r, _ := want.Dims(); len(got) != r {
		t.Fatalf("%s has %d rows, want %d", what, len(got), r)
	}
	for i := range got {
		nearAll(t, fmt.Sprintf("%s[%d]", what, i), got[i], mat.Row(nil, i, want), tolerance)
	}
}

// exactOf is P(y = +1 | x) under the belief.
func (g *gauss) exactOf(x []float64) float64 {
	m, a := g.moments(x)
	return expect(m, a, sigma)
}
