package text

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hamlet/algos/feature"
)

// BenchmarkKernels compares the kernels that the processor chooses with the loops in Go, in turns, on a text of
// 4 kB: how many times as long Go takes.
func BenchmarkKernels(b *testing.B) {
	var body []byte
	for k := range 300 {
		body = fmt.Appendf(body, "word%d of%d, ", (k*k+k)%977, k%31)
	}
	const bits = 18
	h, parts := feature.NewHasher(bits), &Parts{Text: body}
	var grams, strings View
	text4Grams.Read(h, &grams, parts)
	openingStrings.Read(h, &strings, parts)

	bayes := NewNaiveBayes(NewColumn(bits), NaiveBayesConfig{Shrinkage: 2, Inputs: 3})
	model := NewByteModel(NewColumn(bits))
	bayes.count(grams.Sparse, true, 1)
	model.count(&strings, false, 1)
	terms, prior := bayes.newTerms(), model.prior()
	var sums evidenceLanes
	var weighed lanes
	var before byteCounts
	to := make([]float64, block)
	weights := NewColumn(bits)
	for _, c := range []struct {
		name         string
		kernel, inGo func(index []uint32)
	}{
		{"bayes", func(index []uint32) { terms.features(&sums, bayes.table, index) },
			func(index []uint32) { terms.featuresGo(&sums, bayes.table, index) }},
		{"weights", func(index []uint32) { sumWeights(&weighed, weights, index) },
			func(index []uint32) { sumWeightsGo(&weighed, weights, index) }},
		{"counts", func(index []uint32) { addCounts(bayes.table, true, index, 1, 7) },
			func(index []uint32) { addCountsGo(bayes.table, true, index, 1, 7) }},
		{"bytes", func(index []uint32) {
			model.ratios(to[:len(index)/4], strings.Bytes[:len(index)/4], index, &before, &prior)
		},
			func(index []uint32) {
				model.ratiosGo(to[:len(index)/4], strings.Bytes[:len(index)/4], index, &before, &prior)
			}},
		{"steps", func(index []uint32) { steps(weights, index, .1, .01, .1) },
			func(index []uint32) { stepsGo(weights, index, .1, .01, .1) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ratios []float64
			for b.Loop() {
				var took [2]time.Duration
				for side, loop := range []func([]uint32){c.kernel, c.inGo} {
					start := time.Now()
					for range 20 {
						for index := range slices.Chunk(grams.Index, block) {
							loop(index)
						}
					}
					took[side] = time.Since(start)
				}
				ratios = append(ratios, took[1].Seconds()/took[0].Seconds())
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "go/kernel")
		})
	}
}
