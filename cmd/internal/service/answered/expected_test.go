package answered

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/stream"
)

// answers returns n lines of calibrated answers, a second apart, and the labels of a share of them and of all errors, a
// minute later. Log-odds are apart from 0. From blind on, every fifth ham is called spam, whatever p says: -1 is never.
func answers(r *rand.Rand, n int, share, apart float64, blind int) (lines []*stream.JournalEntry, lost, missed int) {
	for i := range n {
		z := apart*float64(2*r.IntN(2)-1) + r.NormFloat64()
		σ := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
		at := time.Duration(i) * time.Second
		e := decided(i, σ(z), at)
		e.Low, e.High, e.Model = σ(z-0.3), σ(z+0.3), "default/0123456789ab"
		spam := r.Float64() < e.P || blind >= 0 && i >= blind && r.Float64() < 0.2
		label := stream.Ham
		if spam {
			label = stream.Spam
		}
		wrong := spam != (e.Verdict == stream.DecideSpam)
		switch {
		case wrong && spam:
			missed++
		case wrong:
			lost++
		}
		lines = append(lines, e)
		if r.Float64() < share || wrong && share > 0 {
			lines = append(lines, labelled(i, label, at+time.Minute))
		}
	}
	return lines, lost, missed
}

func holds(i Interval, n int) bool {
	return float64(i.Low) <= float64(n) && float64(n) <= float64(i.High)
}

// The truth is in the interval, with all labels, with those of errors and some others, and without any.
func TestExpectedErrors(t *testing.T) {
	inside, withdrawn := 0, 0
	const runs = 60
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), 1))
		lines, lost, missed := answers(r, 1000, []float64{1, 0.02, 0}[run%3], 4, -1)
		all := Of(slices.Values(lines), 10_000, nil)
		x := all[0].Expected
		if all[1].Expected.Answers != 1000 || x.Answers != 1000 || x.LeftOut != 0 {
			t.Fatalf("%+v", x)
		}
		if x.Withdrawn != "" {
			withdrawn++
			if x.Lost.Value.Defined() || x.Missed.High.Defined() || !strings.Contains(x.Withdrawn, "slope") {
				t.Errorf("%+v", x)
			}
			continue
		}
		if holds(x.Lost, lost) && holds(x.Missed, missed) {
			inside++
		}
		if run%3 != 2 && (all[0].Lost != lost || all[0].Missed != missed) {
			t.Errorf("labels say %d and %d, want %d and %d", all[0].Lost, all[0].Missed, lost, missed)
		}
	}
	// Of 20 runs with all labels two are withdrawn, as one interval in ten leaves 1: more than 7 once in 2,000 times.
	if withdrawn > 7 || inside < (runs-withdrawn)*85/100 {
		t.Errorf("%d of %d inside, %d withdrawn", inside, runs, withdrawn)
	}
}

// Labels of errors alone withdraw the figure within 150 answers of a change that p is blind to. It says how many.
func TestLabelsWithdraw(t *testing.T) {
	for run := range 10 {
		r := rand.New(rand.NewPCG(uint64(run), 2))
		lines, _, _ := answers(r, 3150, 0.02, 6, 3000)
		x := Of(slices.Values(lines), 10_000, nil)[1].Expected
		if !strings.HasPrefix(x.Withdrawn, "labels contradict it: ") || x.Missed.Value.Defined() {
			t.Errorf("%+v", x)
		}
	}
}

