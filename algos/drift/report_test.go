package drift

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Here the head knows the truth: 30 of 100 ham are called spam, 10 of 80 spam ham.
func TestFlipRatesByGivenLabel(t *testing.T) {
	n := withSpans(LabelNoiseConfig{Dim: 1}, func(s *spans) { s.recent = 180 })
	add := func(times int, label, φ float64, source, id string) {
		for range times {
			n.Observe(Event{X: []float64{0}, Label: label, Prob: φ, ID: id, Source: source})
		}
	}
	if r := n.Report(); r.HamCalledSpam.Rate != 0 || r.SpamCalledHam.Rate != 0 || len(r.Sources)+len(r.Suspects) > 0 {
		t.Errorf("of nothing: %+v", r)
	}
	add(400, 1, 0, "long ago", "old")
	add(70, -1, 1, "b", "ham")
	add(30, 1, 0, "a", "forged")
	add(70, 1, 1, "c", "spam")
	add(10, -1, 0, "b", "slipped")
	r := n.Report()
	if math.Abs(r.HamCalledSpam.Rate-30./101) > 1e-6 || math.Abs(r.SpamCalledHam.Rate-10./81) > 1e-6 {
		t.Errorf("ham called spam %v, spam called ham %v", r.HamCalledSpam.Rate, r.SpamCalledHam.Rate)
	}
	if len(r.Suspects) != MostSuspects || r.Suspects[0] != (Suspect{ID: "forged", Source: "a", Label: 1}) {
		t.Errorf("suspects %+v", r.Suspects)
	}
	var names []string
	for _, s := range r.Sources {
		names = append(names, s.Source)
		if !(0 <= s.Low && s.Low < s.Rate && s.Rate < s.High && s.High <= 1) {
			t.Errorf("%+v", s)
		}
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) || r.Sources[1].Events != 80 {
		t.Errorf("sources %+v", r.Sources)
	}
}

// The head is calibrated and not sure, labels of one class are flipped: the rates
// come out, to three standard deviations by the spread over draws, and no online
// trust is in it that would have to rise first.
func TestFlipRatesOfOneClass(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, want := range [][2]float64{{0, 0}, {0.2, 0}, {0, 0.2}, {0.1, 0.3}} {
		var mean, square [2]float64
		const draws = 40
		for range draws {
			w := make([]witness, 500)
			for i := range w {
				spam := 1 / (1 + math.Exp(-3*r.NormFloat64())) // what the head says of the mail
				truth := class(2*float64(b2i(r.Float64() < spam)) - 1)
				given := truth
				if r.Float64() < want[truth] {
					given = 1 - truth
				}
				w[i] = witness{label: 2*float64(given) - 1, prob: []float64{1 - spam, spam}[given]}
			}
			f, phi := flipRates(w, [2]bool{true, true}, 0, reportSteps)
			for k := range f {
				mean[k] += f[k] / draws
				square[k] += f[k] * f[k] / draws
			}
			for _, φ := range phi {
				if !isProbability(φ) {
					t.Fatalf("φ = %v", φ)
				}
			}
		}
		for k := range want {
			sd := math.Sqrt(max(0, square[k]-mean[k]*mean[k]) / draws)
			bias := 0.0
			if want[k] == 0 {
				bias = 0.02 // a rate of 0 can only be missed to one side
			}
			if math.Abs(mean[k]-want[k]) > 3*sd+bias {
				t.Errorf("flip rates %v, want %v (standard error %v)", mean, want, sd)
			}
		}
	}
}

