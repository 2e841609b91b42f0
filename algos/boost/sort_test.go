package boost

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The radix sort is slices.SortStableFunc's order, at every scale and sign.
func TestSorter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	draws := []struct {
		name string
		draw func() float64
	}{
		{"any bits", func() float64 {
			for {
				if v := math.Float64frombits(r.Uint64()); v-v == 0 { // finite
					return v
				}
			}
		}},
		{"float32 of both signs", func() float64 { return float64(float32(r.NormFloat64())) }},
		{"few values", func() float64 { return float64(r.IntN(5) - 2) }},
		{"edges", func() float64 {
			edges := []float64{0, math.Copysign(0, -1), math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
				math.MaxFloat64, -math.MaxFloat64, math.MaxFloat32, 0x1p-1022, -0x1p-1022}
			return edges[r.IntN(len(edges))]
		}},
	}
	for _, d := range draws {
		for _, n := range []int{1, 2, 300} {
			column, want := make([]float64, n), make([]int32, n)
			for i := range column {
				column[i], want[i] = d.draw(), int32(i)
			}
			slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(column[a], column[b]) })
			if got := newSorter(n).sort(column); !slices.Equal(got, want) {
				t.Errorf("%s: %v is sorted as %v, want %v", d.name, column, got, want)
			}
		}
	}
}

// The bits that a float32 leaves 0 in a float64 are 0 in the key, so the sort skips
// three digits of eight.
func TestSortKeyKeepsLowZeros(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for range 1_000 {
		v := float64(float32(r.NormFloat64()))
		if k := sortKey(v); k&(1<<29-1) != 0 {
			t.Fatalf("key of %v is %x", v, k)
		}
	}
}
