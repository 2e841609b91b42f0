package poeboost_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"hamlet/algos/algotest"
	"hamlet/algos/boost"
	"hamlet/algos/poeboost"
)

// A booster is what both have in common.
type booster interface {
	Train(ctx context.Context) error
	Round() bool
	Stopped() boost.Stop
	Ensemble() *poeboost.Ensemble
	WeightsTo(dst []float64)
	LogOddsTo(dst []float64)
}

var kinds = []struct {
	name string
	make func(d *boost.Data, y, weights []float64, rounds int) (booster, error)
}{
	{"DS", func(d *boost.Data, y, w []float64, rounds int) (booster, error) {
		return poeboost.NewDiscrete(d, y, poeboost.DiscreteConfig{Rounds: rounds, Weights: w})
	}},
	{"DS greedy", func(d *boost.Data, y, w []float64, rounds int) (booster, error) {
		return poeboost.NewDiscrete(d, y, poeboost.DiscreteConfig{Rounds: rounds, Weights: w, ErrorRate: poeboost.Greedy})
	}},
	{"CS newton", func(d *boost.Data, y, w []float64, rounds int) (booster, error) {
		return poeboost.NewContinuous(d, y, poeboost.ContinuousConfig{Rounds: rounds, Weights: w})
	}},
	{"CS step", func(d *boost.Data, y, w []float64, rounds int) (booster, error) {
		return poeboost.NewContinuous(d, y, poeboost.ContinuousConfig{Rounds: rounds, Weights: w, Learner: poeboost.Step})
	}},
}

// Degenerate data get an ensemble that answers finite log-odds everywhere, and a
// reason for stopping; no weight, log-odds or probability is NaN.
func TestDegenerateData(t *testing.T) {
	const huge, tiny = math.MaxFloat64, 5e-324
	for _, c := range []struct {
		name string
		x    [][]float64
		y    []float64
	}{
		{"one row", [][]float64{{1, 2}}, []float64{1}},
		{"one class", [][]float64{{1, 2}, {3, 1}, {0, 0}}, []float64{-1, -1, -1}},
		{"constant features", [][]float64{{1, 2}, {1, 2}, {1, 2}}, []float64{1, -1, 1}},
		{"constant features, balanced", [][]float64{{1}, {1}}, []float64{1, -1}},
		{"one constant feature", [][]float64{{1, 0.1}, {2, 0.1}, {3, 0.1}}, []float64{1, -1, 1}},
		{"duplicate rows with both labels", [][]float64{{1, 2}, {1, 2}, {3, 4}, {3, 4}}, []float64{1, -1, 1, -1}},
		{"duplicate rows", [][]float64{{1, 2}, {1, 2}, {3, 4}, {3, 4}}, []float64{1, 1, -1, -1}},
		{"separable", [][]float64{{1}, {2}, {3}, {4}}, []float64{-1, -1, 1, 1}},
		{"exclusive or", [][]float64{{0, 0}, {0, 1}, {1, 0}, {1, 1}}, []float64{1, -1, -1, 1}},
		{"the ends of float64", [][]float64{{huge, tiny}, {-huge, 0}, {huge, 0}, {-huge, tiny}}, []float64{1, -1, 1, 1}},
		{"an outlier", [][]float64{{0}, {1}, {2}, {1e300}}, []float64{1, -1, 1, -1}},
	} {
		d := newData(t, c.x)
		for _, k := range kinds {
			b, err := k.make(d, c.y, nil, 300)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			if b.Stopped() == boost.Running {
				t.Errorf("%s, %s: training has ended without a reason", c.name, k.name)
			}
			e, n := b.Ensemble(), len(c.x)
			f, w := make([]float64, n), make([]float64, n)
			b.LogOddsTo(f)
			b.WeightsTo(w)
			sum := 0.0
			for i := range f {
				if !(math.Abs(f[i]) <= 1e4) || !(w[i] >= 0) {
					t.Errorf("%s, %s: log-odds %v, weight %v of row %d", c.name, k.name, f[i], w[i], i)
				}
				sum += w[i]
			}
			if math.Abs(sum-1) > 1e-12 {
				t.Errorf("%s, %s: the weights sum to %v", c.name, k.name, sum)
			}
			probe := make([]float64, len(c.x[0]))
			for _, v := range []float64{0, 800, -800, 1e300, -huge, math.Inf(1), math.NaN()} {
				for j := range probe {
					probe[j] = v
				}
				if p := e.Prob(probe); !(p >= 0 && p <= 1) {
					t.Errorf("%s, %s: P = %v at %v", c.name, k.name, p, v)
				}
			}
		}
	}
}