// The interval of a class's rate holds the rate that its labels were flipped with in 90 of 100
// draws, to within three standard deviations, √(.9·.1/60) = .039 each. The head is calibrated,
// and the other class's rate is estimated too.
func TestFlipRateIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	const draws = 60
	want := [2]float64{0.1, 0.25}
	var covered [2]int
	for range draws {
		n := mustNew(NewLabelNoise(LabelNoiseConfig{Dim: 1}))
		for range 500 {
			spam := 1 / (1 + math.Exp(-5*r.NormFloat64()))
			truth := b2i(r.Float64() < spam)
			given := truth
			if r.Float64() < want[truth] {
				given = 1 - truth
			}
			n.recent.add(witness{label: 2*float64(given) - 1, prob: []float64{1 - spam, spam}[given]})
		}
		witnesses := n.recent.oldest()
		f, _ := flipRates(witnesses, n.knownClasses(), 0, reportSteps)
		for c := range want {
			rate := flipRateOf(witnesses, n.knownClasses(), f, c)
			if !rate.Known || !(rate.Low <= rate.Rate && rate.Rate <= rate.High) {
				t.Fatalf("%+v", rate)
			}
			if rate.Low <= want[c] && want[c] <= rate.High {
				covered[c]++
			}
		}
	}
	for c, n := range covered {
		if got := float64(n) / draws; math.Abs(got-.9) > .117 {
			t.Errorf("class %d: %v covered", c, got)
		}
	}
}

// After 480 labels ham in a row, all of which the head took for spam, the flip rate of spam is
// not known. The other rate is, and nobody is raised.
func TestMissingClassIsUnknown(t *testing.T) {
	n := withSpans(LabelNoiseConfig{Dim: 1}, func(s *spans) { s.perClass, s.rounds = 20, 2 })
	r := rand.New(rand.NewPCG(4, 6))
	past := 0
	for count := uint64(1); count <= 4_000; count++ {
		y, prob := 2*float64(r.IntN(2))-1, 0.98
		x := 2*y + r.NormFloat64()
		if count > 3_000 {
			y, prob, x = -1, 0.05, -2+r.NormFloat64()
		}
		n.Observe(Event{X: []float64{x}, Label: y, Prob: prob, FlipRate: .05})
		if count%Rhythm > 0 {
			continue
		}
		if job, ok := n.Pending(); ok {
			n.Finish(job.Run())
		}
		n.Check(count)
		n.Start(count)
		missing := !n.bothKnown()
		if want := count >= 3_500; missing != want && count > 100 && count != 3_450 {
			t.Fatalf("event %d: a class is missing: %v", count, missing)
		}
		if !missing {
			past = len(n.history)
		}
	}
	if n.raised || len(n.history) != past {
		t.Errorf("raised: %v, a past of %d, before the class was missing of %d", n.raised, len(n.history), past)
	}
	report := n.Report()
	if want := (FlipRate{High: 1}); report.SpamCalledHam != want {
		t.Errorf("spam called ham %+v, want unknown", report.SpamCalledHam)
	}
	if f := report.HamCalledSpam; !f.Known || f.Rate > .05 || f.Low < 0 || f.High > .2 {
		t.Errorf("ham called spam %+v", f)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The interval of a source's rate holds the rate that labels were flipped with in
// 90 of 100 sources, where the head knows the truth, to within the noise of 2,000: three
// standard deviations of √(.9·.1/2,000) = .0067.
func TestIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	covered, all := 0, 0
	for range 2_000 {
		rate, events := r.Float64(), 20+r.IntN(200)
		w := make([]witness, events)
		for i := range w {
			w[i] = witness{label: 1, prob: 1}
			if r.Float64() < rate {
				w[i].prob = 0
			}
		}
		s := sourceRates(w)[0]
		all++
		if s.Low <= rate && rate <= s.High {
			covered++
		}
	}
	if got := float64(covered) / float64(all); math.Abs(got-.9) > .02 {
		t.Errorf("%v covered", got)
	}
	one := sourceRates([]witness{{label: 1, prob: 0}, {label: 1, prob: 1, source: "b"}})
	for _, s := range one {
		if !(s.Low >= 0 && s.High <= 1 && s.High-s.Low > .7) {
			t.Errorf("of one label: %+v", s)
		}
	}
}
