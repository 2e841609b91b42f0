package promise

import (
	"math/rand/v2"
	"testing"
)

func BenchmarkObserve(b *testing.B) {
	var t Table
	r := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		t.Observe(3*r.NormFloat64()-5, 1)
	}
}

func BenchmarkThreshold(b *testing.B) {
	var t Table
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		t.Observe(3*r.NormFloat64()-5, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		t.Threshold(0.002)
	}
}
