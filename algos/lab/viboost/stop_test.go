package viboost

import (
	"cmp"
	"math/rand/v2"
	"testing"
)

// Reference: algorithm 1, "while ELBO increases significantly": a round's passes end with
// the first whose ELBO is less than Gain above that of the pass before. The oracle runs
// 1, 2, 3, … fixed passes.
func TestStopByELBO(t *testing.T) {
	for name, cfg := range every() {
		x, y := drawSet(rand.New(rand.NewPCG(8, 8)), 40, 3)
		for _, gain := range []float64{0, 1e-2, 1e-8} {
			cfg := cfg
			cfg.Rounds, cfg.Bound = 1, true
			want, last := Round{}, 0.0
			for cfg.Inner = 1; ; cfg.Inner++ {
				want = mustTrain(t, mustData(t, x), y, cfg).Rounds()[0]
				if cfg.Inner > 1 && want.ELBO-last < cmp.Or(gain, defaultGain) {
					break
				}
				last = want.ELBO
			}
			if want.Passes != cfg.Inner {
				t.Fatalf("%s: %d passes of %d", name, want.Passes, cfg.Inner)
			}
			cfg.Stop, cfg.Gain, cfg.Inner = ByELBO, gain, 0
			if got := mustTrain(t, mustData(t, x), y, cfg).Rounds()[0]; got != want {
				t.Errorf("%s, gain %v:\n got %+v\nwant %+v", name, gain, got, want)
			}
			cfg.Bound = false
			got := mustTrain(t, mustData(t, x), y, cfg).Rounds()[0]
			if got.ELBO, got.LogNorm = want.ELBO, want.LogNorm; got != want {
				t.Errorf("%s, gain %v, no bound reported:\n got %+v\nwant %+v", name, gain, got, want)
			}
		}
	}
}

// With the exact expectation the ELBO never falls, so a smaller gain makes more passes.
// Every round of a longer run ends by the rule and not by the limit.
func TestStopByELBOInEveryRound(t *testing.T) {
	x, y := drawSet(rand.New(rand.NewPCG(9, 9)), 60, 3)
	total := 0
	for _, gain := range []float64{1e-2, 1e-5} {
		b := mustTrain(t, mustData(t, x), y, Config{Rounds: 8, Stop: ByELBO, Gain: gain, Types: Expectation, Weighting: Mixed})
		sum := 0
		for _, r := range b.Rounds() {
			if r.Passes < 2 || r.Passes == passesByELBO {
				t.Errorf("gain %v: %d passes", gain, r.Passes)
			}
			sum += r.Passes
		}
		if sum <= total {
			t.Errorf("gain %v: %d passes in all, a larger gain made %d", gain, sum, total)
		}
		total = sum
		finite(t, b, len(y))
	}
}

// Reference: section 5, option (b): the weight is that of the first pass.
func TestWeighOnce(t *testing.T) {
	x, y := drawSet(rand.New(rand.NewPCG(10, 10)), 40, 3)
	for name, cfg := range every() {
		cfg.Rounds, cfg.Inner = 1, 1
		first := mustTrain(t, mustData(t, x), y, cfg).Rounds()[0]
		cfg.Inner = 6
		often := mustTrain(t, mustData(t, x), y, cfg).Rounds()[0]
		cfg.WeighOnce = true
		once := mustTrain(t, mustData(t, x), y, cfg).Rounds()[0]
		if once.Alpha != first.Alpha || once.Alpha == often.Alpha || once.Eta == first.Eta {
			t.Errorf("%s: one pass %+v, six %+v, six with the weight set once %+v", name, first, often, once)
		}
	}
}

func TestBadStop(t *testing.T) {
	x, y := drawSet(rand.New(rand.NewPCG(10, 10)), 10, 2)
	for _, cfg := range []Config{{Stop: 2}, {Gain: -1}} {
		if _, err := New(mustData(t, x), y, cfg); err == nil {
			t.Errorf("%+v has no error", cfg)
		}
	}
}
