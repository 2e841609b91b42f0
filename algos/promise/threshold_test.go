package promise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/confseq"
)

// The slow way: every edge, from a list of the ham.
func slowThreshold(all []observed, budget float64) float64 {
	most, floor := 1.0, math.Inf(-1)
	for _, o := range all {
		most = max(most, o.weight)
		if o.weight > 1 {
			floor = max(floor, o.logOdds)
		}
	}
	below := confseq.NewBelow(budget, most)
	for c := range cells {
		ones, zeros := 0.0, 0.0
		for _, o := range all {
			if o.logOdds >= edge(c) {
				ones += o.weight
			} else {
				zeros += o.weight
			}
		}
		if edge(c) > floor && below.Log(ones, zeros) >= math.Log(10) {
			return edge(c)
		}
	}
	return math.Inf(1)
}

func TestThresholdEqualsTheSlowWay(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	promised := 0
	for i := range 40 {
		all := draw(r, 50+r.IntN(1500), i%2 == 0)
		budget := 0.002 * math.Exp(3*r.Float64())
		got, want := tableOf(all).Threshold(budget), slowThreshold(all, budget)
		if got.LogOdds != want {
			t.Fatalf("%d ham, budget %g: %v, the slow way %v", len(all), budget, got.LogOdds, want)
		}
		if !math.IsInf(want, 1) {
			promised++
		}
	}
	if promised < 10 {
		t.Errorf("%d of 40 were promised", promised)
	}
}

// A larger budget never has a higher threshold, nor waits longer.
func TestMonotoneInBudget(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 100 {
		table := tableOf(draw(r, r.IntN(6000), i%2 == 0))
		last := Bound{LogOdds: math.Inf(1), Missing: math.Inf(1)}
		for budget := 0.0001; budget < 0.5; budget *= 1.1 {
			b := table.Threshold(budget)
			if b.LogOdds > last.LogOdds || b.Missing > last.Missing {
				t.Fatalf("budget %g: %+v, a smaller one %+v", budget, b, last)
			}
			last = b
		}
	}
}

// One more ham below the threshold never raises it, one above never lowers it.
func TestMonotoneInHam(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		table := tableOf(draw(r, 500+r.IntN(3000), true))
		before := table.Threshold(0.01).LogOdds
		lower, higher := *table, *table
		lower.Observe(-8, 1)
		higher.Observe(20, 1)
		if lower.Threshold(0.01).LogOdds > before || higher.Threshold(0.01).LogOdds < before {
			t.Fatalf("%v, then %v and %v", before, lower.Threshold(0.01), higher.Threshold(0.01))
		}
	}
}

// Missing is what is missing, to one ham. A tenant of 200 ham is told "not yet".
func TestNotYet(t *testing.T) {
	for _, budget := range []float64{0.001, 0.002, 0.005, 0.01} {
		table := new(Table)
		for range 200 {
			table.Observe(-5, 1)
		}
		b := table.Threshold(budget)
		if b.Promised() || !math.IsInf(b.LogOdds, 1) || b.Missing < 2.3/budget-200 || b.Missing > 3.1/budget-200 {
			t.Errorf("budget %g: %+v", budget, b)
		}
		for range int(math.Ceil(b.Missing)) - 1 {
			table.Observe(-5, 1)
		}
		if now := table.Threshold(budget); now.Promised() || now.Missing != 1 {
			t.Errorf("budget %g, one too few: %+v", budget, now)
		}
		table.Observe(-5, 1)
		if now := table.Threshold(budget); !now.Promised() || now.LogOdds <= -5 || now.Lost != 0 {
			t.Errorf("budget %g: %+v", budget, now)
		}
	}
	empty := new(Table).Threshold(0.01)
	if empty.Promised() || empty.Missing < 230 || empty.Ham != 0 {
		t.Errorf("empty: %+v", empty)
	}
}

// Ham of the highest log-odds keeps every threshold away, until there is enough other ham.
func TestHamBeyondTheCells(t *testing.T) {
	table := new(Table)
	table.Observe(math.Inf(1), 1)
	for range 310 {
		table.Observe(-5, 1)
	}
	b := table.Threshold(0.01)
	if b.Promised() || !b.Broken || b.Missing < 200 {
		t.Fatalf("%+v", b)
	}
	for range int(math.Ceil(b.Missing)) {
		table.Observe(-5, 1)
	}
	if now := table.Threshold(0.01); !now.Promised() || now.Broken || now.Lost != 1 {
		t.Errorf("%+v", now)
	}
	if b := table.Threshold(0.001); b.Promised() || b.Broken {
		t.Errorf("a budget for which all of it is too little ham: %+v", b)
	}
}

