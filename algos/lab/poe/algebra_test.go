package poe

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"hamlet/algos/poeboost"
)

const near = 1e-12

// A case of the algebra: weights that sum to 1 and what a hypothesis gives the
// true labels, with certainties and coins among them.
func drawCase(t *rapid.T) (d, pCorrect []float64) {
	n := rapid.IntRange(1, 9).Draw(t, "n")
	probability := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.5, 1, 1e-12, 1 - 1e-12}))
	d = rapid.SliceOfN(rapid.Float64Range(0.01, 1), n, n).Draw(t, "d")
	normalised(d)
	return d, rapid.SliceOfN(probability, n, n).Draw(t, "p")
}

// Reference: eqs. 5, 6 and appendix A: if (6) is at most 2, the likelihood does
// not fall when the expert joins, whatever the ensemble was.
func TestConstraintGuardsTheLikelihood(t *testing.T) {
	tight := 0
	rapid.Check(t, func(t *rapid.T) {
		_, prev := drawCase(t)
		for i := range prev {
			prev[i] = 1e-3 + 0.998*prev[i]
		}
		d, expert := make([]float64, len(prev)), make([]float64, len(prev))
		if !WeightsTo(d, prev) {
			t.Fatal("no weights")
		}
		for i := range expert {
			expert[i] = rapid.Float64Range(0.05, 0.95).Draw(t, "expert")
		}
		gain := 0.0
		for i, p := range expert {
			after := p * prev[i] / (p*prev[i] + (1-p)*(1-prev[i])) // (2)
			gain += math.Log(after) - math.Log(prev[i])
		}
		if c := poeboost.Constraint(d, expert); c <= 2 {
			tight++
			if gain < -near {
				t.Errorf("(6) is %v, and the log likelihood fell by %v", c, -gain)
			}
		}
	})
	if tight == 0 {
		t.Error("no expert met the constraint, so this tests nothing")
	}
}

// Reference: eqs. 15 and 16: for certain hypotheses (6) is (1−ε)/(1−P_e) + ε/P_e,
// exactly 2 at P_e = ε and at ½, below between them and above outside.
func TestErrorRateBetweenEpsilonAndHalf(t *testing.T) {
	for _, ε := range []float64{1e-6, 0.01, 0.2, 0.4999} {
		d, p := []float64{ε, 1 - ε}, []float64{0, 1}
		at := func(pE float64) float64 {
			expert := make([]float64, 2)
			poeboost.ExpertTo(expert, p, pE)
			return poeboost.Constraint(d, expert)
		}
		for _, pE := range []float64{ε, 0.5} {
			if c := at(pE); math.Abs(c-2) > near {
				t.Errorf("ε = %v: (6) is %v at P_e = %v, want 2", ε, c, pE)
			}
		}
		for k := 1.0; k < 10; k++ {
			if c := at(ε + (0.5-ε)*k/10); !(c < 2) {
				t.Errorf("ε = %v: (6) is %v between ε and ½, want less than 2", ε, c)
			}
			if c := at(ε * k / 10); !(c > 2) {
				t.Errorf("ε = %v: (6) is %v below ε, want more than 2", ε, c)
			}
			if c := at(0.5 + 0.5*k/10); !(c > 2) {
				t.Errorf("ε = %v: (6) is %v above ½, want more than 2", ε, c)
			}
		}
	}
}

