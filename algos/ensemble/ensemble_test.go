package ensemble

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawWindow returns n rows of d inputs with a linear truth of three of them, as
// the window of a young stream may hold them: the last column is always 0, the one
// before a copy of the first, some values are large and most of them a few.
func drawWindow(seed uint64, n, d int) *Window {
	r := rand.New(rand.NewPCG(seed, 6))
	w := &Window{Dim: d}
	for range n {
		row := make([]float32, d)
		for j := range row {
			switch r.IntN(4) {
			case 0:
			case 1:
				row[j] = float32(r.IntN(3))
			default:
				row[j] = float32(r.NormFloat64())
			}
		}
		row[d-2], row[d-1] = row[0], 0
		z := 2*row[0] - row[1] + row[2] + float32(r.NormFloat64())/2 - 0.3
		w.Inputs = append(w.Inputs, row...)
		w.Labels = append(w.Labels, math.Copysign(1, float64(z)))
		w.Weights = append(w.Weights, r.Float64()+1e-3)
	}
	return w
}

// row returns row i as LogOdds takes it.
func (w *Window) row(i int) []float64 {
	x := make([]float64, w.Dim)
	for j, v := range w.Inputs[i*w.Dim : (i+1)*w.Dim] {
		x[j] = float64(v)
	}
	return x
}

// buildAll returns the ensemble of each kind.
func buildAll(t testing.TB, w *Window) []*Ensemble {
	t.Helper()
	var all []*Ensemble
	for i, r := range Build(t.Context(), Kinds(), w) {
		if r.Err != nil {
			t.Fatalf("%s: %v", Kinds()[i], r.Err)
		}
		all = append(all, r.Ensemble)
	}
	return all
}

// Every kind learns a linear truth from a window, says so of rows that it has not
// seen, and answers with numbers whatever it is asked.
func TestEveryKindLearns(t *testing.T) {
	w, unseen := drawWindow(1, 1000, 9), drawWindow(2, 1000, 9)
	for i, e := range buildAll(t, w) {
		if e.Kind() != Kinds()[i] || e.Dim() != 9 {
			t.Errorf("kind %q of %d inputs, want %q of 9", e.Kind(), e.Dim(), Kinds()[i])
		}
		wrong := 0
		for k, y := range unseen.Labels {
			if z := e.LogOdds(unseen.row(k)); !(z*y > 0) {
				wrong++
			}
		}
		if wrong > 150 {
			t.Errorf("%s: %d of 1000 rows wrong, want at most 150", e.Kind(), wrong)
		}
	}
}

func TestLogOddsAreFinite(t *testing.T) {
	for _, e := range buildAll(t, drawWindow(3, 200, 5)) {
		for _, v := range []float64{0, math.SmallestNonzeroFloat64, 1e30, math.MaxFloat64} {
			for signs := range 1 << 5 {
				x := make([]float64, 5)
				for j := range x {
					x[j] = v
					if signs>>j&1 != 0 {
						x[j] = -v
					}
				}
				z, p := e.LogOdds(x), e.Prob(x)
				if !(math.Abs(z) <= math.MaxFloat64) || !(p >= 0 && p <= 1) {
					t.Fatalf("%s: log-odds %v and probability %v of %v", e.Kind(), z, p, x)
				}
			}
		}
		x := make([]float64, 5)
		if n := testing.AllocsPerRun(20, func() { e.LogOdds(x) }); n != 0 {
			t.Errorf("%s: LogOdds allocates %v times", e.Kind(), n)
		}
	}
}

// A row of weight 0 might as well not be there, not even for the bins.
func TestWeightZeroTakesNoPart(t *testing.T) {
	w := drawWindow(4, 300, 6)
	with := &Window{Dim: 6}
	for i, y := range w.Labels {
		with.Inputs = append(with.Inputs, w.Inputs[6*i:6*i+6]...)
		with.Labels, with.Weights = append(with.Labels, y), append(with.Weights, w.Weights[i])
		if i%3 == 0 {
			for range 6 {
				with.Inputs = append(with.Inputs, float32(i)*1e30)
			}
			with.Labels, with.Weights = append(with.Labels, -y), append(with.Weights, 0)
		}
	}
	want := buildAll(t, w)
	for i, e := range buildAll(t, with) {
		if !slices.Equal(encode(t, e), encode(t, want[i])) {
			t.Errorf("%s: rows of weight 0 change the ensemble", e.Kind())
		}
	}
}

