package boost

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A booster as these tests see it.
type booster interface {
	Round() bool
	Train(context.Context) error
	Stopped() Stop
	Ensemble() *Ensemble
	FTo([]float64)
	WeightsTo([]float64)
}

func mustTrain(t testing.TB, b interface{ Train(context.Context) error }, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// EqualWidths returns the inner edges of 16 bins of equal width of each feature.
func EqualWidths(d *Data) [][]float64 {
	edges := make([][]float64, d.Dim())
	for j := range edges {
		lo, hi := slices.Min(d.Column(j)), slices.Max(d.Column(j))
		for k := 1; k < 16; k++ {
			edges[j] = append(edges[j], lo+(hi-lo)*float64(k)/16)
		}
	}
	return edges
}

// boosters returns one of each kind.
func boosters(t testing.TB, d *Data, y, ω []float64, rounds int) map[string]booster {
	t.Helper()
	all := map[string]booster{}
	add := func(name string, b booster, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = b
	}
	a, err := NewAdaBoost(d, y, AdaBoostConfig{Rounds: rounds, Weights: ω})
	add("AdaBoost", a, err)
	r, err := NewRealAdaBoost(d, y, RealAdaBoostConfig{Rounds: rounds, Weights: ω})
	add("Real AdaBoost", r, err)
	b, err := NewBHBoostOver(d, y, EqualWidths(d), BHBoostConfig{Rounds: rounds, Weights: ω})
	add("BHBoost", b, err)
	if d.Quantised() {
		l, err := NewLogitTrees(d, y, LogitTreesConfig{Rounds: rounds, Weights: ω})
		add("LogitTrees", l, err)
		r, err := NewRealAdaBoost(d, y, RealAdaBoostConfig{Rounds: rounds, Weights: ω, Depth: 2, Clip: 2, Shrink: 0.3})
		add("Real AdaBoost trees", r, err)
		b, err := NewBHBoost(d, y, BHBoostConfig{Rounds: rounds, Weights: ω, Shrink: 0.3})
		add("BHBoost quantiles", b, err)
	}
	return all
}

// One class, constant features, duplicate rows, one row, perfect and hopeless
// features, ±800, huge and tiny values and weights: an answer, and no NaN.
func TestDegenerateData(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	x := drawRows(r, 40, 3, 0)
	y := drawLabels(r, x)
	scale := func(by float64) [][]float64 {
		scaled := make([][]float64, len(x))
		for i := range x {
			scaled[i] = []float64{x[i][0] * by, math.Copysign(by, x[i][1]), x[i][2]}
		}
		return scaled
	}
	constant := slices.Repeat([][]float64{{3, 0}}, 10)
	same := slices.Repeat([][]float64{{1, 2}, {2, 1}}, 10)
	tiny := slices.Repeat([]float64{1e-200}, 40)
	uneven := slices.Repeat([]float64{1, 0, 1e-300, 1e250}, 10)
	perfect := make([][]float64, 40)
	for i := range perfect {
		perfect[i] = []float64{800 * y[i]}
	}
	ones := slices.Repeat([]float64{1}, 40)
	for _, k := range []task{
		{"one class", x, ones, nil},
		{"constant features", constant, slices.Repeat([]float64{1, -1}, 5), nil},
		{"constant features, one class", constant, slices.Repeat([]float64{-1}, 10), nil},
		{"duplicate rows", same, slices.Repeat([]float64{1, -1}, 10), nil},
		{"duplicate rows, any label", same, slices.Repeat([]float64{1, 1, -1, 1, -1}, 4), nil},
		{"contradictory rows", same, slices.Repeat([]float64{1, 1, -1, -1}, 5), nil},
		{"one row", [][]float64{{1, 2}}, []float64{-1}, nil},
		{"two rows", [][]float64{{1, 2}, {1, 3}}, []float64{-1, 1}, nil},
		{"perfect", perfect, y, nil},
		{"huge", scale(math.MaxFloat64 / 8), y, nil},
		{"tiny", scale(5e-324), y, nil},
		{"±800", scale(800), y, nil},
		{"tiny weights", x, y, tiny},
		{"uneven weights", x, y, uneven},
		{"one weight", x, y, append(make([]float64, 39), 7)},
	} {
		for _, d := range k.both(t) {
			for name, b := range boosters(t, d, k.y, k.weights, 300) {
				if err := b.Train(t.Context()); err != nil {
					t.Fatal(err)
				}
				f, w := make([]float64, len(k.x)), make([]float64, len(k.x))
				b.FTo(f)
				b.WeightsTo(w)
				e := b.Ensemble()
				sum := 0.0
				for i := range f {
					sum += w[i]
					if p := e.Prob(k.x[i]); !(p >= 0 && p <= 1) || math.IsNaN(f[i]) || math.IsInf(f[i], 0) || !(w[i] >= 0) {
						t.Errorf("%s, %s: f %v, p %v, weight %v", k.name, name, f[i], p, w[i])
					}
					if !near(f[i], e.F(k.x[i]), 1e-9) {
						t.Errorf("%s, %s: f is %v in training and %v of the ensemble", k.name, name, f[i], e.F(k.x[i]))
					}
				}
				if !near(sum, 1, 1e-9) || b.Stopped() == Running {
					t.Errorf("%s, %s: weights sum to %v, %v", k.name, name, sum, b.Stopped())
				}
				if _, ok := b.(*BHBoost); d.Candidates() == 0 && !ok && (b.Stopped() != NoCandidate || e.Len() != 0 || e.Prob(k.x[0]) != 0.5) {
					t.Errorf("%s, %s: %v after %d rounds", k.name, name, b.Stopped(), e.Len())
				}
				if k.name == "perfect" {
					for i := range f {
						if f[i]*k.y[i] <= 0 {
							t.Errorf("%s: f %v of a row with label %v", name, f[i], k.y[i])
						}
					}
				}
				for _, far := range []float64{800, -800, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1)} {
					if p := e.Prob(slices.Repeat([]float64{far}, len(k.x[0]))); !(p >= 0 && p <= 1) {
						t.Errorf("%s, %s: p %v at %v", k.name, name, p, far)
					}
				}
			}
		}
	}
}

