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
	rows := func(n int) (a, b [4][]float64) {
		for i := range a {
			a[i] = normal(r, n)
			b[i] = slices.Clone(a[i])
		}
		return a, b
	}
	same := func(what string, n int, a, b []float64) {
		t.Helper()
		for i := range a {
			if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
				t.Fatalf("%s n=%d: entry %d is %v, in Go %v", what, n, i, a[i], b[i])
			}
		}
	}
	for n := range 40 {
		a, b := rows(n)
		g := [4]float64(normal(r, 4))
		x := normal(r, n)
		outer4(a[0], a[1], a[2], a[3], &g, x)
		outer4Go(b[0], b[1], b[2], b[3], &g, x)
		for i := range a {
			same("outer4", n, a[i], b[i])
		}

		s, y := [4]float64(normal(r, 4)), normal(r, n)
		wantS, wantY := s, slices.Clone(y)
		both4(&s, y, a[0], a[1], a[2], a[3], &g, x)
		both4Go(&wantS, wantY, a[0], a[1], a[2], a[3], &g, x)
		same("both4", n, s[:], wantS[:])
		same("both4", n, y, wantY)
		dot4(&s, a[0], a[1], a[2], a[3], x)
		dot4Go(&wantS, a[0], a[1], a[2], a[3], x)
		same("dot4", n, s[:], wantS[:])
	}
}
