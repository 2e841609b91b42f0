package drift

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawEvent returns an event of two inputs that its label decides.
func drawEvent(r *rand.Rand, i uint64) Event {
	y := float64(2*r.IntN(2) - 1)
	return Event{
		X: []float64{y + r.NormFloat64(), r.NormFloat64()}, Label: y,
		Prob: 0.999 + 0.001*r.Float64(), FlipRate: .001, ID: fmt.Sprint("m", i), Source: "feed",
	}
}

// The window of a job is the last N/2 rows of each class as it stood when it was
// started, in float32, and Pending has it unchanged up to the count of its result.
func TestJobHoldsTheBalancedWindow(t *testing.T) {
	const half = 30
	n := withSpans(LabelNoiseConfig{Dim: 2}, func(s *spans) { s.perClass = half })
	r := rand.New(rand.NewPCG(1, 1))
	var all [2][]float32
	var kept []float32 // what Start gave
	var result Result
	jobs := 0
	for i := uint64(1); i <= 3_000; i++ {
		e := drawEvent(r, i)
		if i > 1_000 { // one class is rare, later all events are of the other
			e.Label = -1
			if i < 2_000 && i%10 == 0 {
				e.Label = 1
			}
		}
		if i == 1_500 {
			e.X[0] = math.MaxFloat64
		}
		n.Observe(e)
		c := class(e.Label)
		all[c] = append(all[c], float32(min(math.MaxFloat32, e.X[0])), float32(e.X[1]))
		if i%Rhythm != 0 {
			continue
		}
		if job, ok := n.Pending(); ok {
			if got := job.Count() + Rhythm; got != i {
				t.Fatalf("at %d a result is due at %d", i, got)
			}
			if !slices.Equal(job.data, kept) {
				t.Fatalf("at %d Pending has another window than Start had", i)
			}
			if again := job.Run(); again != result || !again.Known {
				t.Fatalf("at %d results %+v and %+v", i, again, result)
			}
			n.Finish(result)
		}
		n.Check(i)
		job, ok := n.Start(i)
		if ok != (i%250 == 0) {
			t.Fatalf("count %d: started %v", i, ok)
		}
		if !ok {
			continue
		}
		jobs++
		var want []float32
		for c := range all {
			want = append(want, all[c][len(all[c])-2*half:]...)
		}
		if !slices.Equal(job.data, want) {
			t.Fatalf("count %d: the job's window is another", i)
		}
		kept, result = slices.Clone(job.data), job.Run()
	}
	if jobs != 12 {
		t.Errorf("%d jobs", jobs)
	}
}

// A script plays made-up SNRs to the rule.
type script struct {
	n     *LabelNoise
	r     *rand.Rand
	count uint64
	ε     float64
	s     float64 // the level of results
	forge bool    // every tenth label ham is given where the head sees spam
	due   []uint64
}

func newScript(cfg LabelNoiseConfig) *script {
	cfg.Dim = 2
	return &script{n: withSpans(cfg, func(s *spans) { s.perClass = 20 }), r: rand.New(rand.NewPCG(2, 2))}
}

// play feeds n events and returns the counts at which the state changed.
func (s *script) play(n int) (changes []uint64) {
	for range n {
		s.count++
		e := drawEvent(s.r, s.count)
		e.FlipRate = s.ε
		if s.forge && e.Label < 0 && s.r.IntN(10) == 0 {
			e.Prob = 0.02
		}
		s.n.Observe(e)
		if s.count%Rhythm != 0 {
			continue
		}
		if due, ok := s.n.Due(); ok && due == s.count {
			s.n.Finish(Result{Count: due - Rhythm, Known: true, SNR: 40 * math.Exp(s.s)})
		}
		if s.n.Check(s.count) {
			changes = append(changes, s.count)
		}
		if _, ok := s.n.Start(s.count); ok {
			s.due = append(s.due, s.count)
		}
	}
	return changes
}

// The doc of LabelNoise: an SNR at every 250th event and at every 50th
// while ε > .01, none before N/2 of each class, in force 50 events later.
func TestRhythm(t *testing.T) {
	s := newScript(LabelNoiseConfig{})
	s.play(1_000)
	s.ε = .02
	s.play(200)
	s.ε = .01
	s.play(300)
	want := []uint64{250, 500, 750, 1_000, 1_050, 1_100, 1_150, 1_200, 1_250, 1_500}
	if !slices.Equal(s.due, want) {
		t.Errorf("SNRs at %v, want %v", s.due, want)
	}
	one := withSpans(LabelNoiseConfig{Dim: 1}, func(s *spans) { s.perClass = 2 })
	for i := uint64(1); i <= 1_000; i++ {
		one.Observe(Event{X: []float64{1}, Label: -1, Prob: 1})
		if i%Rhythm == 0 {
			if _, ok := one.Start(i); ok {
				t.Fatalf("an SNR at %d of one class", i)
			}
		}
	}
}

