package triangle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func randomSPD(r *rand.Rand, n int) (Matrix, *mat.SymDense) {
	a, sym := New(n), mat.NewSymDense(n, nil)
	for i := range n {
		sym.SetSym(i, i, 1)
	}
	x := make([]float64, n)
	for range 2 * n {
		for i := range x {
			x[i] = r.NormFloat64()
		}
		sym.SymRankOne(sym, 0.3, mat.NewVecDense(n, x))
	}
	for i := range n {
		for j := range a.Row(n, i) {
			a.Row(n, i)[j] = sym.At(i, i+j)
		}
	}
	return a, sym
}

// The kernels against gonum's, for every remainder of the blocks of four.
func TestTriangleAgainstGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 19; n++ {
		a, sym := randomSPD(r, n)
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		vx := mat.NewVecDense(n, x)
		near := func(what string, got, want float64) {
			t.Helper()
			if math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
				t.Errorf("n=%d %s = %v, want %v", n, what, got, want)
			}
		}
		got, want := make([]float64, n), mat.NewVecDense(n, nil)
		a.MulVec(got, x)
		want.MulVec(sym, vx)
		for i := range n {
			near("mulVec", got[i], want.AtVec(i))
		}
		near("quadratic", a.Quadratic(x), mat.Inner(vx, sym, vx))

		a.AddOuter(-0.01, x)
		sym.SymRankOne(sym, -0.01, vx)
		for i := range n {
			for j := i; j < n; j++ {
				near("addOuter", a.At(n, i, j), sym.At(i, j))
			}
		}

		var chol mat.Cholesky
		if !chol.Factorize(sym) {
			t.Fatalf("n=%d: not positive definite", n)
		}
		inverse := mat.NewSymDense(n, nil)
		if err := chol.InverseTo(inverse); err != nil {
			t.Fatal(err)
		}
		f, v, floor := append(Matrix(nil), a...), New(n), make([]float64, n)
		if raised := f.Cholesky(floor); raised != 0 {
			t.Errorf("n=%d: %d pivots raised", n, raised)
		}
		f.invertFactor(make([]float64, n))
		v.squareOf(f, n)
		for i := range n {
			for j := i; j < n; j++ {
				near("inverse", v.At(n, i, j), inverse.At(i, j))
			}
		}
	}
}

func BenchmarkKernel(b *testing.B) {
	for _, n := range []int{13, 57, 58, 256} {
		r := rand.New(rand.NewPCG(1, 1))
		a, sym := randomSPD(r, n)
		x, u := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		vx, vu := mat.NewVecDense(n, x), mat.NewVecDense(n, u)
		b.Run(fmt.Sprintf("mulVec/d=%d", n), func(b *testing.B) {
			for b.Loop() {
				a.MulVec(u, x)
			}
		})
		b.Run(fmt.Sprintf("quadratic/d=%d", n), func(b *testing.B) {
			for b.Loop() {
				a.Quadratic(x)
			}
		})
		b.Run(fmt.Sprintf("addOuter/d=%d", n), func(b *testing.B) {
			for b.Loop() {
				a.AddOuter(-1e-12, x)
			}
		})
		b.Run(fmt.Sprintf("gonumMulVec/d=%d", n), func(b *testing.B) {
			for b.Loop() {
				vu.MulVec(sym, vx)
			}
		})
		b.Run(fmt.Sprintf("gonumSymRankOne/d=%d", n), func(b *testing.B) {
			for b.Loop() {
				sym.SymRankOne(sym, -1e-12, vx)
			}
		})
		b.Run(fmt.Sprintf("refactor/d=%d", n), func(b *testing.B) {
			f, v, floor := New(n), New(n), make([]float64, n)
			for b.Loop() {
				copy(f, a)
				f.Cholesky(floor)
				f.invertFactor(u)
				v.squareOf(f, n)
			}
		})
	}
}
