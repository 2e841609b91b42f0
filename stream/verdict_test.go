package stream

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A margin is at least 0 exactly if the decision is spam, also once a threshold has been
// added to it. It is finite, and to rounding it is what its formula says.
func checkMargin(t *testing.T, p, logOdds, lo, spamAt float64) {
	t.Helper()
	d := Decide(p, lo, spamAt, min(0.5, spamAt))
	margin := Margin(logOdds, lo, spamAt, d)
	if (margin >= 0) != (d == DecideSpam) || !(math.Abs(margin) <= maxMargin) {
		t.Errorf("p %v, log-odds %v, lo %v, spam at %v: %s with the margin %v", p, logOdds, lo, spamAt, d, margin)
	}
	for _, threshold := range []float64{5, 15, 1000} {
		if (threshold+margin >= threshold) != (d == DecideSpam) {
			t.Errorf("p %v, lo %v, spam at %v: %s with the score %v of %v", p, lo, spamAt, d, threshold+margin, threshold)
		}
	}
	if math.Abs(logOdds) > 10 || spamAt > 0.9999 {
		return // p and 1−p are rounded too much for the formula
	}
	want := min(logOdds-math.Log(spamAt/(1-spamAt)), math.Log(lo/(1-lo)))
	if want = min(max(want, -maxMargin), maxMargin); math.Abs(margin-want) > 1e-9*(1+math.Abs(want)) {
		t.Errorf("log-odds %v, lo %v, spam at %v: margin %v, want %v", logOdds, lo, spamAt, margin, want)
	}
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

func TestMargin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		z := 10 * r.NormFloat64()
		p, spamAt := sigmoid(z), 1-r.Float64()
		checkMargin(t, p, z, p*r.Float64(), spamAt)
		checkMargin(t, p, z, p, spamAt)
		checkMargin(t, p, z, 0.9, p) // on the border, but for the rounding of p
		checkMargin(t, math.Nextafter(p, 0), z, 0.9, p)
		checkMargin(t, p, z, 0.9, math.Nextafter(p, 0))
		checkMargin(t, p, z, 0.5+(r.Float64()-0.5)*1e-15, 0.3)
	}
	borders := []float64{0, math.SmallestNonzeroFloat64, 1e-300, math.Nextafter(0.5, 0), 0.5, math.Nextafter(0.5, 1), 0.9, math.Nextafter(1, 0), 1}
	for _, p := range borders {
		for _, lo := range borders {
			for _, spamAt := range borders[1:] {
				for _, logOdds := range []float64{math.Log(p) - math.Log1p(-p), sigmoid(p), -800, 800} {
					d := Decide(p, lo, spamAt, min(0.5, spamAt))
					if margin := Margin(logOdds, lo, spamAt, d); (margin >= 0) != (d == DecideSpam) || !(math.Abs(margin) <= maxMargin) {
						t.Errorf("p %v, log-odds %v, lo %v, spam at %v: %s with the margin %v", p, logOdds, lo, spamAt, d, margin)
					}
				}
			}
		}
	}
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, d := range []Decision{DecideSpam, DecideUnsure} {
			if margin := Margin(odd, odd, odd, d); (margin >= 0) != (d == DecideSpam) || !(math.Abs(margin) <= maxMargin) {
				t.Errorf("of %v and %s: %v", odd, d, margin)
			}
		}
	}
	if got, want := Margin(math.Log(99), 0.75, 0.9, DecideSpam), math.Log(3); math.Abs(got-want) > 1e-12 {
		t.Errorf("the margin of p = .99 and lo = ¾ is %v, want ln 3 = %v", got, want)
	}
}

// A margin by the log-odds alone agrees with its decision at every threshold.
func TestMarginTo(t *testing.T) {
	for _, logOdds := range []float64{-800, -1, 0, math.Nextafter(2, 0), 2, math.Nextafter(2, 3), 800} {
		for _, threshold := range []float64{0, 2, 35} {
			d := DecideUnsure
			if logOdds >= threshold {
				d = DecideSpam
			}
			margin := MarginTo(logOdds, threshold, d)
			if want := min(max(logOdds-threshold, -maxMargin), maxMargin); (margin >= 0) != (d == DecideSpam) || math.Abs(margin-want) > 1e-10 {
				t.Errorf("log-odds %v, threshold %v: %s with the margin %v, want %v", logOdds, threshold, d, margin, want)
			}
		}
	}
}