// Raised when drop > .2, or when ε > .01 and drop > .1; the reference leaves out
// the latest 500 events, needs 1,000, and stands still while raised; cleared below
// a drop of .05.
func TestRule(t *testing.T) {
	for _, c := range []struct {
		drop, ε float64
		raised  bool
	}{{.19, .009, false}, {.21, 0, true}, {.09, .02, false}, {.11, .02, true}, {.11, .01, false}, {-1, .5, false}} {
		s := newScript(LabelNoiseConfig{})
		s.s = -1
		if got := s.play(1_700); len(got) > 0 || s.n.Status().Known {
			t.Fatalf("changed at %v, known %v, before there is a reference", got, s.n.Status().Known)
		}
		if s.play(2_300); !s.n.Status().Known || math.Abs(s.n.Status().Reference+1) > 1e-12 {
			t.Fatalf("at %d: %+v", s.count, s.n.Status())
		}
		s.s, s.ε = -1-c.drop, c.ε
		if got := s.play(600); (len(got) == 1) != c.raised {
			t.Errorf("drop %v, ε %v: changed at %v", c.drop, c.ε, got)
		}
		if !c.raised {
			continue
		}
		s.play(10_000)
		if st := s.n.Status(); !st.Raised || math.Abs(st.Reference+1) > 1e-12 {
			t.Errorf("the reference moved while raised: %+v", st)
		}
		s.s = -1.06
		if got := s.play(600); len(got) > 0 {
			t.Errorf("cleared at a drop of .06, %v", got)
		}
		s.s = -1.04
		if got := s.play(600); len(got) != 1 {
			t.Errorf("a drop of .04: changed at %v", got)
		}
	}
}

// The reference at each 50th event is the median, sorted out of all s in force at
// the 50th events of the last 3,000 but the latest 500.
func TestReferenceIsTheMedian(t *testing.T) {
	s := newScript(LabelNoiseConfig{Drop: 50, Confirmed: 50})
	var inForce []float64
	for range 200 {
		s.s = s.r.NormFloat64()
		s.ε = float64(s.r.IntN(2)) * .02
		s.play(Rhythm)
		if s.n.known {
			inForce = append(inForce, s.n.level)
		}
		past := inForce[max(0, len(inForce)-60):]
		past = slices.Sorted(slices.Values(past[:max(0, len(past)-10)]))
		if st := s.n.Status(); st.Known != (len(past) >= 20) {
			t.Fatalf("at %d known %v of %d", s.count, st.Known, len(past))
		} else if st.Known {
			if want := (past[(len(past)-1)/2] + past[len(past)/2]) / 2; st.Reference != want {
				t.Fatalf("at %d the reference is %v, want %v", s.count, st.Reference, want)
			}
		}
	}
}

// An alarm ends after Settle events, and a new reference is learnt.
func TestSettles(t *testing.T) {
	s := newScript(LabelNoiseConfig{})
	s.n.spans.settle = 5_000
	s.play(4_000)
	s.s = -1
	got := s.play(30_000)
	if len(got) != 2 || got[1]-got[0] != 5_000 {
		t.Fatalf("changed at %v", got)
	}
	if st := s.n.Status(); !st.Known || math.Abs(st.Reference+1) > 1e-12 {
		t.Errorf("settled: %+v", st)
	}
}