// One class or constant features leave POEBoost.DS without an expert or with ones
// that follow the majority; its reasons are told apart.
func TestReasonsForStopping(t *testing.T) {
	for _, c := range []struct {
		name    string
		x       [][]float64
		y       []float64
		rounds  int
		want    boost.Stop
		experts int
	}{
		{"constant", [][]float64{{1}, {1}}, []float64{1, -1}, 9, boost.NoCandidate, 0},
		{"separable", [][]float64{{1}, {2}}, []float64{1, -1}, 9, boost.Separated, 1},
		{"exclusive or", [][]float64{{0, 0}, {0, 1}, {1, 0}, {1, 1}}, []float64{1, -1, -1, 1}, 9, boost.NoEdge, 0},
		{"more rounds to go", [][]float64{{1}, {2}, {3}}, []float64{1, -1, 1}, 2, boost.Rounds, 2},
	} {
		b := newDiscrete(t, c.x, c.y, poeboost.DiscreteConfig{Rounds: c.rounds})
		if err := b.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.Stopped() != c.want || b.Ensemble().Len() != c.experts {
			t.Errorf("%s: stopped with %d experts because of %v, want %d and %v", c.name, b.Ensemble().Len(), b.Stopped(), c.experts, c.want)
		}
		if b.Round() {
			t.Errorf("%s: a further round after the end", c.name)
		}
	}
	cs := newContinuous(t, [][]float64{{0, 0}, {0, 1}, {1, 0}, {1, 1}}, []float64{1, -1, -1, 1}, poeboost.ContinuousConfig{})
	if err := cs.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cs.Stopped() != boost.NoEdge || cs.Ensemble().Len() != 0 {
		t.Errorf("exclusive or: POEBoost.CS stopped with %d experts because of %v", cs.Ensemble().Len(), cs.Stopped())
	}
}

// Reference: ERRATA, eq. 18: ε = 0 counts as 10⁻¹⁰, and is the last round.
func TestPerfectStump(t *testing.T) {
	b := newDiscrete(t, [][]float64{{1}, {2}}, []float64{-1, 1}, poeboost.DiscreteConfig{ErrorRate: poeboost.Greedy})
	if err := b.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := b.Rounds()
	want := 0.5 * math.Log((1-1e-10)/1e-10)
	if len(r) != 1 || r[0].Epsilon != 0 || math.Abs(r[0].Alpha-want) > 1e-12 || r[0].ErrorRate != 1e-10 || !(r[0].Constraint <= 2) {
		t.Errorf("rounds %+v, want one with ε = 0, α = %v", r, want)
	}
}

// A sample weight of k is k copies of the row, and a weight of 0 is no row; weights
// count only by their ratios.
func TestSampleWeightsAreCopies(t *testing.T) {
	x, y := noise(6, 80, 3, 0.2)
	var copies [][]float64
	var labels, weights, scaled []float64
	for i, row := range x {
		k := i % 3
		weights, scaled = append(weights, float64(k)), append(scaled, 1e-200*float64(k))
		for range k {
			copies, labels = append(copies, row), append(labels, y[i])
		}
	}
	for _, k := range kinds[:2] { // standardisation sees copies, so not POEBoost.CS
		a, err := k.make(newData(t, x), y, weights, 20)
		if err != nil {
			t.Fatal(err)
		}
		b, err := k.make(newData(t, copies), labels, nil, 20)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Train(t.Context()), b.Train(t.Context())); err != nil {
			t.Fatal(err)
		}
		for i, row := range copies {
			if f, g := a.Ensemble().LogOdds(row), b.Ensemble().LogOdds(row); math.Abs(f-g) > 1e-9 {
				t.Fatalf("%s, row %d: log-odds %v with weights, %v with copies", k.name, i, f, g)
			}
		}
	}
	for _, k := range kinds {
		a, err := k.make(newData(t, x), y, weights, 20)
		if err != nil {
			t.Fatal(err)
		}
		b, err := k.make(newData(t, x), y, scaled, 20)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Train(t.Context()), b.Train(t.Context())); err != nil {
			t.Fatal(err)
		}
		for i, row := range x {
			if f, g := a.Ensemble().LogOdds(row), b.Ensemble().LogOdds(row); math.Abs(f-g) > 1e-9 {
				t.Fatalf("%s, row %d: log-odds %v, with scaled weights %v", k.name, i, f, g)
			}
		}
	}
}

