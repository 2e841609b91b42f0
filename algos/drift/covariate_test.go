package drift

import (
	"math"
	"math/rand/v2"
	"testing"
)

// leverages draws ln a.
var leverages = []struct {
	name string
	draw func(r *rand.Rand) float64
}{
	{"normal", func(r *rand.Rand) float64 { return r.NormFloat64() }},
	{"exponential", func(r *rand.Rand) float64 { return r.ExpFloat64() }},
	{"falling exponential", func(r *rand.Rand) float64 { return -r.ExpFloat64() }},
	{"Student's t of 2", func(r *rand.Rand) float64 { return r.NormFloat64() / math.Sqrt(r.ExpFloat64()) }},
	{"two kinds of mail", func(r *rand.Rand) float64 {
		if r.Float64() < .2 {
			return 2 + r.NormFloat64()/2
		}
		return r.NormFloat64() / 2
	}},
}

// Stationary leverages of any shape, or falling as 1/t as those of a head that
// learns, raise the alarm at most once in 300,000 events.
func TestCovariateIsQuiet(t *testing.T) {
	for _, l := range leverages {
		for _, trend := range []float64{0, 1} {
			if n := covariateAlarms(l.draw, trend, 300_000); n > 1 {
				t.Errorf("%s, trend %v: %d alarms", l.name, trend, n)
			}
		}
	}
}

func covariateAlarms(draw func(r *rand.Rand) float64, trend float64, events int) (alarms int) {
	r := rand.New(rand.NewPCG(1, 1))
	c := mustNew(NewCovariate(CovariateConfig{}))
	for i := range events {
		if c.Observe(uint64(i+1), math.Exp(draw(r)-trend*math.Log(float64(i+100)))) && c.raised {
			alarms++
		}
	}
	return alarms
}

// Leverage that rises by 1.5 spreads is seen within 60 events, in streams of any
// scale; it clears when the mail is learnt, and by itself if it never is.
func TestCovariateRaisesAndClears(t *testing.T) {
	for _, learnt := range []bool{true, false} {
		for _, scale := range []float64{1e-30, 1, 1e30} {
			r := rand.New(rand.NewPCG(5, 6))
			c := mustNew(NewCovariate(CovariateConfig{}))
			var changes []uint64
			for i := range uint64(12_000) {
				up := 0.0
				if i >= 4_000 && (!learnt || i < 4_300) {
					up = 1.5
				}
				if c.Observe(i+1, scale*math.Exp(r.NormFloat64()+up)) {
					changes = append(changes, i+1)
				}
			}
			last := uint64(8_000)
			if learnt {
				last = 4_400
			}
			if len(changes) != 2 || changes[0] < 4_000 || changes[0] > 4_060 || changes[1] > last {
				t.Errorf("learnt %v, scale %g: changes at %v", learnt, scale, changes)
			}
		}
	}
}

// One odd message, and a run of familiar ones, raise nothing.
func TestCovariateNeedsARun(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	c := mustNew(NewCovariate(CovariateConfig{}))
	for i := range uint64(6_000) {
		a := math.Exp(r.NormFloat64())
		switch {
		case i >= 2_000 && i%1_000 == 0:
			a = math.Inf(1)
		case i >= 5_000:
			a *= .1
		}
		if c.Observe(i+1, a) {
			t.Fatalf("raised at %d: %+v", i+1, c.Status())
		}
	}
}

// Constant leverages and those at both ends of the numbers give no NaN.
func TestCovariateDegenerate(t *testing.T) {
	for _, a := range []float64{0, 1, math.MaxFloat64, math.Inf(1), 5e-324} {
		c := mustNew(NewCovariate(CovariateConfig{}))
		for i := range uint64(3_000) {
			if c.Observe(i+1, a) {
				t.Fatalf("constant %v: raised at %d", a, i+1)
			}
		}
		if s := c.Status(); math.IsNaN(s.Level) || math.Abs(s.Reference) > farthestLog {
			t.Errorf("constant %v: %+v", a, s)
		}
	}
	if !panics(func() { mustNew(NewCovariate(CovariateConfig{})).ObserveLog(1, math.NaN()) }) {
		t.Error("a leverage without a logarithm was taken")
	}
	for _, a := range []float64{math.NaN(), -1} {
		if !panics(func() { mustNew(NewCovariate(CovariateConfig{})).Observe(1, a) }) {
			t.Errorf("a leverage of %v was taken", a)
		}
	}
}
