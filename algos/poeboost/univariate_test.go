package poeboost

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/boost"
)

// objective is Σ D ln σ(y(wu+b)) − λ/2·(w² + b²).
func objective(u, y, d []float64, w, b float64) float64 {
	f := -penalty / 2 * (w*w + b*b)
	for i, v := range u {
		z := y[i] * (w*v + b)
		f += d[i] * (math.Min(z, 0) - math.Log1p(math.Exp(-math.Abs(z))))
	}
	return f
}

// problem draws a column, labels and weights: overlap is the noise of the labels.
func problem(r *rand.Rand, n int, overlap float64) (u, y, d []float64) {
	u, y, d = make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range u {
		u[i] = r.NormFloat64()
		if r.IntN(20) == 0 {
			u[i] *= 30
		}
		y[i] = math.Copysign(1, u[i]-0.3+overlap*r.NormFloat64())
		d[i] = r.ExpFloat64()
	}
	normalise(d)
	return u, y, d
}

func largestOf(u []float64) float64 {
	m := 0.0
	for _, v := range u {
		m = max(m, math.Abs(v))
	}
	return m
}

// Newton ends where the gradient is 0, from any start: also where the feature
// separates the classes, where all labels are the same, and from far outside.
func TestNewtonFindsTheMaximum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, c := range []struct {
		name    string
		n       int
		overlap float64
		label   float64
	}{
		{"overlapping", 200, 1, 0}, {"nearly separable", 200, 0.05, 0}, {"separable", 200, 0, 0},
		{"one class", 50, 0, 1}, {"one row", 1, 0, 0}, {"two rows", 2, 0, 0}, {"pure noise", 300, 1e6, 0},
	} {
		u, y, d := problem(r, c.n, c.overlap)
		if c.label != 0 {
			for i := range y {
				y[i] = c.label
			}
		}
		var first Univariate
		for k, start := range [][2]float64{{0, 0}, {1, -1}, {-8, 3}, {50, 40}, {-1000, 0}} {
			h := Univariate{Weight: start[0], Bias: start[1]}
			h.FitNewton(u, y, d, largestOf(u))
			g := slopesAt(u, y, d, h.Weight, h.Bias)
			if math.Abs(g.w) > 1e-12 || math.Abs(g.b) > 1e-12 {
				t.Errorf("%s from %v: gradient (%.2g, %.2g) at w = %v, b = %v", c.name, start, g.w, g.b, h.Weight, h.Bias)
			}
			if k == 0 {
				first = h
			} else if math.Abs(h.Weight-first.Weight) > 1e-7*(1+math.Abs(first.Weight)) || math.Abs(h.Bias-first.Bias) > 1e-7*(1+math.Abs(first.Bias)) {
				t.Errorf("%s from %v: (%v, %v), from 0 (%v, %v)", c.name, start, h.Weight, h.Bias, first.Weight, first.Bias)
			}
		}
		best := objective(u, y, d, first.Weight, first.Bias)
		for range 200 {
			w, b := first.Weight+0.3*r.NormFloat64(), first.Bias+0.3*r.NormFloat64()
			if f := objective(u, y, d, w, b); f > best+1e-14 {
				t.Errorf("%s: %v at (%v, %v), above the maximum %v at (%v, %v)", c.name, f, w, b, best, first.Weight, first.Bias)
			}
		}
	}
}

// The slopes are the derivatives of the objective, by differences.
func TestSlopes(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	u, y, d := problem(r, 60, 0.5)
	for _, at := range [][2]float64{{0, 0}, {0.7, -0.2}, {-2, 1}} {
		w, b := at[0], at[1]
		s := slopesAt(u, y, d, w, b)
		const h = 1e-5
		f := func(w, b float64) float64 { return objective(u, y, d, w, b) }
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"∂w", s.w, (f(w+h, b) - f(w-h, b)) / (2 * h)},
			{"∂b", s.b, (f(w, b+h) - f(w, b-h)) / (2 * h)},
			{"−∂w²", s.ww, -(f(w+10*h, b) - 2*f(w, b) + f(w-10*h, b)) / (100 * h * h)},
			{"−∂b²", s.bb, -(f(w, b+10*h) - 2*f(w, b) + f(w, b-10*h)) / (100 * h * h)},
			{"−∂w∂b", s.wb, -(f(w+10*h, b+10*h) - f(w+10*h, b-10*h) - f(w-10*h, b+10*h) + f(w-10*h, b-10*h)) / (400 * h * h)},
		} {
			if math.Abs(c.got-c.want) > 1e-5*(1+math.Abs(c.want)) {
				t.Errorf("%s at %v = %v, by differences %v", c.name, at, c.got, c.want)
			}
		}
	}
}

// One step from 0 goes along the gradient of Σ D ln p, whose length is the rate.
func TestStepIsOneGradientStep(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	u, y, d := problem(r, 60, 0.5)
	s := slopesAt(u, y, d, 0, 0)
	for _, rate := range []float64{1, 0.25, 8} {
		var h Univariate
		h.FitStep(u, y, d, rate)
		if math.Abs(h.Weight-rate*s.w) > 1e-14 || math.Abs(h.Bias-rate*s.b) > 1e-14 {
			t.Errorf("rate %v: step to (%v, %v), gradient (%v, %v)", rate, h.Weight, h.Bias, s.w, s.b)
		}
	}
}

