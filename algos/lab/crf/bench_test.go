package crf

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkMarginals(b *testing.B) {
	for _, rows := range []int{4, 6, 8} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			g := Grid(rows, 12)
			f := randomField(g, 1, rand.New(rand.NewPCG(1, 1)))
			b.ReportAllocs()
			for b.Loop() {
				g.Marginals(f)
			}
		})
	}
}
