package bblr

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"

	"hamlet/algos/internal/sla"
)

// gonumLogistic is L2-regularised logistic regression by gonum's L-BFGS.
func gonumLogistic(t testing.TB, x [][]float64, y []float64, λ, tolerance float64) []float64 {
	t.Helper()
	res, err := optimize.Minimize(optimize.Problem{
		Func: func(w []float64) float64 {
			sum := λ / 2 * floats.Dot(w, w)
			for i, row := range x {
				z := y[i] * floats.Dot(w, row)
				sum += math.Log1p(math.Exp(-math.Abs(z))) - min(z, 0)
			}
			return sum
		},
		Grad: func(grad, w []float64) {
			copy(grad, w)
			floats.Scale(λ, grad)
			for i, row := range x {
				floats.AddScaled(grad, -y[i]/(1+math.Exp(y[i]*floats.Dot(w, row))), row)
			}
		},
	}, make([]float64, len(x[0])), &optimize.Settings{GradientThreshold: tolerance}, &optimize.LBFGS{})
	if err != nil {
		t.Fatal(err)
	}
	return res.X
}

// noisySample draws rows of normals and the labels of a linear truth, some flipped.
func noisySample(seed uint64, n, d int, flipped float64) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(seed, 2))
	w := make([]float64, d)
	for j := range w {
		w[j] = r.NormFloat64()
	}
	for range n {
		row := make([]float64, d)
		for j := range row {
			row[j] = r.NormFloat64()
		}
		label := math.Copysign(1, floats.Dot(w, row)+0.5*math.Sqrt(float64(d))*r.NormFloat64())
		if r.Float64() < flipped {
			label = -label
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y
}

// Logistic regression by the package's descent is that of gonum's L-BFGS.
func TestLogisticRegressionIsGonums(t *testing.T) {
	for seed := range uint64(10) {
		x, y := noisySample(seed, 80, 5, 0.1)
		got, err := logisticRegression(t.Context(), sla.NewProblem(x, y, nil), 1e-2)
		if err != nil {
			t.Fatal(err)
		}
		want := gonumLogistic(t, x, y, 1e-2, 1e-7)
		for j := range want {
			if math.Abs(got[j]-want[j]) > 1e-6 {
				t.Errorf("seed %d: weight %d is %v, gonum has %v", seed, j, got[j], want[j])
			}
		}
	}
}

// The same on the raw UCI sets with a bias, whose columns differ much in scale: the
// remaining gradient is rounding.
func TestLogisticRegressionOfRawRows(t *testing.T) {
	for _, s := range uci {
		x, y := load(t, s.name)
		p := sla.NewProblem(withBias(x), y, nil)
		w, err := logisticRegression(t.Context(), p, defaultLambda)
		if err != nil {
			t.Fatal(err)
		}
		grad := make([]float64, p.D)
		sla.NewObjective(p, curveOf(Likelihood{Theta: 0.5, Gamma: 1}), defaultLambda).Gradient(grad, w)
		if got := sla.Norm(grad) / p.Total; !(got <= 1e-11) {
			t.Errorf("%s: the mean gradient is %v long", s.name, got)
		}
	}
}

// A lasso ends where the optimality conditions of Σ loss + Σ l1·|a| hold: a
// gradient of −l1·sign(a) where a is not 0, and within ±l1 where it is.
func TestLassoIsOptimal(t *testing.T) {
	x, y := noisySample(4, 120, 12, 0.1)
	o := sla.NewObjective(sla.NewProblem(x, y, nil), curveOf(Counts(0, 0, 1)), 0)
	l := newLasso(12)
	for j := range l.l1 {
		l.l1[j] = 8
	}
	a := make([]float64, 12)
	if _, err := l.minimise(t.Context(), o, a, sla.Rates{Max: 1e-2, Min: 1e-14, Shrink: 0.5, Tolerance: 1e-7, Most: 1000}); err != nil {
		t.Fatal(err)
	}
	grad := make([]float64, 12)
	o.Gradient(grad, a)
	zeros := 0
	for j, g := range grad {
		switch {
		case a[j] == 0:
			zeros++
			if math.Abs(g) > 8 {
				t.Errorf("coefficient %d is 0 with a gradient of %v", j, g)
			}
		case math.Abs(g+math.Copysign(8, a[j])) > 1e-6:
			t.Errorf("coefficient %d is %v with a gradient of %v", j, a[j], g)
		}
	}
	if zeros == 0 || zeros == 12 {
		t.Errorf("%d of 12 coefficients are 0", zeros)
	}
}

// The sparse fit's descent, a few columns at a time, ends at a lasso's optimum in
// all columns.
func TestSelectionLosesNothing(t *testing.T) {
	x, y := noisySample(5, 90, 3, 0.1)
	p, err := gramProblem(t.Context(), x, y, nil, 3)
	if err != nil {
		t.Fatal(err)
	}
	s := newSparsifier(p, curveOf(Counts(45, 45, 90)), Schedule{}.withDefaults())
	a := make([]float64, p.N)
	if err := s.descend(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	grad := make([]float64, p.N)
	s.Objective.Gradient(grad, a)
	for j, g := range grad {
		grad[j] = pseudoGradient(g, a[j], 1.0/firstScale)
	}
	if got := sla.Norm(grad); got > 1e-4*90 {
		t.Errorf("the pseudo-gradient over all columns is %v long", got)
	}
}

// plainImprove is algorithm 2's stage 2 as it is written.
func plainImprove(o *sla.Objective, w []float64, value, radius, spacing, εL float64) bool {
	for j, was := range w {
		for k := 1; k <= sla.StepsWithin(radius, spacing); k++ {
			for _, step := range []float64{float64(k) * spacing, -float64(k) * spacing} {
				w[j] = was + step
				if value-o.Value(w) >= εL {
					return true
				}
			}
		}
		w[j] = was
	}
	return false
}

// A prober finds the same point as probing every point in full, for every loss,
// weight and penalty.
func FuzzProbes(f *testing.F) {
	f.Add(uint64(1), uint8(20), uint8(3), 2.0, 0.5, 0.3, 1e-3, uint8(0))
	f.Add(uint64(2), uint8(60), uint8(2), 200.0, 0.02, 0.5, 0.1, uint8(1))
	f.Add(uint64(3), uint8(1), uint8(1), 1.0, 0.0, 0.5, 0.0, uint8(2))
	f.Add(uint64(4), uint8(40), uint8(4), 20.0, 0.9, 1.0, 0.0, uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, n, d uint8, γ, mix, θ, λ float64, kind uint8) {
		if !(γ > 1e-3 && γ < 1e4 && mix >= 0 && mix <= 1 && θ >= 0 && θ <= 1 && λ >= 0 && λ < 100) {
			t.Skip("no loss has such constants")
		}
		x, y := noisySample(seed, 1+int(n)%80, 1+int(d)%6, 0.2)
		r := rand.New(rand.NewPCG(seed, 4))
		var weight []float64
		if kind&1 != 0 {
			for range x {
				weight = append(weight, math.Floor(4*r.Float64())/2)
			}
		}
		c := curveOf(Likelihood{Mix: mix, Theta: θ, Gamma: γ})
		if kind&2 != 0 {
			c = sla.SigmoidCurve(γ)
		}
		o := sla.NewObjective(sla.NewProblem(x, y, weight), c, λ)
		if kind&4 != 0 {
			o.Prior = &GaussLaplace{GaussShare: 0.2, GaussSD: 2, LaplaceShare: 0.8, LaplaceScale: 0.3}
		}
		w := make([]float64, o.D)
		for j := range w {
			w[j] = math.Round(8*r.NormFloat64()) / 4
		}
		p := sla.NewProber(o, 1e-3)
		for range 5 { // from point to point, as a descent that stands still would
			value := o.Value(w)
			if !finite(value) {
				t.Skip("the loss overflows, and a descent ends with an error there")
			}
			want := slices.Clone(w)
			wantOK := plainImprove(o, want, value, 4, 0.2, 1e-3)
			ok, err := p.Improve(context.Background(), w, value, 4, 0.2, 1e-3)
			if err != nil {
				t.Fatal(err)
			}
			if ok != wantOK || !slices.Equal(w, want) {
				// The two sum margins in different ways, so that a gain of ε_L to rounding
				// may count for one alone.
				if gain := value - o.Value(w); math.Abs(gain-1e-3) < 1e-9 || math.Abs(value-o.Value(want)-1e-3) < 1e-9 {
					return
				}
				t.Fatalf("γ = %v, mix %v, θ %v, λ %v: %v %v, in full %v %v", γ, mix, θ, λ, ok, w, wantOK, want)
			}
			if !ok {
				return
			}
		}
	})
}

// Quick descents over SLA's levels end a hundredth above those to the end, now and then
// at another minimum, after 11 of 20 of the gradients.
func TestQuickDescents(t *testing.T) {
	quick, full, above := 0, 0, 0.0
	for seed := range uint64(10) {
		x, y := noisySample(seed, 200, 10, 0.1)
		o := sla.NewObjective(sla.NewProblem(x, y, nil), curveOf(Counts(100, 100, 200)), 1)
		s := Schedule{}.withDefaults()
		var ends [2]float64
		for k, r := range []sla.Rates{s.rates(o.Total), s.quick(o.Total, 1e-2)} {
			c := &counted{Smooth: o}
			w := make([]float64, o.D)
			for l := range s.levels {
				o.Gamma = l.Gamma
				var err error
				if ends[k], err = sla.NewDescent(o.D).Minimise(t.Context(), c, w, r); err != nil {
					t.Fatal(err)
				}
			}
			if k == 0 {
				full += c.asked
			} else {
				quick += c.asked
			}
		}
		above += ends[1]/ends[0] - 1
	}
	t.Logf("%d gradients, to the end %d; values above by %.2f %%", quick, full, 10*above)
	if 5*quick > 3*full || above/10 > 0.01 {
		t.Errorf("%d gradients, to the end %d; values above by %.2f %%", quick, full, 10*above)
	}
}

// A counted function counts its gradients.
type counted struct {
	sla.Smooth
	asked int
}

func (c *counted) Gradient(grad, w []float64) float64 {
	c.asked++
	return c.Smooth.Gradient(grad, w)
}

// Reference: algorithm 2, steps 13 and 14. An improving probe restarts the descent
// from where it is, so the end is a point that neither a descent nor a probe
// improves by ε_L.
func TestSearchEndsWhereNothingImproves(t *testing.T) {
	x, y := noisySample(6, 150, 4, 0.2)
	schedule := Schedule{}.withDefaults()
	s := sla.NewSearch(sla.NewProblem(x, y, nil), curveOf(Counts(75, 75, 150)), 1e-3, schedule.LossTolerance, schedule.rates(150))
	w := make([]float64, 4)
	value, err := s.SearchRange(t.Context(), w, sla.Level{Gamma: 2, Radius: 8, Spacing: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	if plainImprove(s.Objective, slices.Clone(w), value, 8, 0.2, schedule.LossTolerance) {
		t.Error("a probe improves on the end")
	}
	again, err := s.Descent.Minimise(t.Context(), s.Objective, slices.Clone(w), schedule.rates(150))
	if err != nil || value-again > schedule.LossTolerance {
		t.Errorf("a descent improves %v to %v (error %v)", value, again, err)
	}
}

// A fit stops in every phase when its context does, and returns its error.
func TestCancelled(t *testing.T) {
	x, y := noisySample(1, 60, 3, 0.1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, v := range []Variant{BBLR1, BBLR2, BBLR3, BBLR4, Sigmoid} {
		if _, _, err := Fit(ctx, Config{Variant: v}, x, y, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v", v, err)
		}
	}
	for _, sparse := range []bool{false, true} {
		if _, _, err := FitKernel(ctx, KernelConfig{Sparse: sparse}, x, y, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("kernel, sparse %v: %v", sparse, err)
		}
	}
	if _, err := Gram(ctx, x, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the kernel's matrix: %v", err)
	}
	for calls := 1; ; calls *= 3 {
		late := &after{Context: t.Context(), left: calls}
		_, _, err := Fit(late, Config{Variant: BBLR4}, x, y, nil)
		if err == nil {
			return // the fit asked fewer times
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled at the %dth question: %v", calls, err)
		}
	}
}

// A stuck function never improves: its gradient promises what its value denies.
type stuck struct{ asked int }

func (s *stuck) Gradient(grad, _ []float64) float64 {
	s.asked++
	grad[0] = 1
	return 0
}

// The search for a learning rate ends by itself, also where the rates underflow or
// stand still above 0, and when its context does.
func TestSearchesEnd(t *testing.T) {
	for _, r := range []sla.Rates{
		{Max: 1, Min: 0.1, Shrink: 0.1, Most: 5},
		{Max: 1e300, Min: 1e-300, Shrink: 0.1, Most: 5}, // the ratio of the ends is 0
		{Max: 1, Min: math.SmallestNonzeroFloat64, Shrink: 0.99, Most: 5},
		{Max: 1, Min: 0x1p-24, Shrink: 0.25, Most: 5, Gain: 1e-2},
	} {
		for name, minimise := range map[string]func(context.Context, sla.Smooth) error{
			"descent": func(ctx context.Context, f sla.Smooth) error {
				_, err := sla.NewDescent(1).Minimise(ctx, f, []float64{0}, r)
				return err
			},
			"lasso": func(ctx context.Context, f sla.Smooth) error {
				_, err := newLasso(1).minimise(ctx, f, []float64{0}, r)
				return err
			},
		} {
			f := &stuck{}
			if err := minimise(t.Context(), f); err != nil || f.asked > sla.MaxRates+1 {
				t.Errorf("%s, %+v: %d values, %v", name, r, f.asked, err)
			}
			f = &stuck{}
			if err := minimise(&after{Context: t.Context(), left: 2}, f); !errors.Is(err, context.Canceled) || f.asked != 2 {
				t.Errorf("%s, %+v, cancelled: %d values, %v", name, r, f.asked, err)
			}
		}
	}
}

// after is a context that is cancelled once it has been asked some times.
type after struct {
	context.Context
	left int
}

func (a *after) Err() error {
	if a.left--; a.left < 0 {
		return context.Canceled
	}
	return nil
}