// The confidence error from the log-odds is (32) of the probabilities.
func TestConfidenceErrorFromLogOdds(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	u, y, d := problem(r, 60, 0.5)
	for _, h := range []Univariate{{Weight: 1, Bias: 0.2}, {Weight: -0.5}, {Weight: 30, Bias: -2}, {}, {Bias: 1e-9}} {
		wrong, all := 0.0, 0.0
		for i, v := range u {
			c := d[i] * (1 - 2/(1+math.Exp(-y[i]*(h.Weight*v+h.Bias))))
			wrong, all = wrong+max(c, 0), all+math.Abs(c)
		}
		want := 0.5
		if all > 0 {
			want = wrong / all
		}
		if got := h.confidenceError(u, y, d); math.Abs(got-want) > 1e-7 {
			t.Errorf("w = %v, b = %v: ε_c = %v, by (32) %v", h.Weight, h.Bias, got, want)
		}
	}
}

// Moments of ordinary columns by the plain sums, and of columns that the plain
// sums cannot take.
func TestMoments(t *testing.T) {
	const huge, tiny = math.MaxFloat64, 5e-324
	for _, c := range []struct {
		column   []float64
		mean, sd float64
	}{
		{[]float64{1, 2, 3, 4}, 2.5, math.Sqrt(1.25)},
		{[]float64{0.1, 0.1, 0.1}, 0.1, 0},
		{[]float64{7}, 7, 0},
		{[]float64{huge, -huge}, 0, huge},
		{[]float64{huge, huge}, huge, 0},
		{[]float64{tiny, 3 * tiny}, 2 * tiny, tiny},
		{[]float64{0, 0, 0, 4}, 1, math.Sqrt(3)},
	} {
		mean, sd := moments(c.column)
		if math.Abs(mean-c.mean) > 1e-15*math.Abs(c.mean) || math.Abs(sd-c.sd) > 1e-15*c.sd {
			t.Errorf("%v: mean %v, sd %v; want %v, %v", c.column, mean, sd, c.mean, c.sd)
		}
	}
	d, err := boost.NewData([][]float64{{huge}, {-huge}, {-huge}, {-huge}})
	if err != nil {
		t.Fatal(err)
	}
	_, u := Standardise(d, false)
	if math.Abs(u[0]-math.Sqrt(3)) > 1e-14 || math.Abs(u[1]+1/math.Sqrt(3)) > 1e-14 {
		t.Errorf("standardised to %v, want √3 and −1/√3", u)
	}
}

// No value of a feature makes an answer NaN.
func TestLogOddsIsNeverNaN(t *testing.T) {
	for _, h := range []Univariate{{SD: 1, Weight: 2}, {SD: 0, Mean: 3, Weight: 2, Bias: 1}, {SD: 5e-324, Weight: 1}, {SD: 1}, {SD: 1e308, Mean: -1e308, Weight: -1e6, Bias: 7}} {
		for _, v := range []float64{0, 1e308, -1e308, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
			z := h.LogOdds([]float64{v})
			o := Opinion{Univariate: h, ErrorRate: 1e-6}
			if f := o.LogOdds([]float64{v}); math.IsNaN(z) || !(math.Abs(f) <= 14) {
				t.Errorf("%+v at %v: log-odds %v, of the expert %v", h, v, z, f)
			}
		}
	}
}

// BenchmarkNewton fits 57 features of 3,451 rows as a round does.
func BenchmarkNewton(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 3))
	u, y, d := problem(r, 3451, 0.5)
	largest := largestOf(u)
	for _, start := range []struct {
		name string
		h    Univariate
	}{{"from 0", Univariate{}}, {"from the maximum", func() (h Univariate) { h.FitNewton(u, y, d, largest); return h }()}} {
		b.Run(start.name, func(b *testing.B) {
			for b.Loop() {
				h := start.h
				h.FitNewton(u, y, d, largest)
			}
		})
	}
}

// Reference: eqs. 17, 18, 21 and 22: an expert with P_e = e^−α/(e^−α + e^α) has the
// log-odds 2αh(x), and expertLogOdds of a certain hypothesis is that.
func TestExpertLogOdds(t *testing.T) {
	for _, pE := range []float64{1e-6, 0.01, 0.3, 0.5} {
		for _, z := range []float64{0, 1e-17, 1e-9, 0.3, 5, 40, 800, math.Inf(1)} {
			s := 1 / (1 + math.Exp(-z))
			want := math.Log(((1-pE)*s + pE*(1-s)) / ((1-pE)*(1-s) + pE*s))
			got, mirrored := expertLogOdds(z, pE), expertLogOdds(-z, pE)
			if math.Abs(got-want) > 1e-10 || got != -mirrored {
				t.Errorf("P_e = %v, z = %v: log-odds %v and %v, want ±%v", pE, z, got, mirrored, want)
			}
		}
		if got, want := expertLogOdds(math.Inf(1), pE), math.Log((1-pE)/pE); math.Abs(got-want) > 1e-12 {
			t.Errorf("P_e = %v: log-odds %v of a certainty, want 2α = %v", pE, got, want)
		}
	}
}