// Constant inputs give no result and no alarm. Duplicate rows, labels that the inputs
// decide and random labels give finite numbers.
func TestDegenerateWindows(t *testing.T) {
	for name, x := range map[string]func(r *rand.Rand, y float64) float64{
		"constant":  func(*rand.Rand, float64) float64 { return 3 },
		"separated": func(_ *rand.Rand, y float64) float64 { return y },
		"tosses":    func(r *rand.Rand, _ float64) float64 { return r.Float64() },
		"extremes":  func(r *rand.Rand, y float64) float64 { return y * math.MaxFloat64 },
	} {
		r := rand.New(rand.NewPCG(4, 4))
		n := withSpans(LabelNoiseConfig{Dim: 1}, func(s *spans) { s.perClass = 10 })
		for i := uint64(1); i <= 5_000; i++ {
			e := drawEvent(r, i)
			e.X = []float64{x(r, e.Label)}
			n.Observe(e)
			if i%Rhythm != 0 {
				continue
			}
			if job, ok := n.Pending(); ok {
				n.Finish(job.Run())
			}
			if n.Check(i) && name != "tosses" {
				t.Errorf("%s: changed at %d", name, i)
			}
			n.Start(i)
		}
		s := n.Status()
		if math.IsNaN(s.Level) || math.IsInf(s.Level, 0) || s.Known == (name == "constant") {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Calls out of order panic.
func TestOwnersBugs(t *testing.T) {
	good := Event{X: []float64{1, 2}, Label: 1, Prob: 1}
	for name, bug := range map[string]func(n *LabelNoise){
		"length":     func(n *LabelNoise) { e := good; e.X = e.X[:1]; n.Observe(e) },
		"NaN":        func(n *LabelNoise) { e := good; e.X = []float64{1, math.NaN()}; n.Observe(e) },
		"label":      func(n *LabelNoise) { e := good; e.Label = 0; n.Observe(e) },
		"prob":       func(n *LabelNoise) { e := good; e.Prob = math.NaN(); n.Observe(e) },
		"odd count":  func(n *LabelNoise) { n.Check(51) },
		"past count": func(n *LabelNoise) { n.Check(100); n.Check(100) },
		"no job":     func(n *LabelNoise) { n.Finish(Result{Count: 50}) },
	} {
		n := mustNew(NewLabelNoise(LabelNoiseConfig{Dim: 2}))
		if !panics(func() { bug(n) }) {
			t.Errorf("%s: no panic", name)
		}
	}
	for name, bug := range map[string]func(s *script){
		"two jobs":     func(s *script) { s.n.Start(300) },
		"result late":  func(s *script) { s.n.Check(300) },
		"other result": func(s *script) { s.n.Finish(Result{Count: 200}) },
		"overdue": func(s *script) {
			for range 2*Rhythm + 1 {
				s.n.Observe(good)
			}
		},
	} {
		s := newScript(LabelNoiseConfig{})
		s.play(250)
		if !panics(func() { bug(s) }) {
			t.Errorf("%s: no panic", name)
		}
	}
}

// Flips of one class confirm a drop by their rate of greatest likelihood, where ε
// has fallen back; and SNRs come at every 50th event then. Without a drop they do
// neither.
func TestFlipsOfOneClassConfirm(t *testing.T) {
	for _, c := range []struct {
		drop   float64
		forge  bool
		raised bool
	}{{.11, true, true}, {.11, false, false}, {.04, true, false}} {
		s := newScript(LabelNoiseConfig{})
		s.s = -1
		s.play(4_000)
		s.s, s.forge, s.due = -1-c.drop, c.forge, nil
		changed := s.play(1_000)
		if raised := len(changed) > 0; raised != c.raised {
			t.Errorf("drop %v, forged %v: changed at %v", c.drop, c.forge, changed)
		}
		if often := len(s.due) > 5; often != c.raised {
			t.Errorf("drop %v, forged %v: SNRs at %v", c.drop, c.forge, s.due)
		}
		if r := s.n.Report(); c.forge && !(r.SpamCalledHam.Rate > 0.05 && r.SpamCalledHam.Rate < 0.15 && r.HamCalledSpam.Rate < 0.001) {
			t.Errorf("spam called ham %v, ham called spam %v, a tenth of the ham is spam", r.SpamCalledHam.Rate, r.HamCalledSpam.Rate)
		}
	}
}

// Where labels are hard or wrong at a constant rate, s varies more and ε stands
// above its threshold: the alarm does not flap, a fall far beyond it still raises
// it, and a restored alarm knows the spread.
func TestHardStreamsDoNotFlap(t *testing.T) {
	hard := newScript(LabelNoiseConfig{})
	hard.ε = .3
	raised := 0
	for range 600 { // 30,000 events
		hard.s = -1 + .1*hard.r.NormFloat64()
		raised += len(hard.play(Rhythm)) // raised or cleared
	}
	if raised > 2 {
		t.Errorf("%d changes in 30,000 events of s with a standard deviation of .1", raised)
	}
	b, err := hard.n.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	restored := blank(hard.n.cfg, hard.n.spans)
	if err := restored.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if got, want := restored.Status(), hard.n.Status(); got != want || got.Threshold < .2 || got.Threshold > .5 {
		t.Errorf("status %+v, restored %+v; want a threshold near .35", want, got)
	}
	hard.s = -2
	if changes := hard.play(500); len(changes) != 1 || !hard.n.Status().Raised {
		t.Errorf("a fall of 1 at %v, %+v", changes, hard.n.Status())
	}
}
