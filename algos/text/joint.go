package text

import (
	"math"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
)

// ScoreAdaGrads answers f as one expert would whose table joins those of experts
// that learnt different messages: a weight is the mean of theirs by the sums of
// squared gradients behind them, w_i = Σ G_ik·w_ik / Σ G_ik, and G_i = Σ G_ik. A
// feature that one of them has seen so keeps its weight. The tables are all of
// one size. It reads each of them where f has a feature, and changes none.
func ScoreAdaGrads(experts []*AdaGrad, f feature.Sparse) Score {
	n := float64(len(f.Index))
	if n == 0 {
		return Score{}
	}
	var s, known float64
	for k, i := range f.Index {
		var sum, total float64
		for _, e := range experts {
			c := e.table[i]
			sum += float64(float64(c.g) * float64(c.w))
			total += float64(c.g)
		}
		if total == 0 {
			continue
		}
		u := 1 / math.Sqrt(n)
		if f.Value != nil {
			u = f.Value[k]
		}
		s += float64(sum / total * u)
		known += float64(u * u)
	}
	known = float64(known * n)
	return Score{LogOdds: s, Input: clip(s * math.Sqrt((known+1)/(n+1)))}
}

// ScoreNaiveBayes answers f as one expert would that had counted what all of them
// have. The tables are all of one size. It changes none.
func ScoreNaiveBayes(experts []*NaiveBayes, f feature.Sparse) Score {
	if len(f.Index) == 0 {
		return Score{}
	}
	var all NaiveBayes // its totals
	for _, e := range experts {
		all.ham += e.ham
		all.spam += e.spam
	}
	overall, prior := shrinkage/(all.ham+all.spam+1), all.prior()
	var s, scales float64
	for k, i := range f.Index {
		u := 1 / math.Sqrt(float64(len(f.Index)))
		if f.Value != nil {
			i, u = slot(i, f.Value[k]), math.Abs(f.Value[k])
		}
		var a, b float64
		for _, e := range experts {
			a += float64(e.table[i].ham)
			b += float64(e.table[i].spam)
		}
		scales += float64(float64(u*u) * float64(scale(a+b)))
		if a+b == 0 {
			continue
		}
		r := float64(overall * (a + b))
		s += float64(u * (logistic.Log((b+r)/(a+r)) + prior))
	}
	return Score{LogOdds: s, Input: clip(s), Surprise: all.surprise(scales)}
}
