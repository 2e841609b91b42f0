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
	for n := range 80 {
		a := Matrix(normal(r, n*(n+1)/2))
		x, y, g := normal(r, n), make([]float64, n), r.NormFloat64()
		if n > 0 {
			x[r.IntN(n)], x[r.IntN(n)] = 0, math.Copysign(0, -1)
		}
		wantA, wantY := slices.Clone(a), slices.Clone(y)
		mulVec(y, a, x)
		mulVecGo(wantY, a, x)
		same("mulVec", n, y, wantY)
		outer(a, g, x)
		outerGo(wantA, g, x)
		same("outer", n, a, wantA)

		s, rows := [4]float64(normal(r, 4)), [4][]float64{normal(r, n), normal(r, n), normal(r, n), normal(r, n)}
		want := s
		dot4(&s, rows[0], rows[1], rows[2], rows[3], x)
		dot4Go(&want, rows[0], rows[1], rows[2], rows[3], x)
		same("dot4", n, s[:], want[:])
	}
}

// AddOuters gives the bits of AddOuter for each vector in turn.
func TestOutersInOneReading(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{1, 2, 31, 32, 33, 57, 64, 100} {
		for _, k := range []int{0, 1, 2, 7, 64} {
			a, g, v := Matrix(normal(r, n*(n+1)/2)), normal(r, k), normal(r, n*k)
			one, inGo := slices.Clone(a), slices.Clone(a)
			a.AddOuters(n, g, v, normal(r, OutersScratch(n, k)))
			for j := range k {
				one.AddOuter(g[j], v[j*n:][:n])
				outerGo(inGo, g[j], v[j*n:][:n])
			}
			for i := range a {
				if a[i] != one[i] || a[i] != inGo[i] {
					t.Fatalf("n=%d k=%d: entry %d is %v, one vector after the other %v, in Go %v", n, k, i, a[i], one[i], inGo[i])
				}
			}
		}
	}
}
