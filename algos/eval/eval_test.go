package eval

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type scored struct {
	spam bool
	z    float64
}

func measure(events []scored) *Metrics {
	m := New()
	for _, e := range events {
		m.Add(e.spam, e.z)
	}
	return m
}

func near(t *testing.T, what string, got Measure, want, tol float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= tol) {
		t.Errorf("%s = %v, want %v ± %g", what, got, want, tol)
	}
}

// Three ham at −2, 0, 1 and two spam at 0, 3. By hand: at p ≥ ½ two of three ham
// are wrong and no spam; of six pairs ham 0 ties with spam 0 and ham 1 is above
// it.
func TestByHand(t *testing.T) {
	s := measure([]scored{{false, -2}, {true, 0}, {false, 0}, {true, 3}, {false, 1}}).Summary()
	if s.Events != 5 || s.Spam != 2 || s.Ham != 3 || s.Approximate {
		t.Errorf("counts: %+v", s)
	}
	near(t, "error", s.Error, 2.0/5, 1e-15)
	near(t, "1-ROCA%", s.ROCA, 100*1.5/6, 1e-12)
	// −ln σ of 2, 0, 0, 3, −1.
	near(t, "log loss", s.LogLoss, (0.12692801+0.69314718+0.69314718+0.04858735+1.31326169)/5, 1e-8)
	// p = .11920292, .5, .5, .95257413, .73105858.
	near(t, "brier", s.Brier, (0.014209336+.25+.25+0.002249213+0.534446645)/5, 1e-8)
	// hm = 2/3, sm = ½/2 for none: logits ln 2 and −ln 3, their mean ln √(2/3).
	near(t, "lam%", s.LAM, 100*math.Sqrt(2.0/3)/(1+math.Sqrt(2.0/3)), 1e-10)
	// No ham may be misclassified of three, so the threshold is 3: one spam missed.
	near(t, "sm at hm", s.SMAtHM, 50, 1e-12)
	// Bins of a third of an event: every event is alone but for the tie at 0,
	// whose halves have p = ½ and half a spam.
	near(t, "ece", s.ECE, (0.11920292+(1-0.95257413)+0.73105858)/5, 1e-8)
}

// One ham in a thousand may be misclassified, and the threshold is the lowest
// that does it.
func TestSpamMissedAtOneHamInAThousand(t *testing.T) {
	m := New()
	for range 998 {
		m.Add(false, -5)
	}
	m.Add(false, 1)
	m.Add(false, 2)
	for _, z := range []float64{-6, 0, 1, 1.5, 3} {
		m.Add(true, z)
	}
	near(t, "sm at hm", m.Summary().SMAtHM, 60, 1e-12) // −6, 0 and the tie at 1 are missed
	m.Add(false, 3)
	near(t, "sm at hm", m.Summary().SMAtHM, 80, 1e-12) // 1001 ham still allow one
	for range 1000 {
		m.Add(false, -7)
	}
	near(t, "sm at hm", m.Summary().SMAtHM, 60, 1e-12) // 2001 allow two
}

func TestLogLossIsClipped(t *testing.T) {
	s := measure([]scored{{true, math.Inf(-1)}, {false, 800}}).Summary()
	near(t, "log loss", s.LogLoss, -math.Log(1e-6), 1e-9)
	near(t, "brier", s.Brier, 1, 0)
	s = measure([]scored{{true, math.Inf(1)}, {false, -800}}).Summary()
	near(t, "log loss", s.LogLoss, -math.Log(1-1e-6), 1e-15)
	near(t, "1-ROCA%", s.ROCA, 0, 0)
	near(t, "lam%", s.LAM, 50, 1e-12) // one of each: nothing is known
}

const noTails = `"below_05":{"events":0,"spam":0,"slope":null,"slope_error":null},"above_95":{"events":0,"spam":0,"slope":null,"slope_error":null},"first_400":{"log_loss":null,"roca":null}`