// Thresholds stay above ham that was asked for more rarely than least.
func TestFloor(t *testing.T) {
	table := new(Table)
	for range 100 {
		table.Observe(-5, 10)
	}
	if b := table.Threshold(0.01); !b.Promised() || b.LogOdds <= -5 || b.Ham != 1000 {
		t.Errorf("%+v", b)
	}
	table.Observe(3, 2)
	if b := table.Threshold(0.9); !b.Promised() || b.LogOdds <= 3 {
		t.Errorf("%+v", b)
	}
	table.Observe(30, 2)
	if b := table.Threshold(0.9); b.Promised() || !b.Broken || !math.IsInf(b.Missing, 1) {
		t.Errorf("%+v", b)
	}
}

// The promise: over ham of one kind, thresholds for all moments and edges lose more than the budget in at
// most a tenth of the streams; 3.1 standard deviations more happen once in a thousand times. Labels are asked
// for as policies do.
func TestValidity(t *testing.T) {
	const runs, steps, budget = 400, 1500, 0.03
	rate := func(often bool, yes, no float64) float64 {
		if often {
			return yes
		}
		return no
	}
	policies := map[string]func(z float64) (probability, least float64){
		"all labels":            func(float64) (float64, float64) { return 1, 1 },
		"one in five":           func(float64) (float64, float64) { return 0.2, 0.2 },
		"junk more often":       func(z float64) (float64, float64) { return rate(z > 0, 1, 0.05), 1 },
		"the unsure more often": func(z float64) (float64, float64) { return rate(math.Abs(z) < 1, 1, 0.3), 0.3 },
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken, promised := 0, 0
			for run := range runs {
				r := rand.New(rand.NewPCG(uint64(run), 13))
				table, ever, bad := new(Table), false, false
				for i := range steps {
					z := 2 * r.NormFloat64()
					if p, least := policy(z); r.Float64() < p {
						table.Observe(z, least/p)
					}
					if i%20 > 0 {
						continue
					}
					if b := table.Threshold(budget); b.Promised() {
						ever = true
						bad = bad || math.Erfc(b.LogOdds/2/math.Sqrt2)/2 > budget
					}
				}
				if ever {
					promised++
				}
				if bad {
					broken++
				}
			}
			t.Logf("%d of %d promised, %d broken", promised, runs, broken)
			if most := 0.1*runs + 3.1*math.Sqrt(0.1*0.9*runs); float64(broken) > most || promised < runs*9/10 {
				t.Errorf("%d of %d promised, %d broken, want at most %.0f", promised, runs, broken, most)
			}
		})
	}
}

// A bound for one moment, looked at often, breaks more than a tenth: so TestValidity can fail.
func TestAFixedBoundBreaks(t *testing.T) {
	const runs, steps, budget = 300, 3000, 0.02
	broken := 0
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), 13))
		n, lost := 0, 0
		for range steps {
			if n++; r.Float64() < budget { // at τ*
				lost++
			}
			if poissonAtMost(lost, budget*float64(n)) <= 0.1 {
				broken++
				break
			}
		}
	}
	if broken < runs/5 {
		t.Errorf("%d of %d broke", broken, runs)
	}
}

func poissonAtMost(k int, mean float64) float64 {
	term, sum := math.Exp(-mean), 0.0
	for i := range k + 1 {
		if i > 0 {
			term *= mean / float64(i)
		}
		sum += term
	}
	return sum
}

func TestThresholdPanics(t *testing.T) {
	for _, budget := range []float64{0, 1, -1, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("budget %v is accepted", budget)
				}
			}()
			new(Table).Threshold(budget)
		}()
	}
}

func ExampleTable() {
	var ham Table
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]float64, 3000)
	for i := range all {
		all[i] = 2*r.NormFloat64() - 6
		ham.Observe(all[i], 1)
	}
	slices.Sort(all)
	for _, budget := range []float64{0.01, 0.002, 0.0005} {
		b := ham.Threshold(budget)
		if !b.Promised() {
			fmt.Printf("%.2f %%: not yet, %.0f more ham at least\n", 100*budget, math.Ceil(b.Missing))
			continue
		}
		fmt.Printf("%.2f %%: log-odds of %.2f, %v of %v ham lost\n", 100*budget, b.LogOdds, b.Lost, b.Ham)
	}
	// Output:
	// 1.00 %: log-odds of -1.03, 16 of 3000 ham lost
	// 0.20 %: log-odds of 0.28, 1 of 3000 ham lost
	// 0.05 %: not yet, 3029 more ham at least
}
