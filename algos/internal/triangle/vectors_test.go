package triangle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// normalWithZeros returns normal numbers, and zeros of both signs.
func normalWithZeros(r *rand.Rand, n int) []float64 {
	x := normal(r, n)
	for i := range x {
		if r.IntN(4) == 0 {
			x[i] = math.Copysign(0, x[i])
		}
	}
	return x
}

func sameBits(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("%s: entry %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// MulVecs gives the bits of MulVec for each vector, whatever is in dst and the scratch.
func TestVectorsInOneReading(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, n := range append(upTo(20)[1:], 63, 64, 65, 130, 257, 323, 515) { // tiles have 64 rows and 256 columns
		for _, k := range []int{0, 1, 2, 3, 4, 5, 8, 9, 64} {
			a, x, got := Matrix(normal(r, n*(n+1)/2)), normalWithZeros(r, n*k), normal(r, n*k)
			if n%3 == 0 {
				a = normalWithZeros(r, len(a))
			}
			want, inGo := make([]float64, n*k), make([]float64, n*k)
			a.MulVecs(got, x, n, k, normal(r, VectorsScratch(n, k)))
			for j := range k {
				a.MulVec(want[j*n:][:n], x[j*n:][:n])
				mulVecGo(inGo[j*n:][:n], a, x[j*n:][:n])
			}
			sameBits(t, fmt.Sprintf("n=%d k=%d", n, k), got, want)
			sameBits(t, fmt.Sprintf("n=%d k=%d in Go", n, k), got, inGo)
		}
	}
}

// The kernels for several vectors that the CPU chooses give the bits of those in Go.
func TestKernelsOfVectorsGiveTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	quad := func() (q [16]float64) {
		copy(q[:], normalWithZeros(r, 16))
		return q
	}
	for n := range 40 {
		corner, by, s := quad(), quad(), quad()
		wantS := s
		cornerQuads(&s, &corner, &by)
		cornerQuadsGo(&wantS, &corner, &by)
		sameBits(t, "cornerQuads", s[:], wantS[:])

		if n > 0 {
			x, y, v := normalWithZeros(r, 4*n), normalWithZeros(r, 4*n), normalWithZeros(r, 4*n)
			wantY := slices.Clone(y)
			bothQuads(&s, y, x, &by, v[:n], v[n:], v[2*n:], v[3*n:])
			bothQuadsGo(&wantS, wantY, x, &by, v[:n], v[n:], v[2*n:], v[3*n:])
			sameBits(t, fmt.Sprint("bothQuads, n=", n), append(s[:], y...), append(wantS[:], wantY...))
		}

		for _, k := range []int{0, 1, 4, 7, 8} {
			x, v, by := normalWithZeros(r, n), normalWithZeros(r, n*k), normalWithZeros(r, k)
			got, want := normal(r, k), make([]float64, k)
			Dots(got, v, x)
			for j := range k {
				want[j] = Dot(v[j*n:][:n], x)
			}
			sameBits(t, fmt.Sprintf("Dots, n=%d k=%d", n, k), got, want)

			y := slices.Clone(x)
			AddRows(y, by, v)
			for j, b := range by {
				Axpy(x, -b, v[j*n:][:n])
			}
			sameBits(t, fmt.Sprintf("AddRows, n=%d k=%d", n, k), y, x)
		}
	}
}

// BenchmarkVectors measures a block of 64 vectors. Both sides of an event take n² products and sums a vector: MulVecs,
// and AddOuters for two matrices. The ceilings are the same kernels on numbers in the first cache, and the reading of a
// matrix that no cache holds.
func BenchmarkVectors(b *testing.B) {
	const k = 64
	r := rand.New(rand.NewPCG(1, 1))
	madds := func(b *testing.B, each int) {
		b.ReportMetric(float64(each)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gmadd/s")
	}
	b.Run("ceiling/rank", func(b *testing.B) {
		const rows = 8
		a, by, v := normal(r, rows*tile), normal(r, rows*k), normal(r, k*tile)
		for b.Loop() {
			rank(a, by, v, k, tile, rows-1)
		}
		madds(b, (rows-1)*tile*k)
	})
	b.Run("ceiling/bothQuads", func(b *testing.B) {
		const n = 256
		x, y, rows, by, s := normal(r, 4*n), normal(r, 4*n), normal(r, 4*n), [16]float64{}, [16]float64{}
		for b.Loop() {
			bothQuads(&s, y, x, &by, rows[:n], rows[n:], rows[2*n:], rows[3*n:])
		}
		madds(b, n*4*4*2)
	})
	for _, n := range []int{57, 1024, 4096} {
		a, x, y := Matrix(normal(r, n*(n+1)/2)), normal(r, n*k), make([]float64, n*k)
		g := slices.Repeat([]float64{-1e-12}, k)
		b.Run(fmt.Sprintf("ceiling/mulVec/d=%d", n), func(b *testing.B) {
			for b.Loop() {
				a.MulVec(y[:n], x[:n])
			}
			b.ReportMetric(float64(8*len(a))*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
		b.Run(fmt.Sprintf("mulVecs/d=%d", n), func(b *testing.B) {
			scratch := make([]float64, VectorsScratch(n, k))
			for b.Loop() {
				a.MulVecs(y, x, n, k, scratch)
			}
			madds(b, n*n*k)
		})
		b.Run(fmt.Sprintf("addOuters/d=%d", n), func(b *testing.B) {
			scratch := make([]float64, OutersScratch(n, k))
			for b.Loop() {
				a.AddOuters(n, g, x, scratch)
				a.AddOuters(n, g, x, scratch)
			}
			madds(b, n*n*k)
		})
	}
}