// POEBoost.CS sees a feature only through its standardised values, and both
// boosters answer the mirror image of what they learn from mirrored labels.
func TestInvariances(t *testing.T) {
	x, y := noise(7, 120, 3, 0.2)
	moved, flipped := make([][]float64, len(x)), make([]float64, len(x))
	for i, row := range x {
		moved[i] = []float64{1e6*row[0] + 3, -row[1] / 4096, row[2] - 7}
		flipped[i] = -y[i]
	}
	for _, k := range kinds {
		train := func(x [][]float64, y []float64) *poeboost.Ensemble {
			b, err := k.make(newData(t, x), y, nil, 25)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			return b.Ensemble()
		}
		e, mirrored := train(x, y), train(x, flipped)
		var other *poeboost.Ensemble
		if k.name[:2] == "CS" {
			other = train(moved, y)
		}
		for i, row := range x {
			if f, g := e.LogOdds(row), mirrored.LogOdds(row); math.Abs(f+g) > 1e-9 {
				t.Fatalf("%s, row %d: log-odds %v, from mirrored labels %v", k.name, i, f, g)
			}
			if other != nil {
				if f, g := e.LogOdds(row), other.LogOdds(moved[i]); math.Abs(f-g) > 1e-6 {
					t.Fatalf("%s, row %d: log-odds %v, with features moved and scaled %v", k.name, i, f, g)
				}
			}
		}
	}
}

// Features that are affine images of one another are one feature to POEBoost.CS,
// though rounding makes their ε_c differ: the first of them is taken.
func TestFirstOfEqualFeaturesWins(t *testing.T) {
	for seed := range uint64(10) {
		x, y := noise(seed, 150, 2, 0.2)
		images := make([][]float64, len(x))
		for i, row := range x {
			u, v := row[0], row[1]
			images[i] = []float64{u, 3*u + 0.7, v, 1.1 - 0.3*u, 7*v - 5, u / 3, -v}
		}
		for _, learner := range []poeboost.Learner{poeboost.Newton, poeboost.Step} {
			b := newContinuous(t, images, y, poeboost.ContinuousConfig{Rounds: 20, Learner: learner})
			if err := b.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			for n, r := range b.Rounds() {
				if f := r.Hypothesis.Feature; f != 0 && f != 2 {
					t.Errorf("seed %d, learner %d, round %d: feature %d was taken for its first image", seed, learner, n, f)
				}
			}
		}
	}
}

// Training stops between rounds when the context is done, keeps what it has, and
// goes on from there to the same ensemble.
func TestCancelledBetweenRounds(t *testing.T) {
	x, y := noise(8, 100, 3, 0.2)
	d := newData(t, x)
	for _, k := range kinds {
		whole, err := k.make(d, y, nil, 12)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := k.make(d, y, nil, 12)
		if err != nil {
			t.Fatal(err)
		}
		if err := whole.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			parts.Round()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the window moved on")
		cancel(cause)
		if err := parts.Train(ctx); !errors.Is(err, cause) {
			t.Errorf("%s: error %v, want the cause %v", k.name, err, cause)
		}
		if n := parts.Ensemble().Len(); n != 5 {
			t.Errorf("%s: %d experts after 5 rounds and a cancelled training", k.name, n)
		}
		if err := parts.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		a, _ := whole.Ensemble().AppendBinary(nil)
		b, _ := parts.Ensemble().AppendBinary(nil)
		if !slices.Equal(a, b) {
			t.Errorf("%s: the ensemble differs from one that was never stopped", k.name)
		}
	}
}

