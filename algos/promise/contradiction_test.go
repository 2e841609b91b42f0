package promise

import (
	"math"
	"math/rand/v2"
	"testing"
)

// until returns after how many verdicts p is contradicted, most if it never is. Errors are so many times as likely
// as p says, and so many of them get a label.
func until(r *rand.Rand, most int, times, labelled float64) (int, Excess) {
	var c Contradiction
	for i := range most {
		p := 0.002 * math.Exp(3*r.Float64())
		c.Add(p, 1.2*p, r.Float64() < times*p && r.Float64() < labelled)
		if e, ok := c.Excess(); ok {
			return i + 1, e
		}
	}
	return most, Excess{}
}

// Where p is right, nothing contradicts it in 300,000 verdicts, however few errors get a label. Errors are independent.
func TestWhatIsRightIsNotContradicted(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, labelled := range []float64{1, 0.1} {
		for range 5 {
			if n, e := until(r, 30_000, 1, labelled); n < 30_000 {
				t.Errorf("%g labelled: contradicted after %d verdicts, %+v", labelled, n, e)
			}
		}
	}
}

// By (2), R of p that is right grows by at most 1 a verdict in the mean. q at its bound is the worst.
func TestEvidenceIsFair(t *testing.T) {
	for i, k := range oddsFactors {
		for _, p := range []float64{0, 0.01, 0.5, 1} {
			ratio := func(wrong bool) float64 {
				var c Contradiction
				c.Add(p/2, p, wrong)
				return c.runs[i].ratio
			}
			q := min(1, p+Slips)
			if fair := q*ratio(true) + (1-q)*ratio(false); math.Abs(fair-1) > 1e-12 {
				t.Errorf("k %g, q %g: %g", k, q, fair)
			}
		}
	}
}

// Where a tenth is wrong and p says a hundredth, labels for the errors alone contradict it soon. The
// run begins near the change.
func TestErrorsContradict(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		var c Contradiction
		for range 20_000 {
			c.Add(0.01, 0.012, r.Float64() < 0.01)
		}
		if e, ok := c.Excess(); ok {
			t.Fatalf("contradicted before the change: %+v", e)
		}
		after := 0
		e, ok := Excess{}, false
		for ; !ok && after < 1000; after++ {
			c.Add(0.01, 0.012, r.Float64() < 0.1)
			e, ok = c.Excess()
		}
		if after > 400 {
			t.Errorf("not contradicted after %d verdicts", after)
		}
		if ratio := float64(e.Wrong) / e.Expected; ratio < 4 || e.Verdicts > after+300 ||
			math.Abs(e.Expected-0.01*float64(e.Verdicts)) > 1e-9 {
			t.Errorf("after %d verdicts %+v", after, e)
		}
	}
}

// What is contradicted stays so, with the strongest run.
func TestExcessStays(t *testing.T) {
	var c Contradiction
	for range 20 {
		c.Add(0.001, 0.001, true)
	}
	before, ok := c.Excess()
	for range 100_000 {
		c.Add(0.001, 0.001, false)
	}
	if after, _ := c.Excess(); !ok || after != before || before.Wrong != 20 || before.Verdicts != 20 {
		t.Errorf("%+v, then %+v", before, after)
	}
	if e, ok := new(Contradiction).Excess(); ok || e != (Excess{}) {
		t.Errorf("of nothing %+v", e)
	}
}