func TestWhyBoostersStop(t *testing.T) {
	x := [][]float64{{0}, {1}, {2}, {3}}
	perfect := []float64{-1, -1, 1, 1}
	train := func(b booster, err error) booster {
		mustTrain(t, b, err)
		return b
	}
	d := mustData(t, x)
	ada := func(y []float64, rounds int) booster {
		b, err := NewAdaBoost(d, y, AdaBoostConfig{Rounds: rounds})
		return train(b, err)
	}
	for _, c := range []struct {
		name string
		b    booster
		stop Stop
		len  int
	}{
		{"ε = 0", ada(perfect, 9), Separated, 1},
		{"rounds", ada([]float64{-1, 1, -1, 1}, 2), Rounds, 2},
	} {
		if c.b.Stopped() != c.stop || c.b.Ensemble().Len() != c.len {
			t.Errorf("%s: %v after %d rounds, want %v after %d", c.name, c.b.Stopped(), c.b.Ensemble().Len(), c.stop, c.len)
		}
	}
	// ε = 0 counts as 1e−10 in α alone.
	a := ada(perfect, 9).(*AdaBoost).Rounds()[0]
	if a.Epsilon != 0 || !near(a.Alpha, math.Log(1e10-1)/2, 1e-14) || !near(a.GammaBound, math.Exp(-0.5), 1e-15) || !near(a.Z, math.Exp(-a.Alpha), 1e-14) {
		t.Errorf("a perfect stump: %+v", a)
	}
	// One feature of two values: after one round its stump has ε = ½, to rounding.
	d = mustData(t, [][]float64{{0}, {0}, {0}, {1}, {1}, {1}, {1}})
	y := []float64{-1, -1, 1, 1, 1, 1, -1}
	if b := ada(y, 9); b.Stopped() != NoEdge || b.Ensemble().Len() != 1 {
		t.Errorf("one stump: %v after %d rounds", b.Stopped(), b.Ensemble().Len())
	}
}

func TestConstructorsReportEveryBadField(t *testing.T) {
	d := mustData(t, [][]float64{{1}, {2}})
	for _, c := range []struct {
		make func() error
		want []string
	}{
		{func() error {
			_, err := NewAdaBoost(d, []float64{1, 2}, AdaBoostConfig{Rounds: -1, Weights: []float64{1}})
			return err
		},
			[]string{"label 1 is 2", "-1 rounds", "1 sample weights for 2 rows"}},
		{func() error {
			_, err := NewRealAdaBoost(d, []float64{1}, RealAdaBoostConfig{Smoothing: -1, Depth: 2, Clip: -1, Shrink: 2, Weights: []float64{0, 0}})
			return err
		}, []string{"1 labels for 2 rows", "smoothing -1", "depth 2 need quantised", "clipped at ±-1", "shrunk by 2", "add up to 0"}},
		{func() error {
			_, err := NewBHBoostOver(d, []float64{1, -1}, make([][]float64, 1), BHBoostConfig{Smoothing: math.NaN(), Weights: []float64{1, math.Inf(1)}})
			return err
		}, []string{"smoothing NaN", "sample weight 1 is +Inf"}},
		{func() error { _, err := NewBHBoost(d, []float64{1, -1}, BHBoostConfig{}); return err },
			[]string{"need quantised data"}},
		{func() error {
			_, err := NewLogitTrees(d, []float64{1, -1}, LogitTreesConfig{Depth: 6, Rounds: MaxRounds + 1, Weights: []float64{-1, 1}, Columns: -1, Trim: 1, Clip: -2})
			return err
		}, []string{"depth 6", "1048577 rounds", "sample weight 0 is -1", "-1 columns", "1 of the slopes", "clipped at ±-2", "quantised data"}},
	} {
		err := c.make()
		if err == nil {
			t.Errorf("no error, want %q", c.want)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
	}
}

func TestTrainStopsBetweenRoundsWhenCancelled(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	x := drawRows(r, 100, 3, 0)
	y := drawLabels(r, x)
	why := errors.New("a newer window")
	for name, b := range boosters(t, mustQuantise(t, x, 32), y, nil, 30) {
		ctx, cancel := context.WithCancelCause(context.Background())
		b.Round()
		cancel(why)
		if err := b.Train(ctx); !errors.Is(err, why) || b.Stopped() != Running || b.Ensemble().Len() != 1 {
			t.Errorf("%s: error %v, %v after %d rounds", name, err, b.Stopped(), b.Ensemble().Len())
		}
		if err := b.Train(context.Background()); err != nil || b.Stopped() == Running {
			t.Errorf("%s: going on: error %v, %v", name, err, b.Stopped())
		}
	}
}

func TestRoundsAllocateNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	x := drawRows(r, 400, 9, 0)
	for i := range x {
		if i%3 > 0 {
			x[i][4] = 0
		}
	}
	y := drawLabels(r, x)
	for _, d := range []*Data{mustData(t, x), mustQuantise(t, x, 64)} {
		for name, b := range boosters(t, d, y, nil, 300) {
			if n := testing.AllocsPerRun(100, func() { b.Round() }); n != 0 {
				t.Errorf("%s, quantised %v: %v allocations a round", name, d.Quantised(), n)
			}
		}
	}
}