// Answers that are too sure withdraw the figure where most are labelled, whatever those before were. Labels of errors
// alone are too sure always, and do not.
func TestSlopeWithdraws(t *testing.T) {
	lines, _, _ := answers(rand.New(rand.NewPCG(11, 1)), 4000, 1, 2, -1)
	sure, _, _ := answers(rand.New(rand.NewPCG(12, 1)), 4800, 1, 2, -1)
	for _, e := range sure {
		if e.Label == stream.Unlabelled { // log-odds are doubled
			σ := func(p float64) float64 { return p * p / (p*p + (1-p)*(1-p)) }
			e.P, e.Low, e.High = σ(e.P), σ(e.Low), σ(e.High)
		}
	}
	for _, c := range []struct {
		lines []*stream.JournalEntry
		want  string
	}{
		{lines, ""},
		{slices.Concat(lines, sure[8000:]), "the last 500 labelled answers have the slope 0."},
		{sure[9000:9100], ""}, // too few
	} {
		got := Of(slices.Values(c.lines), 20_000, nil)[0].Expected.Withdrawn
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	few := Figures{Labelled: 600, Answers: 1201, newest: newInterval(.2, .1, .3)}
	most := few
	if most.Answers = 1200; SlopeReason(&few) != "" || SlopeReason(&most) == "" {
		t.Errorf("few: %q, most: %q", SlopeReason(&few), SlopeReason(&most))
	}
}

// What a model answered while an incident was open is counted apart, and labels of it prove nothing. While one is
// open now, nothing is known.
func TestDoubtsLeaveOut(t *testing.T) {
	lines, _, _ := answers(rand.New(rand.NewPCG(3, 3)), 3000, 1, 6, 1000)
	doubt := Doubt{Kind: stream.AlertConcept, From: noon.Add(1000 * time.Second), To: noon.Add(4000 * time.Second)}
	of := func(d ...Doubt) *Expected {
		var asked []string
		x := Of(slices.Values(lines), 10_000, func(model string) Doubts {
			asked = append(asked, model)
			return d
		})[0].Expected
		if len(asked) != 3000 || asked[0] != "default" {
			t.Errorf("asked for %d, %q", len(asked), asked[0])
		}
		return x
	}
	if x := of(doubt); x.Answers != 1000 || x.LeftOut != 2000 || x.Withdrawn != "" || !x.Missed.Value.Defined() {
		t.Errorf("a closed incident: %+v", x)
	}
	doubt.From = noon
	if x := of(doubt); x.Answers != 0 || x.LeftOut != 3000 || x.Withdrawn != "an incident was open all the time" {
		t.Errorf("all the time: %+v", x)
	}
	doubt.To = time.Time{}
	x := of(doubt)
	if x.Withdrawn != "an incident of concept is open since 2026-11-20 12:00 UTC" {
		t.Errorf("an open incident: %+v", x)
	}
	b, err := json.Marshal(Figures{Expected: x})
	if err != nil || !strings.Contains(string(b), `"ham_lost":{"value":null,"lo":null,"hi":null}`) ||
		!strings.Contains(string(b), `"withdrawn":"an incident`) {
		t.Errorf("%s, %v", b, err)
	}
}

// Of scorers with different models one has an incident open: nothing is known, whichever answered last. Once it
// answers no more, what the other says counts.
func TestAnyModelsIncidentWithdraws(t *testing.T) {
	doubts := func(model string) Doubts {
		if model == "shadow" {
			return Doubts{{Kind: stream.AlertConcept, From: noon.Add(time.Minute)}}
		}
		return nil
	}
	of := func(models ...string) *Expected {
		var lines []*stream.JournalEntry
		for i, model := range models {
			e := decided(i, .01, time.Duration(i)*45*time.Second)
			e.Model = model + "/0123456789ab"
			lines = append(lines, e)
		}
		return Of(slices.Values(lines), 10, doubts)[0].Expected
	}
	const open = "an incident of concept is open since 2026-11-20 12:01 UTC"
	for _, c := range []struct {
		what   string
		models []string
		want   string
	}{
		{"it answered last", []string{"default", "default", "shadow"}, open},
		{"before the other", []string{"default", "default", "shadow", "default"}, open},
		{"before the incident, and last", []string{"default", "shadow"}, open},
		{"before the incident alone", []string{"shadow", "default", "default"}, ""},
	} {
		if x := of(c.models...); x.Withdrawn != c.want {
			t.Errorf("%s: %q, want %q", c.what, x.Withdrawn, c.want)
		}
	}
}

// A second answer about a message is no second error. Texts count, though nobody can label them.
func TestMessagesCountOnce(t *testing.T) {
	text := decided(1, .2, 0)
	text.ID = ""
	x := Of(slices.Values([]*stream.JournalEntry{decided(1, .99, 0), decided(1, .2, time.Second), decided(2, .25, 0), text, text}), 10, nil)[0].Expected
	if x.Answers != 4 || math.Abs(float64(x.Missed.Value)-.65) > 1e-12 || math.Abs(float64(x.Lost.Value)-.01) > 1e-12 {
		t.Errorf("%+v", x)
	}
}

// A record forgets the oldest answers and joins labels to the others.
func TestRecordIsBounded(t *testing.T) {
	m, r := NewMatcher(1000), NewRecord(100)
	for i := range 1000 {
		r.Add(m.Decisions(), decided(i, .001, time.Duration(i)*time.Second), i%2, false)
		m.Add(decided(i, .001, time.Duration(i)*time.Second))
	}
	for i := range 1000 {
		if match, ok := m.Add(labelled(i, stream.Spam, time.Hour)); !ok {
			t.Fatal(i)
		} else if i < 800 || i%2 == 1 {
			r.Label(&match)
		}
	}
	if len(r.all) > 125 || r.first+int64(len(r.all)) != 1000 {
		t.Errorf("%d answers from %d on", len(r.all), r.first)
	}
	groups, all, ok := r.Clone().Contradictions(noon, nil)
	if e := groups[1]; len(groups) != 1 || !ok || e.Wrong < 40 || all.Wrong != e.Wrong {
		t.Errorf("%v, %v, %v", groups, all, ok)
	}
	if _, _, ok := r.Contradictions(noon.Add(998*time.Second), nil); ok {
		t.Error("two answers contradict")
	}
	if text := fmt.Sprint(ExcessReason(all)); !strings.Contains(text, " errors in ") {
		t.Error(text)
	}
}

// Of groups that have as many wrong answers the first speaks for all. Right ones between them dilute the sum.
func TestTheFirstGroupSpeaks(t *testing.T) {
	m, r := NewMatcher(100_000), NewRecord(100_000)
	for i := range 20_000 {
		group := 20 + i%2
		if i%400 == 0 {
			group = i / 400 % 10
		}
		nth, e := m.Decisions(), decided(i, .02, time.Duration(i)*time.Second)
		e.P += .001 * float64(group%10)
		m.Add(e)
		r.Add(nth, e, group, false)
		if match, ok := m.Add(labelled(i, stream.Spam, 24*time.Hour)); ok && group < 10 {
			r.Label(&match)
		}
	}
	for range 20 {
		groups, all, ok := r.Contradictions(noon, nil)
		if !ok || len(groups) != 10 || all != groups[0] || groups[1].Wrong != all.Wrong {
			t.Fatalf("%v of %v, %v", all, groups, ok)
		}
	}
}

// What a page that shows a week asks at most every ten seconds.
func BenchmarkContradictions(b *testing.B) {
	r := NewRecord(200_000)
	for i := range 200_000 {
		r.Add(int64(i), decided(i, .001, time.Duration(i)*time.Second), i%30, false)
	}
	for b.Loop() {
		r.Contradictions(noon, Doubts{{From: noon.Add(-time.Hour), To: noon}})
	}
}
