package bench

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// coins is a series whose rate of wrong predictions changes at an event, and the loss
// with it.
func coins(seed uint64, n int, rate float64, from int, other float64) *series {
	r := rand.New(rand.NewPCG(seed, 8))
	s := new(series)
	for i := range n {
		p := rate
		if i >= from {
			p = other
		}
		wrong := r.Float64() < p
		s.wrong = append(s.wrong, wrong)
		s.loss = append(s.loss, .02+r.ExpFloat64()*(.05+.6*oneIf(wrong)))
	}
	return s
}

// A tuned threshold gives at most target alarms, and a slightly lower one gives more. A
// lower target gives a higher threshold. The detector still finds a change.
func TestTuneHitsItsTarget(t *testing.T) {
	var clean []*series
	for seed := range uint64(12) {
		clean = append(clean, coins(seed, 4_000, .1, 4_000, .1))
	}
	for i := range peers {
		p := &peers[i]
		last := math.Inf(1)
		for _, target := range []int{0, 2} {
			threshold, alarms, err := p.tune(t.Context(), clean, 500, target)
			if err != nil {
				t.Fatal(err)
			}
			counted, err := p.alarms(t.Context(), clean, 500, threshold)
			if err != nil {
				t.Fatal(err)
			}
			// The last step is √2^(1/2^tuneSteps) wide: three lie below.
			below, err := p.alarms(t.Context(), clean, 500, threshold*math.Pow(2, -1.5/(1<<tuneSteps)))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s on %s: %d at %.4g, %d just below", p.name, p.on, alarms, threshold, below)
			if alarms != counted || alarms > target || below <= target {
				t.Errorf("%s on %s: %d alarms at %v (counted %d), %d below, want at most %d and more below", p.name,
					p.on, alarms, threshold, counted, below, target)
			}
			if threshold > last {
				t.Errorf("%s on %s: a threshold of %v for more alarms than %v is for", p.name, p.on, threshold, last)
			}
			last = threshold
			raises, err := p.raises(coins(99, 4_000, .1, 2_000, .5), threshold)
			if err != nil {
				t.Fatal(err)
			}
			if at := firstAfter(raises, 2_000); at == 0 || at > 2_600 {
				t.Errorf("%s on %s, threshold %v: a rise to .5 at 2,000 was found at %d", p.name, p.on, threshold, at)
			}
		}
	}
	// Not monotonic: quiet from 4 on and again below 2. tune must return 4.
	twofold := peer{name: "twofold", low: 1, high: 64, watch: func(threshold float64) (watcher, error) {
		return func(count int, _ bool, _ float64) bool { return count == 900 && threshold >= 2 && threshold < 4 }, nil
	}}
	if threshold, alarms, err := twofold.tune(t.Context(), clean[:1], 500, 0); err != nil || threshold < 4 ||
		threshold > 4.01 || alarms != 0 {
		t.Errorf("twofold: %d alarms at %v, %v; want none at 4", alarms, threshold, err)
	}
	// Quiet everywhere: tune returns the lowest threshold.
	mute := peer{name: "mute", low: 1, high: 10, watch: func(float64) (watcher, error) {
		return func(int, bool, float64) bool { return false }, nil
	}}
	if threshold, _, err := mute.tune(t.Context(), clean[:1], 500, 0); err != nil || threshold < 1 ||
		threshold > math.Sqrt2 {
		t.Errorf("mute: a threshold of %v, %v", threshold, err)
	}
	// If no threshold meets the target, tune returns the highest.
	loud := peer{name: "loud", low: 1, high: 10, watch: func(float64) (watcher, error) {
		return func(int, bool, float64) bool { return true }, nil
	}}
	if threshold, alarms, err := loud.tune(t.Context(), clean[:1], 500, 3); err != nil || threshold != 10 ||
		alarms != 7 {
		t.Errorf("loud: %d alarms at %v, %v; want 7 at 10", alarms, threshold, err)
	}
}