func TestWithoutAClass(t *testing.T) {
	for _, tt := range []struct {
		events []scored
		want   string
	}{
		{nil, `{"events":0,"spam":0,"ham":0,"error":null,"log_loss":null,"brier":null,"roca":null,"lam":null,"sm_at_hm":null,"ece":null,"calibration_slope":null,"calibration_intercept":null,` + noTails + `,"approximate":false}`},
		{[]scored{{true, 0}}, `{"events":1,"spam":1,"ham":0,"error":0,"log_loss":0.6931471805599453,"brier":0.25,"roca":null,"lam":null,"sm_at_hm":null,"ece":0.5,"calibration_slope":null,"calibration_intercept":null,` + noTails + `,"approximate":false}`},
		{[]scored{{false, 0}}, `{"events":1,"spam":0,"ham":1,"error":1,"log_loss":0.6931471805599453,"brier":0.25,"roca":null,"lam":null,"sm_at_hm":null,"ece":0.5,"calibration_slope":null,"calibration_intercept":null,` + noTails + `,"approximate":false}`},
	} {
		got, err := json.Marshal(measure(tt.events).Summary())
		if err != nil || string(got) != tt.want {
			t.Errorf("summary of %v:\n got %s, %v\nwant %s", tt.events, got, err, tt.want)
		}
		var back Summary
		if err := json.Unmarshal(got, &back); err != nil || back.ROCA.Defined() {
			t.Errorf("read back %s: %+v, %v", got, back, err)
		}
	}
}

// A summary within another struct keeps its fields beside the others.
func TestSummaryEmbeds(t *testing.T) {
	b, err := json.Marshal(struct {
		Summary
		Rejected int `json:"rejected"`
	}{New().Summary(), 3})
	if err != nil || !strings.Contains(string(b), `"roca":null`) || !strings.Contains(string(b), `"rejected":3`) {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestNaNIsABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Add(NaN) did not panic")
		}
	}()
	New().Add(true, math.NaN())
}

// slow is the definition of every figure, in O(n²).
func slow(events []scored) (roca, sm, ece float64) {
	var ham, spam []float64
	for _, e := range events {
		if e.spam {
			spam = append(spam, e.z)
		} else {
			ham = append(ham, e.z)
		}
	}
	for _, h := range ham {
		for _, s := range spam {
			switch {
			case h > s:
				roca++
			case h == s:
				roca += 0.5
			}
		}
	}
	roca *= 100 / float64(len(ham)*len(spam))

	sm = 100
	for _, threshold := range append(append([]float64{}, ham...), spam...) {
		reached, missed := 0, 0
		for _, h := range ham {
			if h >= threshold {
				reached++
			}
		}
		for _, s := range spam {
			if s < threshold {
				missed++
			}
		}
		if float64(reached) <= 0.001*float64(len(ham)) {
			sm = min(sm, 100*float64(missed)/float64(len(spam)))
		}
	}

	// Every event is cut into 15 equal crumbs, so that bins of equal count exist;
	// in a tie the crumbs carry the tie's mean label.
	type crumb struct{ z, p, y float64 }
	var crumbs []crumb
	for _, e := range events {
		tied, spams := 0, 0
		for _, o := range events {
			if o.z == e.z {
				tied++
				if o.spam {
					spams++
				}
			}
		}
		for range calibrationBins {
			crumbs = append(crumbs, crumb{e.z, 1 / (1 + math.Exp(-e.z)), float64(spams) / float64(tied)})
		}
	}
	for i := range crumbs { // the obvious sort
		for j := i; j > 0 && crumbs[j].z < crumbs[j-1].z; j-- {
			crumbs[j], crumbs[j-1] = crumbs[j-1], crumbs[j]
		}
	}
	for b := range calibrationBins {
		gap := 0.0
		for _, c := range crumbs[b*len(events) : (b+1)*len(events)] {
			gap += c.p - c.y
		}
		ece += math.Abs(gap) / float64(len(crumbs))
	}
	return roca, sm, ece
}

func drawEvents(t *rapid.T) []scored {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scored {
		z := rapid.Float64Range(-30, 30)
		if rapid.Bool().Draw(t, "tied") {
			z = rapid.SampledFrom([]float64{-3, -1, 0, 1, 2})
		}
		return scored{rapid.Bool().Draw(t, "spam"), z.Draw(t, "z")}
	}), 1, 60).Draw(t, "events")
}

func TestAgainstDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		s := measure(events).Summary()
		roca, sm, ece := slow(events)
		if math.Abs(float64(s.ECE)-ece) > 1e-9 {
			t.Errorf("ece = %v, want %v", s.ECE, ece)
		}
		if s.Ham == 0 || s.Spam == 0 {
			if s.ROCA.Defined() || s.SMAtHM.Defined() || s.LAM.Defined() {
				t.Errorf("one class: %+v", s)
			}
			return
		}
		if math.Abs(float64(s.ROCA)-roca) > 1e-9 {
			t.Errorf("1-ROCA%% = %v, want %v", s.ROCA, roca)
		}
		if float64(s.SMAtHM) != sm {
			t.Errorf("sm at hm = %v, want %v", s.SMAtHM, sm)
		}
	})
}