// Quantised data with a bin for each value make the same ensemble.
func TestQuantisedDataMakeTheSameEnsemble(t *testing.T) {
	x, y := noise(13, 200, 4, 0.2)
	q, err := boost.Quantise(x, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		var bytes [2][]byte
		for i, d := range []*boost.Data{newData(t, x), q} {
			b, err := k.make(d, y, nil, 30)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Train(t.Context()); err != nil {
				t.Fatal(err)
			}
			if bytes[i], err = b.Ensemble().AppendBinary(nil); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(bytes[0], bytes[1]) {
			t.Errorf("%s: another ensemble from quantised data", k.name)
		}
	}
}

func TestNoAllocationPerRound(t *testing.T) {
	x, y := noise(9, 300, 6, 0.3)
	for _, k := range kinds {
		b, err := k.make(newData(t, x), y, nil, 500)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			if !b.Round() {
				t.Fatal("no more rounds")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a round", k.name, n)
		}
	}
}

// Every wrong field is named, all at once.
func TestBadConfigurations(t *testing.T) {
	d := newData(t, [][]float64{{1}, {2}})
	if _, err := poeboost.NewDiscrete(d, []float64{1, 0}, poeboost.DiscreteConfig{Rounds: -1, Weights: []float64{0, 0}, ErrorRate: 9}); err == nil ||
		countJoined(err) != 4 {
		t.Errorf("error %v, want four joined", err)
	}
	if _, err := poeboost.NewContinuous(d, []float64{1}, poeboost.ContinuousConfig{Rounds: boost.MaxRounds + 1, Weights: []float64{-1, 0}, Learner: 7, Rate: -1}); err == nil ||
		countJoined(err) != 5 {
		t.Errorf("error %v, want five joined", err)
	}
	for _, rate := range []float64{math.NaN(), math.Inf(1), 1e300} {
		if _, err := poeboost.NewContinuous(d, []float64{1, -1}, poeboost.ContinuousConfig{Rate: rate}); err == nil {
			t.Errorf("rate %v is accepted", rate)
		}
	}
}

func countJoined(err error) int {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		n := 0
		for _, e := range joined.Unwrap() {
			n += countJoined(e)
		}
		return n
	}
	return 1
}

// online makes an ensemble a classifier that learns one event at a time: it keeps
// its events and trains anew at every 50th.
type online struct {
	kind int
	x    [][]float64
	y    []float64
	e    poeboost.Ensemble
}

const lawsDim = 4

func (o *online) Prob(x []float64) float64 {
	if o.e.Dim() == 0 {
		return 0.5
	}
	return o.e.Prob(x)
}

func (o *online) Update(x []float64, y float64) {
	o.x, o.y = append(o.x, slices.Clone(x)), append(o.y, y)
	if len(o.y)%50 != 0 {
		return
	}
	d, err := boost.NewData(o.x)
	if err != nil {
		panic(err)
	}
	b, err := kinds[o.kind].make(d, o.y, nil, 15)
	if err != nil {
		panic(err)
	}
	for b.Round() {
	}
	o.e = *b.Ensemble()
}

// AppendBinary appends the ensemble, and the events as one more of each.
func (o *online) AppendBinary(dst []byte) ([]byte, error) {
	return appendEvents(dst, &o.e, o.x, o.y)
}

func TestLaws(t *testing.T) {
	for kind, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			algotest.Run(t, algotest.Subject{
				Dim:  lawsDim,
				Near: 1e-6,
				New:  func() algotest.Classifier { return &online{kind: kind} },
				Restore: func(b []byte) (algotest.Classifier, error) {
					o := &online{kind: kind}
					var err error
					o.x, o.y, err = readEvents(&o.e, b)
					return o, err
				},
			})
		})
	}
}
