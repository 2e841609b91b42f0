package boosting

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/boost"
)

// Reference: slides, 59 with its erratum: Dᵢ = C′(yᵢfᵢ)/ΣC′(yⱼfⱼ) with the
// exponential cost are AdaBoost's weights, round by round, and line search finds
// its α.
func TestAdaBoostWeightsAreAnyBoostsWithTheExponentialCost(t *testing.T) {
	for _, k := range tasks() {
		quantised, err := boost.Quantise(k.x, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []*boost.Data{mustData(t, k.x), quantised} {
			a, err := boost.NewAdaBoost(d, k.y, boost.AdaBoostConfig{Weights: k.weights})
			if err != nil {
				t.Fatal(err)
			}
			b, err := NewAnyBoost(d, k.y, AnyBoostConfig{Weights: k.weights})
			if err != nil {
				t.Fatal(err)
			}
			da, db := make([]float64, len(k.x)), make([]float64, len(k.x))
			for round := 0; ; round++ {
				a.WeightsTo(da)
				b.WeightsTo(db)
				for i := range da {
					if !near(da[i], db[i], 1e-12) {
						t.Fatalf("%s, round %d: example %d weighs %v in AdaBoost, %v in AnyBoost", k.name, round, i, da[i], db[i])
					}
				}
				more := a.Round()
				if b.Round() != more {
					t.Fatalf("%s, round %d: AdaBoost %v, AnyBoost %v", k.name, round, a.Stopped(), b.Stopped())
				}
				if !more || a.Stopped() == boost.Separated || a.Rounds()[round].Bound < 1e-8 {
					break
				}
				ra, rb := a.Rounds()[round], b.log[round]
				if ra.Stump != rb.Stump || !near(ra.Alpha, rb.Alpha, 1e-10) || !near(ra.Bound, rb.Cost, 1e-10) {
					t.Fatalf("%s, round %d: AdaBoost %+v, AnyBoost %+v", k.name, round, ra, rb)
				}
			}
		}
	}
}

// Reference: slides, 37–41: both mean costs are least at half the log-odds, agree
// to second order but for a constant, and the logistic lies below the exponential.
func TestCostsEstimateHalfTheLogOdds(t *testing.T) {
	for _, c := range []Cost{ExpCost, LogitCost} {
		for _, p := range []float64{0.03, 0.5, 0.9} {
			f := math.Log(p/(1-p)) / 2
			if g := p*c.Slope(f) - (1-p)*c.Slope(-f); !near(g, 0, 1e-14) {
				t.Errorf("%v: slope %v at half the log-odds of %v", c, g, p)
			}
		}
	}
	for z := -3.0; z <= 3; z += 0.01 {
		if LogitCost.Value(z) > ExpCost.Value(z) {
			t.Errorf("logistic cost %v above the exponential %v at %v", LogitCost.Value(z), ExpCost.Value(z), z)
		}
		if z > -0.01 && z < 0.01 && !near(LogitCost.Value(z)-math.Ln2, ExpCost.Value(z)-1, 1e-15+math.Abs(z*z*z)) {
			t.Errorf("costs differ beyond second order at %v", z)
		}
	}
	for _, c := range []Cost{ExpCost, LogitCost, TanhCost} {
		most := 0.0
		for z := -4.0; z <= 4; z += 1e-3 {
			const h = 1e-5
			if want := -(c.Value(z+h) - c.Value(z-h)) / (2 * h); math.Abs(c.Slope(z)-want) > 1e-8*max(1, want) {
				t.Errorf("%v: slope %v at %v, by differences %v", c, c.Slope(z), z, want)
			}
			most = max(most, math.Abs(c.Slope(z+h)-c.Slope(z-h))/(2*h))
		}
		if c != ExpCost && (most > c.Curvature()*(1+1e-6) || most < c.Curvature()*(1-1e-5)) {
			t.Errorf("%v: max|C″| %v, by differences %v", c, c.Curvature(), most)
		}
		for _, z := range []float64{800, -800} {
			if v, s := c.Value(z), c.Slope(z); math.IsNaN(v) || math.IsNaN(s) || v < 0 || s < 0 {
				t.Errorf("%v at %v: %v, slope %v", c, z, v, s)
			}
		}
	}
}

// Reference: slides, 60: with α = −⟨∇C, h⟩/L‖h‖² every step lowers the cost by at
// least ⟨∇C, h⟩²/2L, so the directions of descent become flat.
func TestTheoremStepConverges(t *testing.T) {
	for _, k := range tasks() {
		for _, c := range []Cost{LogitCost, TanhCost} {
			b, err := NewAnyBoost(mustData(t, k.x), k.y, AnyBoostConfig{Weights: k.weights, Cost: c, Step: TheoremStep, Rounds: 400})
			mustTrain(t, b, err)
			cost := c.Value(0)
			for i, r := range b.log {
				if want := r.Descent / c.Curvature(); !near(r.Alpha, want, 1e-14) {
					t.Errorf("%s, %v: α %v, want %v", k.name, c, r.Alpha, want)
				}
				if gain := cost - r.Cost; gain < r.Descent*r.Descent/(2*c.Curvature())-1e-12 {
					t.Errorf("%s, %v, round %d: the cost falls by %v, want at least %v", k.name, c, i, gain, r.Descent*r.Descent/(2*c.Curvature()))
				}
				cost = r.Cost
			}
			if last := b.log[len(b.log)-1]; last.Descent > b.log[0].Descent/3 {
				t.Errorf("%s, %v: −⟨∇C, h⟩ was %v and is %v after %d rounds", k.name, c, b.log[0].Descent, last.Descent, len(b.log))
			}
		}
	}
}

// The line search's α is a root of the derivative below the first power of two
// where that is positive, and a minimum.
func TestLineStepIsTheRoot(t *testing.T) {
	for _, k := range tasks() {
		for _, c := range []Cost{ExpCost, LogitCost, TanhCost} {
			b, err := NewAnyBoost(mustData(t, k.x), k.y, AnyBoostConfig{Weights: k.weights, Cost: c})
			if err != nil {
				t.Fatal(err)
			}
			f := make([]float64, len(k.x))
			for b.Round() {
				r := b.log[len(b.log)-1]
				mean := func(α float64) float64 {
					sum := 0.0
					for i, x := range k.x {
						sum += b.weights[i] * c.Value(k.y[i]*(f[i]+α*r.Stump.Value(x)))
					}
					return sum / b.total
				}
				slope := func(α float64) float64 {
					sum := 0.0
					for i, x := range k.x {
						m := k.y[i] * r.Stump.Value(x)
						sum -= b.weights[i] * c.Slope(k.y[i]*f[i]+α*m) * m
					}
					return sum / b.total
				}
				if b.Stopped() == boost.NoMinimum {
					for u := 1.0; u <= 64; u *= 2 {
						if slope(u) > 0 {
							t.Errorf("%s, %v: no minimum, but the derivative at %v is %v", k.name, c, u, slope(u))
						}
					}
					if r.Alpha != 64 {
						t.Errorf("%s, %v: no minimum, α %v", k.name, c, r.Alpha)
					}
					break
				}
				first := 1.0
				for slope(first) <= 0 {
					first *= 2
				}
				if math.Abs(slope(r.Alpha)) > 1e-12 || r.Alpha > first || !near(r.Cost, mean(r.Alpha), 1e-12) {
					t.Errorf("%s, %v: derivative %v at α = %v, bracket %v", k.name, c, slope(r.Alpha), r.Alpha, first)
				}
				b.FTo(f)
			}
			if e := b.Ensemble(); !near(e.F(k.x[0]), b.f[0], 1e-12) {
				t.Errorf("%s: f of row 0 is %v, of the ensemble %v", k.name, b.f[0], e.F(k.x[0]))
			}
		}
	}
}

// The cost tanh along a line from f ≠ 0 may rise, and rise again after falling:
// bisection finds a root with the cost lower than at 0.
func TestTanhLineStepIsARoot(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	found := 0
	for range 50 {
		x := drawRows(r, 30, 2, 0)
		y := drawLabels(r, x)
		b, err := NewAnyBoost(mustData(t, x), y, AnyBoostConfig{Cost: TanhCost})
		if err != nil {
			t.Fatal(err)
		}
		slope := 0.0
		for i := range b.f {
			b.f[i] = r.NormFloat64()
			b.margin[i] = math.Copysign(1, r.NormFloat64())
			slope += TanhCost.Slope(b.f[i]*y[i]) * b.margin[i]
		}
		if slope <= 0 {
			continue
		}
		α, ok := b.lineStep()
		if !ok {
			continue
		}
		found++
		if g, _ := b.along(α); math.Abs(g) > 1e-13 || !(α > 0 && α < 64) {
			t.Errorf("derivative %v at α = %v", g, α)
		}
	}
	if found < 5 {
		t.Errorf("a root in %d of 50 trials", found)
	}
}
