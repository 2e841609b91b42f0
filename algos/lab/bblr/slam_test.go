package bblr

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/internal/sla"
	"hamlet/algos/internal/triangle"
)

// A trial that reuses another's levels gives the same bits as one that runs them
// all.
func TestTrialsShareTheirWays(t *testing.T) {
	x, y := noisySample(2, 120, 6, 0.1)
	p := sla.NewProblem(x, y, nil)
	train, held := split(p, 5)
	fresh := func() *trials {
		l := Counts(60, 60, 120)
		return &trials{
			Objective: sla.NewObjective(train, rough(l), 1), descent: sla.NewDescent(train.D),
			likelihood: l, held: held, start: make([]float64, train.D),
		}
	}
	shared, levels := fresh(), 0
	for _, c := range []struct {
		λ float64
		s Schedule
	}{
		{1e-3, Schedule{}}, {1, Schedule{}}, {1, Schedule{GammaMax: 20}}, {1, Schedule{GammaGrowth: 5}},
		{1, Schedule{GammaGrowth: 5, GammaMax: 500}}, {1, Schedule{GammaMin: 4}}, {1e-3, Schedule{GammaMax: 400}},
	} {
		s := c.s.withDefaults()
		got, err := shared.try(t.Context(), c.λ, s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := fresh().try(t.Context(), c.λ, s)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("λ = %v, %+v: %+v, alone %+v", c.λ, s, got, want)
		}
		for range s.levels {
			levels++
		}
	}
	if len(shared.ways) != 11 || levels != 20 {
		t.Errorf("%d of %d levels were descended, want 11 of 20", len(shared.ways), levels)
	}
}

// Reference: equations 25, 26, 31 to 35 and 39. The gradient that BBLR4 descends by,
// against differences of the loss.
func TestJointGradientIsTheDerivative(t *testing.T) {
	for seed := range uint64(100) {
		x, y, w, l, λ := randomCase(seed)
		r := rand.New(rand.NewPCG(seed, 12))
		weight := make([]float64, len(x))
		for i := range weight {
			weight[i] = r.Float64()
		}
		p := sla.NewProblem(x, y, weight)
		j := fullObjective{sla.NewObjective(p, curveOf(l), λ)}
		v := append(slices.Clone(w), j.at(l)...)
		d := len(w)
		grad, scratch := make([]float64, d+3), make([]float64, d+3)
		value := j.Gradient(grad, v)
		if want := sla.NewObjective(p, curveOf(l), λ).Value(w); !near(value, want) {
			t.Fatalf("seed %d: the value is %v, want %v", seed, value, want)
		}
		for k, was := range v {
			want := derivative(func(t float64) float64 {
				v[k] = was + t
				defer func() { v[k] = was }()
				return j.Gradient(scratch, v)
			}, 2e-3/max(l.Gamma, 1))
			// Differences of a loss near 30 are good to some 10⁻¹².
			if !near(grad[k], want) && math.Abs(grad[k]-want) > 1e-10 {
				t.Errorf("seed %d: %+v: entry %d of %d is %v, by differences %v", seed, l, k, d+3, grad[k], want)
			}
		}
		margins := make([]float64, 3)
		j.Gradient(scratch, v)
		if got := j.Gradient(margins, v[d:]); !near(got, value-float64(λ/2*triangle.Dot(w, w))) || !slices.Equal(margins, grad[d:]) {
			t.Errorf("seed %d: at fixed margins %v with gradient %v, want %v", seed, got, margins, grad[d:])
		}
	}
}

// Learning never ends above where it starts: neither w₀ nor what SLA left is better
// under the likelihood that was learnt.
func TestLearningLowersTheObjective(t *testing.T) {
	for seed := range uint64(20) {
		x, y := noisySample(seed, 80, 4, 0.15)
		f := &fitter{Config: Config{Variant: BBLR4}.withDefaults(), problem: sla.NewProblem(x, y, nil)}
		w0, err := f.start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := slices.Clone(w0)
		s := f.newSLA(curveOf(Counts(40, 40, 80)))
		if _, err := anneal(t.Context(), s, f.Schedule, w); err != nil {
			t.Fatal(err)
		}
		l, end := ratesOf(f.problem, w, f.Schedule.last()), slices.Clone(w)
		start := sla.NewObjective(f.problem, curveOf(l), f.Lambda).Value(w)
		if l, s, err = f.learn(t.Context(), l.Gamma, w0, end); err != nil {
			t.Fatal(err)
		}
		o := sla.NewObjective(f.problem, curveOf(l), f.Lambda)
		if got := s.Value(end); got != o.Value(end) || !(got <= start && got <= o.Value(w0)) {
			t.Errorf("seed %d: %v, from %v; w₀ has %v under %+v", seed, got, start, o.Value(w0), l)
		}
	}
}
