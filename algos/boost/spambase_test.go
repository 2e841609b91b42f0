package boost

import (
	"math"
	"testing"

	"hamlet/algos/algotest/dataset"
)

// heldOut returns the error and the log loss on rows that were not learnt.
func heldOut(e *Ensemble, x [][]float64, y []float64) (errors, logLoss float64) {
	n := float64(len(x))
	for i := range x {
		p := e.Prob(x[i])
		if (p > 0.5) != (y[i] > 0) {
			errors += 1 / n
		}
		if y[i] < 0 {
			p = 1 - p
		}
		logLoss -= math.Log(max(p, 1e-12)) / n
	}
	return errors, logLoss
}

// A window of 2,000 events of spambase in 64 bins, as the stream rebuilds its
// ensembles; the rest is for testing. Trees with real-valued leaves and shrinkage
// beat stumps, in error and above all in log loss.
func TestTreesBeatStumpsOnSpambase(t *testing.T) {
	const window, splits = 2000, 3
	type score struct{ errors, logLoss float64 }
	scores := map[string]score{}
	for seed := range uint64(splits) {
		x, y := dataset.ShuffledSpambase(t, seed)
		d := mustQuantise(t, x[:window], 64)
		a, err := NewAdaBoost(d, y[:window], AdaBoostConfig{Rounds: 100})
		mustTrain(t, a, err)
		l, err := NewLogitTrees(d, y[:window], LogitTreesConfig{})
		mustTrain(t, l, err)
		r, err := NewRealAdaBoost(d, y[:window], RealAdaBoostConfig{Rounds: 100, Depth: 2, Clip: 2, Shrink: 0.3})
		mustTrain(t, r, err)
		b, err := NewBHBoost(mustQuantise(t, x[:window], 16), y[:window], BHBoostConfig{Rounds: 100, Shrink: 0.3})
		mustTrain(t, b, err)
		for name, e := range map[string]*Ensemble{
			"AdaBoost, stumps": a.Ensemble(), "logit trees": l.Ensemble(),
			"Real AdaBoost, trees × .3": r.Ensemble(), "BHBoost, quantile bins × .3": b.Ensemble(),
		} {
			errors, logLoss := heldOut(e, x[window:], y[window:])
			at := scores[name]
			scores[name] = score{at.errors + errors/splits, at.logLoss + logLoss/splits}
		}
	}
	for name, s := range scores {
		t.Logf("%-38s error %.4f, log loss %.4f", name, s.errors, s.logLoss)
	}
	stumps := scores["AdaBoost, stumps"]
	for _, name := range []string{"logit trees", "Real AdaBoost, trees × .3"} {
		if s := scores[name]; s.errors > stumps.errors+0.002 || s.logLoss > stumps.logLoss-0.01 {
			t.Errorf("%s: error %.4f, log loss %.4f; stumps %.4f, %.4f", name, s.errors, s.logLoss, stumps.errors, stumps.logLoss)
		}
	}
}
