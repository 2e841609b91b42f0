package promise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// exactly returns the distribution of the number of errors of independent verdicts.
func exactly(ps []float64) []float64 {
	all := []float64{1}
	for _, p := range ps {
		next := make([]float64, len(all)+1)
		for k, q := range all {
			next[k] += q * (1 - p)
			next[k+1] += q * p
		}
		all = next
	}
	return all
}

// Without doubt the interval holds 90 % of the Poisson binomial distribution, and each side is within one
// of its quantile.
func TestIntervalOfIndependentVerdicts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var e Expected
		ps := make([]float64, 1+r.IntN(300))
		scale := math.Exp(-6 * r.Float64())
		for i := range ps {
			ps[i] = scale * r.Float64()
			e.Add(ps[i], ps[i], ps[i], false)
		}
		low, high := e.Missed.Interval()
		sum, wantLow, wantHigh := 0.0, -1, -1
		for k, q := range exactly(ps) {
			sum += q
			if wantLow < 0 && sum >= 0.05 {
				wantLow = k
			}
			if wantHigh < 0 && sum >= 0.95 {
				wantHigh = k
			}
		}
		if low < wantLow-1 || low > wantLow+1 || high < wantHigh-1 || high > wantHigh+1 {
			t.Fatalf("%d verdicts, mean %.3f: %d to %d, want %d to %d", len(ps), e.Missed.Mean, low, high, wantLow, wantHigh)
		}
	}
}

// With a doubt that all verdicts share, the interval holds the number of errors in 90 % of the cases. Three
// standard deviations of 2,000 runs are 2 %.
func TestIntervalWithDoubt(t *testing.T) {
	for _, sd := range []float64{0.1, 0.3, 0.6} {
		r := rand.New(rand.NewPCG(3, 4))
		inside := 0
		const runs = 2000
		for range runs {
			shift := sd * r.NormFloat64()
			var e Expected
			errors := 0
			for range 400 {
				z := -5 + 1.5*r.NormFloat64()
				σ := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
				e.Add(σ(z), σ(z-z90*sd), σ(z+z90*sd), false)
				if r.Float64() < σ(z+shift) {
					errors++
				}
			}
			if low, high := e.Missed.Interval(); low <= errors && errors <= high {
				inside++
			}
		}
		t.Logf("sd %g: %d of %d inside", sd, inside, runs)
		if inside < runs*88/100 {
			t.Errorf("sd %g: %d of %d inside", sd, inside, runs)
		}
	}
}

func TestExpectedByHand(t *testing.T) {
	var e Expected
	if low, high := e.Lost.Interval(); low != 0 || high != 0 {
		t.Errorf("without a verdict %d to %d", low, high)
	}
	e.Add(0.75, 0.5, 1, true)
	e.Add(0.25, 0.25, 0.25, false)
	e.Add(1, 1, 1, true)
	d := 0.5 / (2 * z90)
	if want := (Count{2, 0.25, 0.1875, d}); e.Lost != want {
		t.Errorf("lost %+v, want %+v", e.Lost, want)
	}
	if want := (Count{1, 0.25, 0.1875, 0}); e.Missed != want {
		t.Errorf("missed %+v, want %+v", e.Missed, want)
	}
	if sum := e.Lost.Plus(e.Missed); sum != (Count{3, 0.5, 0.375, d}) {
		t.Errorf("sum %+v", sum)
	}
	var certain Expected
	for range 5 {
		certain.Add(1, 1, 1, false)
	}
	if low, high := certain.Missed.Interval(); low != 5 || high != 5 {
		t.Errorf("five certain errors: %d to %d", low, high)
	}
	defer func() {
		if recover() == nil {
			t.Error("p outside of its interval is accepted")
		}
	}()
	e.Add(0.5, 0.6, 0.7, true)
}

// A mean whose square is 0 is no error, whatever the doubt.
func TestIntervalOfAlmostNothing(t *testing.T) {
	for _, p := range []float64{1e-170, 1e-110, 1e-90} {
		var e Expected
		e.Add(p, 0, 1e-60, false)
		if low, high := e.Missed.Interval(); low != 0 || high != 0 {
			t.Errorf("p %g: %d to %d", p, low, high)
		}
	}
}

func ExampleExpected() {
	var week Expected
	for range 300 {
		week.Add(0.99, 0.97, 0.997, true) // called spam
	}
	low, high := week.Lost.Interval()
	fmt.Printf("about %.0f ham went to Junk, %d to %d\n", week.Lost.Mean, low, high)
	// Output: about 3 ham went to Junk, 0 to 9
}
