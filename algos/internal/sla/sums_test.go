package sla

import (
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/internal/triangle"
)

// The faster sums are the plain ones to the bit, whatever the lengths.
func TestSumsOfSeveralRowsAreThoseOfEach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	draw := func(d int) []float64 {
		v := make([]float64, d)
		for j := range v {
			v[j] = r.NormFloat64()
		}
		return v
	}
	for d := range 13 {
		w, a, b := draw(d), draw(d), draw(d)
		if wa, wb := dot2(w, a, b); wa != triangle.Dot(w, a) || wb != triangle.Dot(w, b) {
			t.Errorf("%d numbers: products %v and %v, one by one %v and %v", d, wa, wb, triangle.Dot(w, a), triangle.Dot(w, b))
		}
		for n := range 10 {
			want := draw(d)
			sum := rowSum{dst: slices.Clone(want)}
			for range n {
				scale, row := r.NormFloat64(), draw(d)
				AddScaled(want, scale, row)
				sum.add(scale, row)
			}
			sum.finish()
			if !slices.Equal(sum.dst, want) {
				t.Errorf("%d rows of %d numbers: %v, one by one %v", n, d, sum.dst, want)
			}
		}
	}
}