// Reference: ERRATA, eq. 16: √ε/(√ε+√(1−ε)) makes (6) least, 1 + 2√(ε(1−ε)), and
// halves α.
func TestMinimisingErrorIsTheMinimum(t *testing.T) {
	for _, ε := range []float64{1e-10, 1e-4, 0.1, 0.3, 0.49} {
		six := func(pE float64) float64 { return (1-ε)/(1-pE) + ε/pE }
		pE := poeboost.MinimisingError(ε)
		if got, want := six(pE), 1+2*math.Sqrt(ε*(1-ε)); math.Abs(got-want) > near {
			t.Errorf("ε = %v: (6) is %v at the minimiser, want %v", ε, got, want)
		}
		for _, factor := range []float64{0.5, 0.9, 0.999, 1.001, 1.1, 1.5} {
			if other := pE * factor; other < 1 && !(six(other) > six(pE)) {
				t.Errorf("ε = %v: (6) is %v at %v and %v at the minimiser %v", ε, six(other), other, six(pE), pE)
			}
		}
		α := func(p float64) float64 { return 0.5 * math.Log((1-p)/p) }
		if got, want := α(pE), α(ε)/2; math.Abs(got-want) > 1e-9*want {
			t.Errorf("ε = %v: α = %v, want half of %v", ε, got, 2*want)
		}
	}
}

// Reference: eqs. 30, 37 and appendix B: the chords lie above 1/P, and touch it
// where the hypothesis is certain or a coin.
func TestBoundIsAboveTheConstraint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, p := drawCase(t)
		pE := rapid.Float64Range(1e-6, 0.5).Draw(t, "pE")
		expert := make([]float64, len(p))
		poeboost.ExpertTo(expert, p, pE)
		if c, b := poeboost.Constraint(d, expert), Bound(d, p, pE); !(c <= b+near*b) {
			t.Errorf("d = %v, p = %v, P_e = %v: (6) is %v, above the bound %v", d, p, pE, c, b)
		}
		for i := range p {
			p[i] = math.Round(2*p[i]) / 2
		}
		poeboost.ExpertTo(expert, p, pE)
		if c, b := poeboost.Constraint(d, expert), Bound(d, p, pE); math.Abs(c-b) > near*b {
			t.Errorf("d = %v, p = %v, P_e = %v: (6) is %v, the bound %v, want them equal", d, p, pE, c, b)
		}
	})
}

// Reference: eqs. 31 and 32: the bound is 2 at P_e = ε_c and at ½ and at most 2
// exactly between them; and ε_c as printed is ε_c as summed here.
func TestConfidenceErrorSolvesTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, p := drawCase(t)
		εc := ConfidenceError(d, p)
		top, bottom := 0.0, 1.0
		for i := range p {
			if p[i] <= 0.5 {
				top += d[i] * (2*p[i] - 1)
				bottom += 2 * d[i] * (p[i] - 1)
			} else {
				bottom -= 2 * d[i] * p[i]
			}
		}
		if math.Abs(bottom) > 1e-6 && math.Abs(εc-top/bottom) > 1e-9 {
			t.Errorf("d = %v, p = %v: ε_c = %v, as printed %v", d, p, εc, top/bottom)
		}
		if b := Bound(d, p, 0.5); math.Abs(b-2) > near {
			t.Errorf("the bound is %v at P_e = ½, want 2", b)
		}
		if εc < 1e-4 || εc > 1-1e-4 {
			return
		}
		if b := Bound(d, p, εc); math.Abs(b-2) > 1e-9 {
			t.Errorf("d = %v, p = %v: the bound is %v at P_e = ε_c = %v, want 2", d, p, b, εc)
		}
		for _, s := range []float64{0.25, 0.5, 0.75} {
			inside := εc + s*(0.5-εc) // below ½ or above, as ε_c is
			if b := Bound(d, p, inside); b > 2+near {
				t.Errorf("d = %v, p = %v: the bound is %v at %v between ε_c = %v and ½", d, p, b, inside, εc)
			}
		}
		if εc < 0.5 {
			if b := Bound(d, p, εc/2); b < 2-near {
				t.Errorf("d = %v, p = %v: the bound is %v below ε_c = %v", d, p, b, εc)
			}
		}
	})
}

// Reference: section 5.1: for a hypothesis of certainties ε_c is ε; ERRATA, eq. 32:
// for one that knows nothing it is 0/0, and ½.
func TestConfidenceErrorOfCertainties(t *testing.T) {
	d := []float64{0.1, 0.2, 0.3, 0.4}
	if got := ConfidenceError(d, []float64{1, 0, 1, 0}); math.Abs(got-0.6) > near {
		t.Errorf("ε_c = %v, want the weighted error 0.6", got)
	}
	if got := ConfidenceError(d, []float64{0.5, 0.5, 0.5, 0.5}); got != 0.5 {
		t.Errorf("ε_c = %v of a coin, want ½", got)
	}
}