// A permanent alarm counts once in 500 events, even if it began before the events that
// count.
func TestAlarmsAfter(t *testing.T) {
	var always []int
	for i := 1; i <= 3_000; i++ {
		always = append(always, i)
	}
	for _, c := range []struct {
		raises      []int
		learnt, end int
		want        int
	}{
		{nil, 0, 100, 0},
		{always, 0, 3_000, 6},
		{always, 1_500, 3_000, 3},
		{[]int{10, 1_400, 1_501, 2_000, 2_001, 3_100}, 1_500, 3_000, 2},
		{[]int{1_500}, 1_500, 3_000, 0},
	} {
		if got := alarmsAfter(c.raises, c.learnt, c.end); got != c.want {
			t.Errorf("after %d: %d alarms, want %d", c.learnt, got, c.want)
		}
	}
	for at, want := range map[int]int{0: 10, 9: 10, 10: 1_400, 3_000: 0} {
		if got := firstAfter([]int{10, 1_400, 3_000}, at); got != want {
			t.Errorf("first after %d is %d, want %d", at, got, want)
		}
	}
}

// Reference: Garwood (1936), the table: of 0 the interval is 0 to 3.689, of 1
// .0253 to 5.572, of 10 4.795 to 18.39.
func TestPoisson(t *testing.T) {
	for k, want := range map[int][2]float64{0: {0, 3.6889}, 1: {.0253, 5.5716}, 10: {4.7954, 18.3904}} {
		lo, hi := poisson(k)
		if math.Abs(lo-want[0]) > 5e-5 || math.Abs(hi-want[1]) > 5e-5 {
			t.Errorf("of %d: %v to %v, want %v", k, lo, hi, want)
		}
	}
	if got := chance(1e-5, 2_000); math.Abs(got-.0198) > 1e-4 {
		t.Errorf("at random: %v", got)
	}
}

// Infinite delays count as longer than all others.
func TestMedian(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		delays        []float64
		value, lo, hi float64
	}{
		{[]float64{7, 7, 7}, 7, 7, 7},
		{[]float64{inf, inf, 5}, inf, 5, inf},
		{[]float64{inf, inf, inf}, inf, inf, inf},
		{[]float64{10, inf, 30, 20, 40}, 30, 10, inf},
	} {
		if got := median(c.delays, 2_000, 1); got != (interval{c.value, c.lo, c.hi}) {
			t.Errorf("of %v: %v, want %v (%v to %v)", c.delays, got, c.value, c.lo, c.hi)
		}
	}
}

// The table and the notes of a result made by hand.
func TestAlarmTable(t *testing.T) {
	never := math.Inf(1)
	find := func(raised int, value, lo, hi float64) []finding {
		return []finding{{Of: 4, Raised: raised, Right: new(int), Delay: interval{value, lo, hi}}}
	}
	const counted, before = 200_000, 14_000
	r := &alarmResult{
		plan:    plan{Seeds: 4, faultAt: 5_000, Horizon: 2_000, learnt: 1_500},
		Command: "hamlet-lab bench alarms", Sets: []string{"one", "two"}, trials: []trial{{1, "two", &faults[1]}},
		streams: 10, CleanEvents: 215_000, Counted: counted, Before: before, target: 4, Seconds: 3,
		Detectors: []detector{
			{Name: "always", Rate: rate(counted, counted), BeforeRate: rate(before, before), Faults: find(4, 1, 1, 1)},
			{Name: "Page–Hinkley", On: "error", Parameter: "λ", Threshold: 12.345, FalseAlarms: 5,
				Rate: rate(5, counted), BeforeRate: rate(0, before), Faults: find(3, 120, 90.5, never)},
			{Name: "named", On: "hamlet", own: true, names: true, FalseAlarms: 4,
				Rate: rate(4, counted), BeforeRate: rate(1, before), Faults: find(0, never, never, never)},
		},
	}
	var b strings.Builder
	if err := r.section().Print(&b); err != nil {
		t.Fatal(err)
	}
	const want = `215000 events with true labels in 10 streams (one, two), 4 streams for each fault; in 3s

                                always  Page–     named
                                        Hinkley   
                   watches              error     hamlet
threshold                       –       12.3      –
false alarms       per 100,000  100000  2.5       2
                   95 %         –       0.81–5.8  0.54–5.1
before the faults  per 100,000  100000  0         7.1
                   95 %         –       0–26      0.18–40
two: 10 % flips    raised       4/4     3/4       0/4
                   right first                    0/4
                   delay        1       120       >2000
                   95 %         1       90–>2000  >2000

Ours have the thresholds`
	if got := b.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, want := range []string{
		"Page–Hinkley on the error has more at any.",
		"Each other threshold was lowered in steps of √2",
		"is raised in 3.9 % of spans of 2000 events (1.1 to 9.7 %)",
		"Made by: hamlet-lab bench alarms\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
