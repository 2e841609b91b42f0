package blr

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"
)

// A script is the batch fit as the text has it, with matrices: (15), (16), (20) to (23),
// (30) and (31), or with ARD (42) to (45) and (50). It is the slow twin of blr.FitBatch.
type script struct {
	x   [][]float64
	y   []float64
	ard bool

	ξ        []float64
	aN       float64
	bN       []float64 // of each weight; without ARD all are equal
	w        []float64
	v        *mat.SymDense
	logDetV  float64
	bound    float64 // (30) or (50)
	expanded float64 // (24): the sum of (25) to (29), or of (46) to (49)
}

// newScript returns the fit before the first iteration: ξ = 0 and E(α) = a₀/b₀.
func newScript(x [][]float64, y []float64, ard bool) (*script, error) {
	d := len(x[0])
	s := &script{x: x, y: y, ard: ard, ξ: make([]float64, len(x)), bN: make([]float64, d), w: make([]float64, d), aN: a0 + float64(d)/2}
	if ard {
		s.aN = a0 + .5
	}
	for j := range s.bN {
		s.bN[j] = s.aN * b0 / a0
	}
	return s, s.solve()
}

// λ is (8)'s λ(ξ), and 1/8 at 0.
func λ(ξ float64) float64 {
	if ξ < 1e-4 {
		return .125 - ξ*ξ/96
	}
	return math.Tanh(ξ/2) / (4 * ξ)
}

// solve sets V and w, (15) and (16).
func (s *script) solve() error {
	d := len(s.w)
	precision, half := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
	for j := range d {
		precision.SetSym(j, j, s.aN/s.bN[j])
	}
	for n, row := range s.x {
		v := mat.NewVecDense(d, row)
		precision.SymRankOne(precision, 2*λ(s.ξ[n]), v)
		half.AddScaledVec(half, s.y[n]/2, v)
	}
	var factor mat.Cholesky
	if !factor.Factorize(precision) {
		return errors.New("the precision (15) is not positive definite")
	}
	s.v = mat.NewSymDense(d, nil)
	if err := factor.InverseTo(s.v); err != nil {
		return err
	}
	if err := factor.SolveVecTo(mat.NewVecDense(d, s.w), half); err != nil {
		return err
	}
	s.logDetV = -factor.LogDet()
	s.measure(mat.Dot(mat.NewVecDense(d, s.w), half))
	return nil
}

// iterate updates ξ, then b_N, then V and w.
func (s *script) iterate() error {
	for n, row := range s.x {
		s.ξ[n] = math.Sqrt(s.square(row))
	}
	sum := 0.0
	for j, w := range s.w {
		s.bN[j] = b0 + .5*(w*w+s.v.At(j, j))
		sum += w*w + s.v.At(j, j)
	}
	if !s.ard {
		for j := range s.bN {
			s.bN[j] = b0 + .5*sum
		}
	}
	return s.solve()
}

// square is xᵀ(V + wwᵀ)x.
func (s *script) square(row []float64) float64 {
	m, v := dot(s.w, row), mat.NewVecDense(len(row), row)
	return m*m + mat.Inner(v, s.v, v)
}

// measure evaluates the bound in both forms; quadratic is wᵀV⁻¹w.
func (s *script) measure(quadratic float64) {
	d := float64(len(s.w))
	local, energy := 0.0, 0.0 // energy: E(ln h) of (10), under q(w) itself
	for n, ξ := range s.ξ {
		constant := logSigma(ξ) - ξ/2 + λ(ξ)*ξ*ξ
		local += constant
		energy += s.y[n]/2*dot(s.w, s.x[n]) - λ(ξ)*s.square(s.x[n]) + constant
	}
	s.bound = quadratic/2 + s.logDetV/2 + local
	s.expanded = energy + s.logDetV/2 + d/2*(1+math.Log(2*math.Pi))
	for j, bN := range s.bN {
		logα := mathext.Digamma(s.aN) - math.Log(bN)
		s.expanded += logα/2 - math.Log(2*math.Pi)/2 - s.aN/bN*(s.w[j]*s.w[j]+s.v.At(j, j))/2
		if j > 0 && !s.ard {
			continue
		}
		s.bound += a0*math.Log(b0) - lnΓ(a0) - b0*s.aN/bN - s.aN*math.Log(bN) + lnΓ(s.aN) + s.aN
		s.expanded += a0*math.Log(b0) - lnΓ(a0) + (a0-1)*logα - b0*s.aN/bN
		s.expanded -= (s.aN-1)*mathext.Digamma(s.aN) - lnΓ(s.aN) + math.Log(bN) - s.aN
	}
}

func lnΓ(v float64) float64 {
	l, _ := math.Lgamma(v)
	return l
}