// Reference: eqs. 7–9: the recursion with Qᵢ leads from (7) to (7), and the closed
// form σ(−yF) is the same, over many experts.
func TestWeightsInClosedForm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 40
	y, f := make([]float64, n), make([]float64, n)
	prev, d, expert, fresh := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range y {
		y[i] = float64(2*r.IntN(2) - 1)
		prev[i] = 0.5
	}
	if !WeightsTo(d, prev) {
		t.Fatal("no weights")
	}
	for round := range 25 {
		for i := range expert {
			expert[i] = 0.1 + 0.8*r.Float64()
			f[i] += y[i] * math.Log(expert[i]/(1-expert[i]))
		}
		if !NextWeightsTo(d, d, expert, prev) {
			t.Fatal("no weights")
		}
		for i, p := range expert {
			prev[i] = p * prev[i] / (p*prev[i] + (1-p)*(1-prev[i]))
		}
		WeightsTo(fresh, prev)
		closed := make([]float64, n)
		poeboost.ClosedWeightsTo(closed, y, f, nil, false)
		for i := range d {
			if math.Abs(d[i]-fresh[i]) > near || math.Abs(d[i]-closed[i]) > near {
				t.Fatalf("round %d, example %d: D by recursion %v, by (7) %v, closed %v", round, i, d[i], fresh[i], closed[i])
			}
		}
	}
}

// Margins of ±800 and of thousands, where every σ underflows, leave weights.
func TestWeightsFarOut(t *testing.T) {
	y := []float64{1, -1, 1, 1}
	for _, c := range []struct {
		f, want []float64
	}{
		{[]float64{800, -800, 800, 800}, []float64{0.25, 0.25, 0.25, 0.25}},
		{[]float64{2763, -2763, 2763 + math.Ln2, 9999}, []float64{0.4, 0.4, 0.2, 0}},
		{[]float64{-800, 800, 800, 800}, []float64{0.5, 0.5, 0, 0}},
		{[]float64{0, 0, 0, 800}, []float64{1. / 3, 1. / 3, 1. / 3, 0}},
	} {
		d := make([]float64, 4)
		if !poeboost.ClosedWeightsTo(d, y, c.f, nil, false) {
			t.Fatalf("F = %v: no weights", c.f)
		}
		for i := range d {
			if math.Abs(d[i]-c.want[i]) > 1e-12 {
				t.Errorf("F = %v: D = %v, want %v", c.f, d, c.want)
				break
			}
		}
	}
	d := make([]float64, 4)
	if poeboost.ClosedWeightsTo(d, y, make([]float64, 4), make([]float64, 4), false) {
		t.Error("weights of examples that weigh nothing")
	}
	if !poeboost.ClosedWeightsTo(d, y, []float64{-1e9, 0, 0, 3}, []float64{0, 1, 0, 1}, false) || d[0] != 0 || d[2] != 0 || d[1] < 0.9 {
		t.Errorf("D = %v: examples of weight 0 must not count, not even their margins", d)
	}
}

// An ensemble that is certain leaves nothing to weigh, and says so.
func TestNoWeightsLeft(t *testing.T) {
	d := make([]float64, 2)
	if WeightsTo(d, []float64{1, 1}) {
		t.Error("WeightsTo finds weights where nothing can be wrong")
	}
	if NextWeightsTo(d, []float64{0, 0}, []float64{0.5, 0.5}, []float64{1, 1}) {
		t.Error("NextWeightsTo finds weights where there were none")
	}
	if !NextWeightsTo(d, []float64{1, 0}, []float64{0.3, 0}, []float64{0.4, 1}) || d[0] != 1 || d[1] != 0 {
		t.Errorf("D = %v, want 1, 0: an example without weight stays without", d)
	}
}
