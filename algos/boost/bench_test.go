package boost

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

func mustTrain(t testing.TB, b interface{ Train(context.Context) error }, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkRebuild(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	x := drawRows(r, 2000, 60, 0)
	y := drawLabels(r, x)
	for _, kind := range []string{"normal", "mostly zeros"} {
		if kind != "normal" {
			for i := range x {
				for j := range x[i] {
					if r.IntN(4) > 0 {
						x[i][j] = 0
					}
				}
			}
		}
		b.Run(fmt.Sprintf("%s/quantise", kind), func(b *testing.B) {
			for b.Loop() {
				mustQuantise(b, x, 64)
			}
		})
		d := mustQuantise(b, x, 64)
		b.Run(fmt.Sprintf("%s/logit", kind), func(b *testing.B) {
			for b.Loop() {
				l, err := NewLogitTrees(d, y, LogitTreesConfig{})
				mustTrain(b, l, err)
			}
		})
		b.Run(fmt.Sprintf("%s/real", kind), func(b *testing.B) {
			for b.Loop() {
				l, err := NewRealAdaBoost(d, y, RealAdaBoostConfig{Rounds: 100, Depth: 2, Clip: 2, Shrink: 0.3})
				mustTrain(b, l, err)
			}
		})
		b.Run(fmt.Sprintf("%s/adaboost", kind), func(b *testing.B) {
			for b.Loop() {
				l, err := NewAdaBoost(d, y, AdaBoostConfig{Rounds: 100})
				mustTrain(b, l, err)
			}
		})
	}
}
