package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hamlet/algos/eval"
)

// drawOutcome draws messages and a filter's answers, with ties and scores of 0 and 1.
// Scores are multiples of 2⁻¹⁰: if classes overlap by less, the calibration slope
// depends on the order of summation.
func drawOutcome(t *rapid.T) (truth []bool, o *outcome) {
	n := rapid.IntRange(2, 80).Draw(t, "n")
	if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
		n += eval.FirstEvents
	}
	o = &outcome{proper: true}
	for range n {
		truth = append(truth, rapid.Bool().Draw(t, "spam"))
		z := rapid.OneOf(rapid.Float64Range(-30, 30),
			rapid.SampledFrom([]float64{-2, 0, 1, math.Inf(-1), math.Inf(1)})).Draw(t, "z")
		z = math.Round(1024*z) / 1024
		o.add(z >= 0, z)
		o.cpu[len(o.cpu)-1] = time.Duration(rapid.IntRange(0, 1000).Draw(t, "cpu"))
	}
	return truth, o
}

// slowly measures a sample by eval, with each message repeated as often as it was drawn.
func slowly(truth []bool, o *outcome, weights []int32) (eval.Summary, float64) {
	m := eval.New()
	var cpu, n float64
	for i, w := range weights {
		for range w {
			m.Add(truth[i], o.logOdds[i])
			cpu += o.cpu[i].Seconds()
			n++
		}
	}
	return m.Summary(), cpu / n
}

func agree(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*(1+math.Abs(b))
}

func TestResamplesAgainstEval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth, o := drawOutcome(t)
		s := newRanking(truth, o, 0)
		weights := make([]int32, len(truth))
		resample(weights, 7, rapid.Uint64().Draw(t, "r"))
		got := s.measure(weights)
		want, cpu := slowly(truth, o, weights)
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"1-ROCA%", got[roca], float64(want.ROCA)},
			{"lam%", got[lamPercent], float64(want.LAM)},
			{"spam missed", got[missed], float64(want.SMAtHM)},
			{"error", got[wrongClass], float64(want.Error)},
			{"error at one half", got[wrongAtHalf], float64(want.Error)},
			{"log loss", got[logLoss], float64(want.LogLoss)},
			{"ece", got[calibration], float64(want.ECE)},
			{"cpu", got[cpuTime], cpu},
		} {
			if !agree(c.got, c.want) {
				t.Errorf("%s = %v, want %v (weights %v)", c.name, c.got, c.want, weights)
			}
		}
		if len(truth) >= eval.FirstEvents {
			first, _ := slowly(truth[:eval.FirstEvents], o, weights[:eval.FirstEvents])
			if !agree(got[firstLoss], float64(first.LogLoss)) || !agree(got[firstROCA], float64(first.ROCA)) {
				t.Errorf("first 400: %v, %v; want %v, %v", got[firstLoss], got[firstROCA], first.LogLoss, first.ROCA)
			}
		} else if !math.IsNaN(got[firstLoss]) || !math.IsNaN(got[firstROCA]) {
			t.Errorf("first 400 of %d: %v, %v", len(truth), got[firstLoss], got[firstROCA])
		}
		for _, tail := range []struct {
			name string
			got  float64
			want eval.Tail
		}{{"p < .05", got[slopeBelow], want.Below}, {"p > .95", got[slopeAbove], want.Above}} {
			if w := float64(tail.want.Slope); math.IsNaN(tail.got) != math.IsNaN(w) ||
				math.Abs(tail.got-w) > 1e-6*(1+math.Abs(w)) {
				t.Errorf("slope where %s = %v, want %v (weights %v)", tail.name, tail.got, w, weights)
			}
		}
		// The sums run in another order, and the fit stops at a step of 1e−9.
		if got, want := got[slope], float64(want.CalibrationSlope); math.IsNaN(got) != math.IsNaN(want) ||
			math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("calibration slope = %v, want %v (weights %v)", got, want, weights)
		}
	})
}

// The filter's class decides lam% and the error, not its score.
func TestOwnClass(t *testing.T) {
	truth := []bool{true, true, false, false}
	o := &outcome{logOdds: []float64{3, 1, -1, -2}, spam: []bool{true, false, false, false},
		cpu: make([]time.Duration, 4), proper: true}
	v := newRanking(truth, o, 0).measure([]int32{1, 1, 1, 1})
	if v[wrongClass] != 0.25 || v[wrongAtHalf] != 0 || v[roca] != 0 {
		t.Errorf("got %v", v)
	}
	// hm: half a message of two; sm: one of two. √(1/3·1) = logit⁻¹ of the mean.
	odds := math.Sqrt(1.0 / 3)
	if want := 100 * odds / (1 + odds); !agree(v[lamPercent], want) {
		t.Errorf("lam%% = %v, want %v", v[lamPercent], want)
	}
}

