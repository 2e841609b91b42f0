package drift

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// The recursion in U is the test of Page (1954) and Hinkley (1971): m − min m over
// cumulative sums of x − x̄ − δ, with x̄ the mean of all x so far.
func TestPageHinkleyIsTheTextbooks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := mustNew(NewPageHinkley(PageHinkleyConfig{Threshold: 40}))
	var sum, m, least float64
	for n := range 5_000 {
		x := min(3, r.ExpFloat64()*.4)
		if n >= 3_000 {
			x = min(3, r.ExpFloat64()*.8)
		}
		changed := p.Observe(uint64(n+1), x)
		sum += x
		if n >= lossQuiet {
			m += x - sum/float64(n+1) - .02
		}
		least = min(least, m)
		if raised := m-least > 40; raised != changed {
			t.Fatalf("event %d: m − min m is %v, changed %v", n+1, m-least, changed)
		} else if raised {
			if n < 3_000 || n > 3_300 {
				t.Fatalf("raised at %d", n+1)
			}
			return
		}
		if got := p.Status().Level; math.Abs(got-(m-least)) > 1e-9 {
			t.Fatalf("event %d: U is %v, want %v", n+1, got, m-least)
		}
	}
	t.Fatal("never raised")
}

// feed gives n losses of 0 or 1, one with probability rate, and returns the counts
// at which the state changed.
func feed(p *PageHinkley, r *rand.Rand, count *uint64, n int, rate float64) (changes []uint64) {
	for range n {
		*count++
		x := 0.0
		if r.Float64() < rate {
			x = 1
		}
		if p.Observe(*count, x) {
			changes = append(changes, *count)
		}
	}
	return changes
}

// Back at the old loss it clears within 3·λ/2δ events; at a new one that lasts
// it clears after Settle events and takes that for its reference, to within what
// 1,500 losses tell: one stream in five raises again, for a time, in the next 7,000.
func TestPageHinkleyClears(t *testing.T) {
	again := 0
	const seeds = 20
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := mustNew(NewPageHinkley(PageHinkleyConfig{}))
		var count uint64
		if c := feed(p, r, &count, 5_000, .1); len(c) > 0 {
			t.Fatalf("changed at %v without a change", c)
		}
		if c := feed(p, r, &count, 200, .6); len(c) != 1 || c[0] > 5_120 {
			t.Fatalf("a loss of .6 for .1: changed at %v", c)
		}
		if c := feed(p, r, &count, 5_000, .1); len(c) != 1 || c[0] > 5_200+2_100 {
			t.Fatalf("back at .1: changed at %v", c)
		}
		raised := feed(p, r, &count, 10_000, .3)
		if len(raised) < 2 || raised[1]-raised[0] != 3_000 {
			t.Fatalf("a loss of .3 that stays: changed at %v", raised)
		}
		if len(raised) > 2 {
			again++
		} else if s := p.Status(); s.Raised || math.Abs(s.Reference-.3) > .03 {
			t.Fatalf("settled: %+v", s)
		}
	}
	if t.Logf("raised again in %d of %d", again, seeds); again > seeds/5 {
		t.Errorf("raised again in %d of %d", again, seeds)
	}
}

// A model learns in its first events; losses that fall, none, all of the same, or
// infinite ones are no change in themselves.
func TestPageHinkleyDegenerate(t *testing.T) {
	for name, loss := range map[string]func(n int) float64{
		"falling":  func(n int) float64 { return 3 / (1 + float64(n)/50) },
		"none":     func(int) float64 { return 0 },
		"infinite": func(int) float64 { return math.Inf(1) },
	} {
		p := mustNew(NewPageHinkley(PageHinkleyConfig{}))
		for n := range 20_000 {
			if p.Observe(uint64(n+1), loss(n)) {
				t.Errorf("%s: changed at %d", name, n+1)
			}
		}
		if s := p.Status(); !(s.Reference >= 0 && s.Reference <= 3 && s.Level >= 0) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for _, loss := range []float64{math.NaN(), -1, math.Inf(-1)} {
		if !panics(func() { mustNew(NewPageHinkley(PageHinkleyConfig{})).Observe(1, loss) }) {
			t.Errorf("a loss of %v was taken", loss)
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// Every bad field is named.
func TestConfigErrors(t *testing.T) {
	_, err := NewPageHinkley(PageHinkleyConfig{Clip: -1, Threshold: math.NaN()})
	_, err2 := NewCovariate(CovariateConfig{Window: covariateMemory, Threshold: 4})
	_, err3 := NewLabelNoise(LabelNoiseConfig{Drop: -1, FlipRate: 2, Clear: 1})
	for _, c := range []struct {
		err   error
		names []string
	}{
		{err, []string{"clip", "threshold"}},
		{err2, []string{"window of 2000", "threshold"}},
		{err3, []string{"dim", "drop", "confirmed", "flip rate", "clear"}},
	} {
		for _, name := range c.names {
			if c.err == nil || !strings.Contains(c.err.Error(), name) {
				t.Errorf("%q is not in: %v", name, c.err)
			}
		}
	}
}
