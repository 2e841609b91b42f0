package viboost

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/boost"
)

// window returns what the noise watch looks at: 250 rows of each class and 60
// inputs, here spambase's 57 and three that are noise.
func window(b testing.TB) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(4, 4))
	all, labels := dataset.Spambase(b)
	left := map[float64]int{-1: 250, 1: 250}
	for _, i := range r.Perm(len(all)) {
		if left[labels[i]] == 0 {
			continue
		}
		left[labels[i]]--
		x = append(x, append(all[i], r.NormFloat64(), r.NormFloat64(), r.NormFloat64()))
		y = append(y, labels[i])
	}
	return x, y
}

// The noise watch's work, ten rounds on 500 × 60, beside AdaBoost's ten on the
// same bins: at most 8 times as long. Both include their preparation but not the
// binning, which "bins" measures; "parts of a round" says what takes the time: the
// passes, then the search.
func BenchmarkNoiseWatch(b *testing.B) {
	x, y := window(b)
	d, err := boost.Quantise(x, 64)
	if err != nil {
		b.Fatal(err)
	}
	const rounds = 10
	b.Run("bins", func(b *testing.B) {
		for b.Loop() {
			if _, err := boost.Quantise(x, 64); err != nil {
				b.Fatal(err)
			}
		}
	})
	var ada float64
	b.Run("AdaBoost", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: rounds})
			if err != nil {
				b.Fatal(err)
			}
			for a.Round() {
			}
		}
		ada = float64(b.Elapsed()) / float64(b.N)
	})
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"VIBoost", Config{Inner: 5}},
		{"VIBoost/inner=10", Config{}},
		{"VIBoost/bound", Config{Inner: 5, Bound: true}},
		{"VIBoost/mixed", Config{Inner: 5, Weighting: Mixed}},
		{"VIBoost/exact", Config{Inner: 5, Weighting: Exact}},
		{"VIBoost/expectation", Config{Inner: 5, Types: Expectation}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.cfg.Rounds = rounds
			b.ReportAllocs()
			for b.Loop() {
				v, err := New(d, y, c.cfg)
				if err != nil {
					b.Fatal(err)
				}
				for v.Round() {
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/ada, "×AdaBoost")
		})
	}
	v := mustTrain(b, d, y, Config{Rounds: rounds, Inner: 5})
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"exponentials", v.stage.Exponents},
		{"search", func() { v.choose() }},
		{"passes", func() {
			for range 5 {
				α := v.weigh(0)
				v.stage.Omega = v.stage.Noisy()
				v.stage.ClassifyAt(α)
				v.stage.Eta = v.stage.Trusted()
			}
		}},
	} {
		b.Run(fmt.Sprintf("parts of a round/%s", part.name), func(b *testing.B) {
			for b.Loop() {
				part.do()
			}
		})
	}
}
