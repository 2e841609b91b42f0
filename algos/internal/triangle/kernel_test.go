package triangle

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func normal(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// The kernels that the CPU chooses give the bits of those in Go.
func TestKernelsGiveTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	same := func(what string, n int, a, b []float64) {
		t.Helper()
		for i := range a {
			if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
				t.Fatalf("%s n=%d: entry %d is %v, in Go %v", what, n, i, a[i], b[i])
			}
		}
	}
	for _, n := range append(upTo(80), 515, 700) { // the last ones in strips
		a := Matrix(normal(r, n*(n+1)/2))
		x, y, g := normal(r, n), make([]float64, n), r.NormFloat64()
		for i := range x { // zeros of both signs
			if r.IntN(4) == 0 {
				x[i] = math.Copysign(0, x[i])
			}
		}
		for i := range a {
			if n%3 == 0 && r.IntN(2) == 0 {
				a[i] = math.Copysign(0, a[i])
			}
		}
		wantA, wantY := slices.Clone(a), slices.Clone(y)
		mulVec(y, a, x)
		mulVecGo(wantY, a, x)
		same("mulVec", n, y, wantY)
		outer(a, g, x)
		outerGo(wantA, g, x)
		same("outer", n, a, wantA)

		diagonal, rest := quadratic(a, x)
		wantDiagonal, wantRest := quadraticGo(0, 0, a, x)
		same("quadratic", n, []float64{diagonal, rest}, []float64{wantDiagonal, wantRest})
	}
}

// AddOuters gives the bits of AddOuter for each vector in turn.
func TestOutersInOneReading(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{1, 2, 31, 32, 33, 57, 64, 100, 330} {
		for _, k := range []int{0, 1, 2, 7, 64} {
			a, g, v := Matrix(normal(r, n*(n+1)/2)), normal(r, k), normal(r, n*k)
			for i := range v {
				if r.IntN(4) == 0 {
					v[i] = math.Copysign(0, v[i])
				}
			}
			one, inGo := slices.Clone(a), slices.Clone(a)
			a.AddOuters(n, g, v, normal(r, OutersScratch(n, k)))
			for j := range k {
				one.AddOuter(g[j], v[j*n:][:n])
				outerGo(inGo, g[j], v[j*n:][:n])
			}
			for i := range a {
				if got := math.Float64bits(a[i]); got != math.Float64bits(one[i]) || got != math.Float64bits(inGo[i]) {
					t.Fatalf("n=%d k=%d: entry %d is %v, one vector after the other %v, in Go %v", n, k, i, a[i], one[i], inGo[i])
				}
			}
		}
	}
}
