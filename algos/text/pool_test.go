package text_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// messages draws n messages of features in [from, to), binary ones and vectors of
// unit length in turn.
func messages(r *rand.Rand, n int, from, to uint32) (all []feature.Sparse) {
	for i := range n {
		var f feature.Sparse
		square := 0.0
		for j := from; j < to; j++ {
			if r.IntN(3) > 0 {
				continue
			}
			f.Index = append(f.Index, j)
			if i%2 == 1 {
				v := r.NormFloat64()
				f.Value = append(f.Value, v)
				square += v * v
			}
		}
		for k := range f.Value {
			f.Value[k] /= math.Sqrt(square)
		}
		all = append(all, f)
	}
	return all
}

func close(t *testing.T, what string, got, want text.Score) {
	t.Helper()
	if math.Abs(got.LogOdds-want.LogOdds) > 1e-12*(1+math.Abs(want.LogOdds)) || math.Abs(got.Inputs[0]-want.Inputs[0]) > 1e-12*(1+math.Abs(want.Inputs[0])) || math.Abs(got.Surprise-want.Surprise) > 1e-12*(1+math.Abs(want.Surprise)) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// Counts are sums: naive Bayes that learnt in parts answers as one that learnt
// all, whatever the parts.
func TestPooledNaiveBayesIsOneThatLearntAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	whole := text.NewNaiveBayes(text.NewColumn(8), lean)
	parts := []text.Expert{text.NewNaiveBayes(text.NewColumn(8), lean), text.NewNaiveBayes(text.NewColumn(8), lean), text.NewNaiveBayes(text.NewColumn(8), lean)}
	for _, f := range messages(r, 200, 2, 60) {
		spam, ω := r.IntN(2) == 0, float64(1+r.IntN(1024))/1024
		whole.Learn(see(f), text.Score{}, spam, ω)
		parts[r.IntN(len(parts))].Learn(see(f), text.Score{}, spam, ω)
	}
	for _, f := range append(messages(r, 50, 0, 80), feature.Sparse{}) {
		close(t, "three parts", parts[1].Pool(parts, see(f)), whole.Score(see(f)))
		close(t, "one part", parts[0].Pool(parts[:1], see(f)), parts[0].Score(see(f)))
	}
}

// A feature that one part alone has seen keeps its weight, and one that all have
// seen gets the mean by accumulators: parts of one content answer as each does.
func TestPooledAdaGrad(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	whole := text.NewAdaGrad(text.NewColumn(8), text.AdaGradConfig{Rate: 1, Root: true})
	apart := []text.Expert{text.NewAdaGrad(text.NewColumn(8), text.AdaGradConfig{Rate: 1, Root: true}), text.NewAdaGrad(text.NewColumn(8), text.AdaGradConfig{Rate: 1, Root: true})}
	for k, e := range apart { // of features that the other does not see
		for _, f := range messages(r, 100, uint32(100*k), uint32(100*k+50)) {
			spam := r.IntN(2) == 0
			was := e.Score(see(f))
			e.Learn(see(f), was, spam, 1)
			whole.Learn(see(f), was, spam, 1)
		}
	}
	equal := []text.Expert{whole, whole, whole}
	for _, f := range append(messages(r, 50, 0, 200), feature.Sparse{}) {
		close(t, "parts of different features", apart[0].Pool(apart, see(f)), whole.Score(see(f)))
		close(t, "equal parts", whole.Pool(equal, see(f)), whole.Score(see(f)))
		close(t, "one part", apart[0].Pool(apart[:1], see(f)), apart[0].Score(see(f)))
	}
}

// By hand: after one spam at weight 1 a weight is rate·½/√(¼+10⁻⁶) and G = ¼; a
// part that learnt the same mail as ham at ω = ½ has the opposite sign and G = 1/16.
func TestPooledAdaGradByHand(t *testing.T) {
	f := feature.Sparse{Index: []uint32{7}}
	a, b := text.NewAdaGrad(text.NewColumn(8), text.AdaGradConfig{Rate: 1, Root: true}), text.NewAdaGrad(text.NewColumn(8), text.AdaGradConfig{Rate: 1, Root: true})
	a.Learn(see(f), text.Score{}, true, 1)
	b.Learn(see(f), text.Score{}, false, 0.5)
	wa, wb := 0.5/math.Sqrt(0.25+1e-6), -0.25/math.Sqrt(0.0625+1e-6)
	want := (0.25*wa + 0.0625*wb) / (0.25 + 0.0625)
	if got := a.Pool([]text.Expert{a, b}, see(f)).LogOdds; math.Abs(got-want) > 1e-7 { // tables are float32
		t.Errorf("got %v, want %v", got, want)
	}
}