// First holds the figures of the first 400 events alone, whatever follows, and nothing
// with fewer.
func TestFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	m, early := New(), New()
	for i := range 3000 {
		if s := m.Summary(); i < FirstEvents && (s.First.LogLoss.Defined() || s.First.ROCA.Defined()) {
			t.Fatalf("after %d events: %+v", i, s.First)
		}
		spam := r.IntN(3) == 0
		z := r.NormFloat64() + float64(i)/1000
		if spam {
			z += 2
		}
		m.Add(spam, z)
		if i < FirstEvents {
			early.Add(spam, z)
		}
		if i == FirstEvents-1 || i == 2999 {
			want := early.Summary()
			got := m.Summary()
			near(t, "log loss", got.First.LogLoss, float64(want.LogLoss), 1e-15)
			near(t, "1-ROCA%", got.First.ROCA, float64(want.ROCA), 1e-12)
			if i == 2999 && got.LogLoss == got.First.LogLoss {
				t.Error("the first events are all events")
			}
		}
	}
	m = New()
	for range FirstEvents {
		m.Add(true, 1)
	}
	if s := m.Summary(); s.First.ROCA.Defined() || !s.First.LogLoss.Defined() {
		t.Errorf("without ham: %+v", s.First)
	}
}

// The histogram agrees with the exact figures within the bounds that the
// package documents.
func TestHistogramAgainstExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := New()
	for range 200_000 {
		spam := r.Float64() < 0.3
		z := r.NormFloat64()*3 - 3
		if spam {
			z += 9
		}
		m.Add(spam, z)
	}
	m.Add(true, 900) // beyond the bins
	m.Add(true, math.Inf(1))
	m.Add(false, -900)
	exact := m.Summary()
	other := *m
	other.toHistogram()
	approx := other.Summary()
	if !approx.Approximate || exact.Approximate {
		t.Fatalf("approximate: %v, %v", approx.Approximate, exact.Approximate)
	}
	shared := 0.0
	for b := range other.bins.ties {
		shared += float64(b.ham) * float64(b.spam)
	}
	bound := 50 * shared / (float64(m.ham) * float64(m.spam))
	if bound > 0.01 {
		t.Errorf("the bound itself is %v", bound)
	}
	near(t, "1-ROCA%", approx.ROCA, float64(exact.ROCA), bound)
	near(t, "ece", approx.ECE, float64(exact.ECE), 1e-3)
	near(t, "sm at hm", approx.SMAtHM, float64(exact.SMAtHM), 0.1)
	near(t, "slope below", approx.Below.Slope, float64(exact.Below.Slope), 0.01)
	near(t, "slope above", approx.Above.Slope, float64(exact.Above.Slope), 0.01)
	near(t, "events above", Measure(approx.Above.Events), float64(exact.Above.Events), 100)
	if approx.SMAtHM < exact.SMAtHM {
		t.Errorf("sm at hm = %v, below the exact %v: more ham than allowed", approx.SMAtHM, exact.SMAtHM)
	}
	if approx.LogLoss != exact.LogLoss || approx.LAM != exact.LAM || approx.Error != exact.Error {
		t.Errorf("sums differ: %+v, %+v", approx, exact)
	}
}

// Memory is bounded: after 2²⁰ events the scores are gone and the bins take over.
func TestSwitchesAtTheLimit(t *testing.T) {
	m := New()
	for i := range ExactEvents {
		m.Add(i%2 == 0, float64(i%2000)/100-10)
	}
	exact := m.Summary()
	if exact.Approximate {
		t.Fatal("approximate already")
	}
	m.Add(true, 5)
	s := m.Summary()
	if !s.Approximate || m.exact.ham != nil || m.exact.spam != nil {
		t.Fatalf("not in the histogram after %d events", s.Events)
	}
	near(t, "1-ROCA%", s.ROCA, float64(exact.ROCA), 0.01)
	near(t, "ece", s.ECE, float64(exact.ECE), 1e-3)
}

func BenchmarkAdd(b *testing.B) {
	m := New()
	b.ReportAllocs()
	for i := range b.N {
		m.Add(i&1 == 0, float64(i%1000)/100-5)
	}
}