// Scores that are no probabilities have a ranking, but neither loss nor calibration.
func TestScoresThatAreNoProbabilities(t *testing.T) {
	o := &outcome{logOdds: []float64{0.2, 7}, spam: []bool{false, true}, cpu: make([]time.Duration, 2)}
	o.probabilities()
	v := newRanking([]bool{false, true}, o, 0).measure([]int32{1, 1})
	if v[roca] != 0 || v[wrongClass] != 0 || !math.IsNaN(v[logLoss]) || !math.IsNaN(v[calibration]) ||
		!math.IsNaN(v[wrongAtHalf]) {
		t.Errorf("got %v", v)
	}
	o = &outcome{logOdds: []float64{0, 0.5, 1}}
	o.probabilities()
	if !o.proper || !slices.Equal(o.logOdds, []float64{math.Inf(-1), 0, math.Inf(1)}) {
		t.Errorf("log-odds of 0, ½ and 1: %v", o.logOdds)
	}
}

// The intervals, also of the paired ratio, agree with explicit resamples.
func TestBootstrapAgainstOracle(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const n, resamples, seed = 120, 200, 9
	var truth []bool
	filters := []*outcome{{proper: true}, {proper: true}}
	for range n {
		spam := random.IntN(3) == 0
		truth = append(truth, spam)
		for f, o := range filters {
			z := random.NormFloat64() * float64(1+f)
			if spam {
				z += 2
			}
			o.add(z >= 0, z)
			o.cpu[len(o.cpu)-1] = time.Duration(1+f*random.IntN(100)) * time.Millisecond
		}
	}
	all, pairs, err := bootstrap(t.Context(),
		[]*ranking{newRanking(truth, filters[0], 0), newRanking(truth, filters[1], 0)}, resamples, seed)
	if err != nil {
		t.Fatal(err)
	}
	var area, ratio, cpu []float64
	for r := range uint64(resamples) {
		weights := make([]int32, n)
		resample(weights, seed, r)
		a, s := slowly(truth, filters[0], weights)
		b, u := slowly(truth, filters[1], weights)
		area = append(area, float64(a.ROCA))
		ratio = append(ratio, float64(a.ROCA)/float64(b.ROCA))
		cpu = append(cpu, s/u)
	}
	check := func(name string, got interval, sample []float64) {
		t.Helper()
		slices.Sort(sample)
		// The 2.5 % quantile of 200 lies at rank 4.975 from 0.
		lo := sample[4] + 0.975*(sample[5]-sample[4])
		hi := sample[194] + 0.025*(sample[195]-sample[194])
		if !agree(got.lo, lo) || !agree(got.hi, hi) || !(got.lo < got.value && got.value < got.hi) {
			t.Errorf("%s: got %v, want %v to %v", name, got, lo, hi)
		}
	}
	check("1-ROCA%", all[0][roca], area)
	check("ratio of 1-ROCA%", pairs[0].ROCA, ratio)
	check("ratio of CPU time", pairs[0].CPU, cpu)
}

// A resample without spam has no area and does not count; nothing is NaN.
func TestFewMessages(t *testing.T) {
	o := &outcome{logOdds: []float64{-1, 1}, spam: []bool{false, true}, cpu: make([]time.Duration, 2), proper: true}
	all, _, err := bootstrap(t.Context(), []*ranking{newRanking([]bool{false, true}, o, 0)}, 50, 1)
	if err != nil || all[0][roca] != (interval{}) {
		t.Errorf("got %v, %v; want 0, of the resamples that hold both", all[0][roca], err)
	}
	all, _, err = bootstrap(t.Context(), []*ranking{newRanking([]bool{true, true}, o, 0)}, 50, 1)
	if err != nil || !math.IsNaN(all[0][roca].value) || !math.IsNaN(all[0][roca].lo) {
		t.Errorf("without ham: got %v, %v", all[0][roca], err)
	}
}

func BenchmarkResample(b *testing.B) {
	const n = 6046
	random := rand.New(rand.NewPCG(1, 2))
	truth := make([]bool, n)
	o := &outcome{proper: true}
	for i := range truth {
		truth[i] = random.IntN(3) == 0
		o.add(true, random.NormFloat64())
	}
	s := newRanking(truth, o, 0)
	weights := make([]int32, n)
	b.ReportAllocs()
	for i := range b.N {
		resample(weights, 1, uint64(i))
		s.measure(weights)
	}
}