func TestWindowsThatMakeNoEnsemble(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(w *Window)
		want  error
	}{
		{"no rows", func(w *Window) { *w = Window{Dim: w.Dim} }, ErrNoRows},
		{"weights of 0", func(w *Window) { clear(w.Weights) }, ErrNoRows},
		{"one label", func(w *Window) {
			for i := range w.Labels {
				w.Labels[i] = -1
			}
		}, ErrOneClass},
		{"one label that counts", func(w *Window) {
			for i, y := range w.Labels {
				w.Weights[i] = max(0, y)
			}
		}, ErrOneClass},
		{"constant inputs", func(w *Window) {
			for i := range w.Inputs {
				w.Inputs[i] = 7
			}
		}, ErrConstant},
		{"a label of 0", func(w *Window) { w.Labels[7] = 0 }, nil},
		{"a label that is none", func(w *Window) { w.Labels[7] = math.NaN() }, nil},
		{"a negative weight", func(w *Window) { w.Weights[7] = -1 }, nil},
		{"a weight beyond the largest", func(w *Window) { w.Weights[7] = 2 * MaxWeight }, nil},
		{"a weight that is none", func(w *Window) { w.Weights[7] = math.NaN() }, nil},
		{"an input that is none", func(w *Window) { w.Inputs[7] = float32(math.NaN()) }, nil},
		{"an infinite input", func(w *Window) { w.Inputs[7] = float32(math.Inf(-1)) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := drawWindow(5, 50, 4)
			c.spoil(w)
			for i, r := range Build(t.Context(), Kinds(), w) {
				if r.Err == nil || r.Ensemble != nil || c.want != nil && !errors.Is(r.Err, c.want) {
					t.Errorf("%s: %v and the error %v, want one that wraps %v", Kinds()[i], r.Ensemble, r.Err, c.want)
				}
			}
		})
	}
}

// One kind's failure is not another's.
func TestOthersAreBuilt(t *testing.T) {
	r := Build(t.Context(), []Kind{LogitTrees, "xgboost", AdaBoost}, drawWindow(5, 50, 4))
	if r[0].Err != nil || r[1].Err == nil || r[2].Err != nil {
		t.Errorf("errors %v, %v, %v: want one for the unknown kind alone", r[0].Err, r[1].Err, r[2].Err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("the partition was taken away")
	cancel(stop)
	for i, r := range Build(ctx, Kinds(), drawWindow(5, 50, 4)) {
		if !errors.Is(r.Err, stop) {
			t.Errorf("%s: the error %v, want one that wraps %v", Kinds()[i], r.Err, stop)
		}
	}
}

// A patience is a context that ends when it has been asked so often.
type patience struct {
	context.Context
	left int
	end  error
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return p.end
	}
	return nil
}

// A build that is told to stop does so within it.
func TestStopsBetweenRounds(t *testing.T) {
	for _, k := range Kinds() {
		ctx := &patience{t.Context(), 4, errors.New("enough")}
		if r := Build(ctx, []Kind{k}, drawWindow(5, 200, 4))[0]; !errors.Is(r.Err, ctx.end) || r.Ensemble != nil {
			t.Errorf("%s: %v and the error %v, want one that wraps %q", k, r.Ensemble, r.Err, ctx.end)
		} else if ctx.left < -3 {
			t.Errorf("%s: asked %d times more", k, -ctx.left)
		}
	}
}

// Labels that no input knows of, on a design where every cut divides each class
// evenly, leave the boosters by stumps nothing.
func TestNoEdge(t *testing.T) {
	w := &Window{Dim: 2}
	for range 20 {
		for _, v := range [][3]float32{{0, 0, 1}, {0, 1, -1}, {1, 0, -1}, {1, 1, 1}} {
			w.Inputs = append(w.Inputs, v[0], v[1])
			w.Labels, w.Weights = append(w.Labels, float64(v[2])), append(w.Weights, 1)
		}
	}
	for i, r := range Build(t.Context(), Kinds(), w) {
		k := Kinds()[i]
		switch facts := factsOf(t, k); {
		case facts.noEdge && !errors.Is(r.Err, ErrNoEdge):
			t.Errorf("%s: the error %v, want one that wraps %v", k, r.Err, ErrNoEdge)
		case facts.cutsTwice && r.Err != nil:
			t.Errorf("%s: %v", k, r.Err)
		case facts.cutsTwice:
			if z := r.Ensemble.LogOdds([]float64{0, 0}); !(z > 0) {
				t.Errorf("%s: log-odds %v of (0, 0), want more than 0", k, z)
			}
		}
	}
}

func encode(t testing.TB, e *Ensemble) []byte {
	t.Helper()
	b, err := e.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
