package poeboost_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/boost"
	"hamlet/algos/lab/poe"
	"hamlet/algos/poeboost"
)

func newData(tb testing.TB, x [][]float64) *boost.Data {
	tb.Helper()
	d, err := boost.NewData(x)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func newDiscrete(tb testing.TB, x [][]float64, y []float64, cfg poeboost.DiscreteConfig) *poeboost.Discrete {
	tb.Helper()
	b, err := poeboost.NewDiscrete(newData(tb, x), y, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func newContinuous(tb testing.TB, x [][]float64, y []float64, cfg poeboost.ContinuousConfig) *poeboost.Continuous {
	tb.Helper()
	b, err := poeboost.NewContinuous(newData(tb, x), y, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// noise draws rows of which the first features decide, with flipped labels.
func noise(seed uint64, n, dim int, flips float64) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(seed, 11))
	for range n {
		row := make([]float64, dim)
		for j := range row {
			row[j] = math.Round(100*r.NormFloat64()) / 100
		}
		label := math.Copysign(1, row[0]+0.7*row[1%dim]-0.4*row[2%dim]+0.1)
		if r.Float64() < flips {
			label = -label
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y
}

// guarded checks a run against (5) and (6), step by step.
func guarded(t *testing.T, what string, constraints []float64, states []poeboost.State) {
	t.Helper()
	last := -math.Ln2 // without experts
	for j, c := range constraints {
		if !(c <= 2+1e-12) {
			t.Errorf("%s, round %d: (6) is %v, want at most 2", what, j, c)
		}
		if l := states[j].MeanLogLikelihood; !(l >= last-1e-12) {
			t.Errorf("%s, round %d: the mean log likelihood fell from %v to %v", what, j, last, l)
		}
		last = states[j].MeanLogLikelihood
	}
}

// Reference: eqs. 5 and 6, section 3.1: on the six public sets of table 1 the
// training likelihood never falls and (6) never exceeds 2, for both P_e of
// POEBoost.DS and both learners of POEBoost.CS.
func TestTrainingLikelihoodNeverFalls(t *testing.T) {
	for _, s := range sets {
		x, y := s.table.Read(t)
		d := newData(t, x)
		for name, rate := range map[string]poeboost.ErrorRate{"P_e = ε": poeboost.Greedy, "P_e minimising": poeboost.Minimising} {
			b, err := poeboost.NewDiscrete(d, y, poeboost.DiscreteConfig{Rounds: 200, ErrorRate: rate})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			var constraints []float64
			var states []poeboost.State
			for _, r := range b.Rounds() {
				constraints, states = append(constraints, r.Constraint), append(states, r.State)
			}
			guarded(t, s.name+", "+name, constraints, states)
			t.Logf("%-14s DS %-15s %3d rounds (%v), mean log likelihood %.4f", s.name, name, len(states), b.Stopped(), states[len(states)-1].MeanLogLikelihood)
		}
		for name, learner := range map[string]poeboost.Learner{"newton": poeboost.Newton, "step": poeboost.Step} {
			b, err := poeboost.NewContinuous(d, y, poeboost.ContinuousConfig{Rounds: 40, Learner: learner})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			var constraints []float64
			var states []poeboost.State
			for _, r := range b.Rounds() {
				constraints, states = append(constraints, r.Constraint), append(states, r.State)
			}
			guarded(t, s.name+", "+name, constraints, states)
			t.Logf("%-14s CS %-15s %3d rounds (%v), mean log likelihood %.4f", s.name, name, len(states), b.Stopped(), states[len(states)-1].MeanLogLikelihood)
		}
	}
}

// Reference: eqs. 16–18 and ERRATA: with P_e = ε, (6) is exactly 2 in every round;
// with the minimising P_e it is 1 + 2√(ε(1−ε)).
func TestGreedySitsOnTheEdge(t *testing.T) {
	x, y := noise(1, 400, 6, 0.15)
	greedy := newDiscrete(t, x, y, poeboost.DiscreteConfig{Rounds: 100, ErrorRate: poeboost.Greedy})
	if err := greedy.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	for j, r := range greedy.Rounds() {
		if r.Constraint != 2 {
			t.Errorf("round %d: (6) is %v with P_e = ε = %v, want 2", j, r.Constraint, r.Epsilon)
		}
		if want := 0.5 * math.Log((1-r.Epsilon)/r.Epsilon); math.Abs(r.Alpha-want) > 1e-14*want || r.ErrorRate != r.Epsilon {
			t.Errorf("round %d: α = %v, P_e = %v at ε = %v, want α = %v", j, r.Alpha, r.ErrorRate, r.Epsilon, want)
		}
	}
	minimising := newDiscrete(t, x, y, poeboost.DiscreteConfig{Rounds: 100})
	if err := minimising.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	for j, r := range minimising.Rounds() {
		if want := 1 + 2*math.Sqrt(r.Epsilon*(1-r.Epsilon)); math.Abs(r.Constraint-want) > 1e-14 {
			t.Errorf("round %d: (6) is %v, want %v", j, r.Constraint, want)
		}
	}
	if a, b := greedy.Rounds()[0], minimising.Rounds()[0]; a.Stump != b.Stump || math.Abs(a.Alpha-2*b.Alpha) > 1e-15 {
		t.Errorf("first rounds %+v and %+v: want the same stump and half the α", a, b)
	}
}

// Reference: eq. 6 from its definition: the sum over the examples with the experts'
// probabilities (22) is the constraint that a round reports.
func TestConstraintIsTheSum(t *testing.T) {
	x, y := noise(2, 150, 4, 0.2)
	for _, rate := range []poeboost.ErrorRate{poeboost.Greedy, poeboost.Minimising} {
		b := newDiscrete(t, x, y, poeboost.DiscreteConfig{Rounds: 30, ErrorRate: rate})
		d, expert := make([]float64, len(x)), make([]float64, len(x))
		for b.WeightsTo(d); b.Round(); b.WeightsTo(d) {
			rounds := b.Rounds()
			r := rounds[len(rounds)-1]
			for i, row := range x {
				expert[i] = r.ErrorRate
				if r.Stump.Value(row) == y[i] {
					expert[i] = 1 - r.ErrorRate
				}
			}
			if want := poeboost.Constraint(d, expert); math.Abs(r.Constraint-want) > 1e-12 {
				t.Errorf("round %d: (6) is %v, by the sum %v", len(rounds)-1, r.Constraint, want)
			}
		}
	}
}

// Reference: section 4 and ERRATA, algorithms 2 and 3: as printed, without Qᵢ,
// POEBoost.DS is AdaBoost: the same stumps, α and weights in every round.
func TestWithoutQItIsAdaBoost(t *testing.T) {
	check := func(name string, x [][]float64, y []float64) {
		d := newData(t, x)
		ada, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: 60})
		if err != nil {
			t.Fatal(err)
		}
		poe, err := poeboost.NewDiscrete(d, y, poeboost.DiscreteConfig{Rounds: 60, ErrorRate: poeboost.Greedy, Printed: true})
		if err != nil {
			t.Fatal(err)
		}
		a, p := make([]float64, len(x)), make([]float64, len(x))
		for j := 0; ; j++ {
			more := ada.Round()
			if more != poe.Round() {
				t.Fatalf("%s: after %d rounds AdaBoost stopped with %v, POEBoost.DS with %v", name, j, ada.Stopped(), poe.Stopped())
			}
			if !more {
				break
			}
			r, q := ada.Rounds()[j], poe.Rounds()[j]
			if r.Stump != q.Stump || math.Abs(r.Alpha-q.Alpha) > 1e-9 {
				t.Fatalf("%s, round %d: AdaBoost %v α %v, POEBoost.DS %v α %v", name, j, r.Stump, r.Alpha, q.Stump, q.Alpha)
			}
			if ada.Stopped() == boost.Separated {
				break // what is left of the weights is rounding
			}
			ada.WeightsTo(a)
			poe.WeightsTo(p)
			for i := range a {
				if math.Abs(a[i]-p[i]) > 1e-9*(a[i]+1e-6) {
					t.Fatalf("%s, round %d, example %d: AdaBoost's weight %v, POEBoost.DS's %v", name, j, i, a[i], p[i])
				}
			}
		}
	}
	x, y := noise(3, 300, 5, 0.1)
	check("noise", x, y)
	for _, s := range sets[:2] {
		x, y := s.table.Read(t)
		check(s.name, x, y)
	}
	// With Qᵢ it is not: the second round's weights differ.
	b := newDiscrete(t, x, y, poeboost.DiscreteConfig{Rounds: 5, ErrorRate: poeboost.Greedy})
	q := newDiscrete(t, x, y, poeboost.DiscreteConfig{Rounds: 5, ErrorRate: poeboost.Greedy, Printed: true})
	with, without := make([]float64, len(x)), make([]float64, len(x))
	for range 2 {
		b.Round()
		q.Round()
	}
	b.WeightsTo(with)
	q.WeightsTo(without)
	most := 0.0
	for i := range with {
		most = max(most, math.Abs(with[i]-without[i])/with[i])
	}
	if most < 0.05 {
		t.Errorf("with and without Qᵢ the weights differ by %v at most, so the test above shows nothing", most)
	}
}

// Reference: eqs. 1, 2, 24 and 25: Prob is the normalised product of the experts'
// probabilities, and its sign decides; for both boosters.
func TestProbIsTheProduct(t *testing.T) {
	x, y := noise(4, 200, 4, 0.1)
	ds := newDiscrete(t, x, y, poeboost.DiscreteConfig{Rounds: 15})
	cs := newContinuous(t, x, y, poeboost.ContinuousConfig{Rounds: 15})
	for _, b := range []interface{ Round() bool }{ds, cs} {
		for b.Round() {
		}
	}
	e, f := ds.Ensemble(), cs.Ensemble()
	train := make([]float64, len(x))
	for i, row := range x {
		plus, minus := 1.0, 1.0
		for _, v := range e.Votes() {
			p := math.Exp(v.Alpha*v.Stump.Value(row)) / (math.Exp(v.Alpha) + math.Exp(-v.Alpha)) // (22)
			plus, minus = plus*p, minus*(1-p)
		}
		if got, want := e.Prob(row), plus/(plus+minus); math.Abs(got-want) > 1e-12 {
			t.Fatalf("DS, row %d: P = %v, by the product %v", i, got, want)
		}
		plus, minus = 1, 1
		for _, o := range f.Opinions() {
			s := 1 / (1 + math.Exp(-(o.Weight*(row[o.Feature]-o.Mean)/o.SD + o.Bias)))
			p := (1-o.ErrorRate)*s + o.ErrorRate*(1-s) // (13)
			plus, minus = plus*p, minus*(1-p)
		}
		if got, want := f.Prob(row), plus/(plus+minus); math.Abs(got-want) > 1e-9 {
			t.Fatalf("CS, row %d: P = %v, by the product %v", i, got, want)
		}
	}
	ds.LogOddsTo(train)
	for i, row := range x {
		if got := e.LogOdds(row); got != train[i] {
			t.Errorf("DS, row %d: log-odds %v, in training %v", i, got, train[i])
		}
	}
	cs.LogOddsTo(train)
	for i, row := range x {
		if got := f.LogOdds(row); got != train[i] {
			t.Errorf("CS, row %d: log-odds %v, in training %v", i, got, train[i])
		}
	}
}

// Reference: section 5.1 and algorithm 3: each round's stump has the least ε of
// all, and its hypothesis the least ε_c, by trying each in turn.
func TestRoundsTakeTheLeastError(t *testing.T) {
	x, y := noise(5, 60, 3, 0.2)
	ds := newDiscrete(t, x, y, poeboost.DiscreteConfig{Rounds: 10})
	d := make([]float64, len(x))
	data := newData(t, x)
	for ds.WeightsTo(d); ds.Round(); ds.WeightsTo(d) {
		rounds := ds.Rounds()
		least := 1.0
		for j := range 3 {
			for _, cut := range data.Cuts(j) {
				wrong := 0.0
				for i, row := range x {
					if (row[j] > cut) != (y[i] > 0) {
						wrong += d[i]
					}
				}
				least = min(least, wrong, 1-wrong)
			}
		}
		if got := rounds[len(rounds)-1].Epsilon; math.Abs(got-least) > 1e-11 {
			t.Errorf("round %d: ε = %v, the least is %v", len(rounds)-1, got, least)
		}
	}
	for _, learner := range []poeboost.Learner{poeboost.Newton, poeboost.Step} {
		cs := newContinuous(t, x, y, poeboost.ContinuousConfig{Rounds: 10, Learner: learner})
		for cs.WeightsTo(d); cs.Round(); cs.WeightsTo(d) {
			rounds := cs.Rounds()
			r := rounds[len(rounds)-1]
			p := make([]float64, len(x))
			for i, row := range x {
				p[i] = 1 / (1 + math.Exp(-y[i]*r.Hypothesis.LogOdds(row)))
			}
			if got, want := r.ConfidenceError, poe.ConfidenceError(d, p); math.Abs(got-want) > 1e-9 {
				t.Errorf("round %d: ε_c = %v, by (32) %v", len(rounds)-1, got, want)
			}
			if r.ErrorRate != max(r.ConfidenceError, 1e-6) {
				t.Errorf("round %d: P_e = %v at ε_c = %v", len(rounds)-1, r.ErrorRate, r.ConfidenceError)
			}
			poeboost.ExpertTo(p, p, r.ErrorRate)
			if got, want := r.Constraint, poeboost.Constraint(d, p); math.Abs(got-want) > 1e-9 {
				t.Errorf("round %d: (6) is %v, by the sum %v", len(rounds)-1, got, want)
			}
		}
	}
}
