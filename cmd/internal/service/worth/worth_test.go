package worth

import (
	"math"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/model"
)

func σ(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// The worth of an answer is made of the mean and the variance of its log-odds, and is 0 where
// the interval says nothing.
func TestWorth(t *testing.T) {
	for _, c := range []struct{ m, s float64 }{{0, 1}, {2, .5}, {-3, 2}, {1, .1}} {
		p, lo, hi := σ(c.m), σ(c.m-model.Z90*c.s), σ(c.m+model.Z90*c.s)
		want := blr.Information(c.m, c.s*c.s) * p * (1 - p)
		if got := Of(p, lo, hi); math.Abs(got-want) > 1e-9*want {
			t.Errorf("m %v, s %v: %v, want %v", c.m, c.s, got, want)
		}
	}
	if a, b, c := Of(.5, .1, .9), Of(.5, .4, .6), Of(.99, .9, .999); !(a > b && a > c) {
		t.Errorf("%v, %v and %v: the first is the most doubtful", a, b, c)
	}
	for _, e := range [][3]float64{{.5, .5, .5}, {.5, .6, .9}, {math.NaN(), .1, .9}, {.5, -1, 2}, {0, 0, 0}, {1, 1, 1}, {1, 0, 1}} {
		if got := Of(e[0], e[1], e[2]); !(got >= 0 && got < 1e-6) {
			t.Errorf("%v: %v", e, got)
		}
	}
}
