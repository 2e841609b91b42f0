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
		x, y := normal(r, 4*n), normal(r, 4*n)
		yGo := slices.Clone(y)
		xi, s := [16]float64(normal(r, 16)), [16]float64(normal(r, 16))
		sGo := s
		symm4(a[0], a[1], a[2], a[3], x, y, &xi, &s)
		symm4Go(b[0], b[1], b[2], b[3], x, yGo, &xi, &sGo)
		same("symm4", n, y, yGo)
		same("symm4", n, s[:], sGo[:])

		a, b = rows(8)
		gu, u := normal(r, 4*n), normal(r, 8*n)
		rank4x8(a[0], a[1], a[2], a[3], gu, u)
		rank4x8Go(b[0], b[1], b[2], b[3], gu, u)
		for i := range a {
			same("rank4x8", n, a[i], b[i])
		}

		a, b = rows(n)
		g := [4]float64(normal(r, 4))
		outer4(a[0], a[1], a[2], a[3], &g, x[:n])
		outer4Go(b[0], b[1], b[2], b[3], &g, x[:n])
		for i := range a {
			same("outer4", n, a[i], b[i])
		}
	}
}

// Many columns at once give the same bits as single columns, for every remainder and
// across the edges of tiles.
func TestColumnsGiveTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	sizes := []int{colTile - 1, colTile, colTile + 5, rankTile, rankTile + 13}
	for n := 1; n <= 22; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		a := Matrix(normal(r, n*(n+1)/2))
		for _, k := range []int{1, 2, 4, 7, 8} {
			var vectors [][]float64
			for range k {
				vectors = append(vectors, normal(r, n))
			}
			size := 4 * n * ((k + 3) / 4)
			x, y, s := normal(r, size), normal(r, size), normal(r, size)
			Interleave(x, vectors, n)
			a.MulColumns(y, x, s, n)
			want := make([]float64, n)
			for c, v := range vectors {
				a.MulVec(want, v)
				for j := range n {
					if got := y[4*n*(c/4)+4*j+c%4]; got != want[j] {
						t.Fatalf("n=%d k=%d: entry %d of column %d is %v, by itself %v", n, k, j, c, got, want[j])
					}
				}
			}

			g, u := normal(r, k), normal(r, k*n)
			one, all := slices.Clone(a), slices.Clone(a)
			for i := range k {
				one.AddOuter(g[i], u[i*n:(i+1)*n])
			}
			all.AddRank(g, u, normal(r, k*(n+8)), normal(r, k*n), n)
			for i := range one {
				if one[i] != all[i] {
					t.Fatalf("n=%d k=%d: element %d is %v, one after the other %v", n, k, i, all[i], one[i])
				}
			}
		}
	}
}
