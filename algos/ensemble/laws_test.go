package ensemble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/algotest"
)

// online makes a kind a classifier that learns one event at a time: it keeps its
// events and builds anew at every 50th that finds both labels.
type online struct {
	kind Kind
	w    Window
	e    Ensemble
}

func (o *online) Prob(x []float64) float64 {
	if o.e.Dim() == 0 {
		return 0.5
	}
	return o.e.Prob(x)
}

func (o *online) Update(x []float64, y float64) {
	for _, v := range x {
		o.w.Inputs = append(o.w.Inputs, float32(v))
	}
	o.w.Labels, o.w.Weights = append(o.w.Labels, y), append(o.w.Weights, 1)
	if len(o.w.Labels)%50 != 0 {
		return
	}
	if r := Build(context.Background(), []Kind{o.kind}, &o.w)[0]; r.Err == nil {
		o.e = *r.Ensemble
	}
}

// AppendBinary appends the events, behind their number, and the ensemble.
func (o *online) AppendBinary(dst []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(o.w.Labels)))
	for _, v := range o.w.Inputs {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	for _, y := range o.w.Labels {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(y))
	}
	if o.e.Dim() == 0 {
		return dst, nil
	}
	return o.e.AppendBinary(dst)
}

func (o *online) restore(b []byte) error {
	short := errors.New("cut short")
	if len(b) < 4 {
		return short
	}
	n := int(binary.LittleEndian.Uint32(b))
	if b = b[4:]; len(b) < n*(4*o.w.Dim+8) {
		return short
	}
	for range n * o.w.Dim {
		o.w.Inputs = append(o.w.Inputs, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		b = b[4:]
	}
	for range n {
		o.w.Labels = append(o.w.Labels, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		o.w.Weights = append(o.w.Weights, 1)
		b = b[8:]
	}
	if n < 50 && len(b) == 0 {
		return nil
	}
	return o.e.UnmarshalBinary(b)
}

func TestLaws(t *testing.T) {
	const dim = 4
	for _, k := range Kinds() {
		exempt := map[algotest.Law]string{}
		if k == LogitTrees || k == RealAdaBoost {
			exempt[algotest.PermutedInputs] = "within a child of some rows several inputs divide alike, and the first is taken"
		}
		t.Run(string(k), func(t *testing.T) {
			algotest.Run(t, algotest.Subject{
				Exempt: exempt,
				Dim:    dim,
				Near:   1e-6, // as in the boosters' own packages
				New:    func() algotest.Classifier { return &online{kind: k, w: Window{Dim: dim}} },
				Restore: func(b []byte) (algotest.Classifier, error) {
					o := &online{kind: k, w: Window{Dim: dim}}
					return o, o.restore(b)
				},
			})
		})
	}
}

// A window whose inputs are all different, so that no two cuts divide it alike.
func drawWithoutTies(seed uint64, n, d int) *Window {
	r := rand.New(rand.NewPCG(seed, 7))
	w := &Window{Dim: d}
	for range n {
		z := r.NormFloat64() / 2
		for j := range d {
			v := r.NormFloat64()
			w.Inputs = append(w.Inputs, float32(v))
			if j < 3 {
				z += v
			}
		}
		w.Labels, w.Weights = append(w.Labels, math.Copysign(1, z)), append(w.Weights, 0.1+r.Float64())
	}
	return w
}

// alike reports by how much the log-odds of two ensembles differ at most on the rows
// of w, of which the second sees each with its inputs permuted.
func alike(a, b *Ensemble, w *Window, inputs []int) (far float64) {
	for i := range w.Labels {
		x := w.row(i)
		p := make([]float64, len(x))
		for j, from := range inputs {
			p[j] = x[from]
		}
		far = max(far, math.Abs(a.LogOdds(x)-b.LogOdds(p)))
	}
	return far
}

// The order of the rows, and that of the inputs where no two divide the rows alike,
// change the order of sums and nothing else. Of inputs that do, the first is taken.
func TestOrderChangesRoundingsAlone(t *testing.T) {
	const n, d = 600, 6
	w := drawWithoutTies(11, n, d)
	same := []int{0, 1, 2, 3, 4, 5}
	inputs := []int{3, 0, 5, 1, 4, 2}
	rows := rand.New(rand.NewPCG(1, 1)).Perm(n)
	byRows, byInputs := &Window{Dim: d}, &Window{Dim: d, Labels: w.Labels, Weights: w.Weights}
	for i, k := range rows {
		byRows.Inputs = append(byRows.Inputs, w.Inputs[k*d:(k+1)*d]...)
		byRows.Labels, byRows.Weights = append(byRows.Labels, w.Labels[k]), append(byRows.Weights, w.Weights[k])
		for _, j := range inputs {
			byInputs.Inputs = append(byInputs.Inputs, w.Inputs[i*d+j])
		}
	}
	ofRows, ofInputs := buildAll(t, byRows), buildAll(t, byInputs)
	for i, e := range buildAll(t, w) {
		const near = 1e-9
		if far := alike(e, ofRows[i], w, same); !(far <= near) {
			t.Errorf("%s: other rows first change log-odds by %v, want at most %v", e.Kind(), far, near)
		}
		if e.Kind() == LogitTrees {
			continue // a deep node has few rows, and some inputs divide them alike
		}
		if far := alike(e, ofInputs[i], w, inputs); !(far <= near) {
			t.Errorf("%s: other inputs first change log-odds by %v, want at most %v", e.Kind(), far, near)
		}
	}
}

// How much all weights are is nothing to the boosters that start from a
// distribution. To the others it is: the leaves of logit-trees have the prior of one example,
// VIBoost its phantom examples, BBLR a penalty. There, as for all but those that
// smooth by 1/N, twice the weight is every row twice.
func TestScaledWeights(t *testing.T) {
	const n, d = 2000, 5 // from here on logit-trees grows no deeper with more rows
	w := drawWithoutTies(12, n, d)
	double := &Window{Dim: d, Inputs: w.Inputs, Labels: w.Labels, Weights: slices.Clone(w.Weights)}
	third := &Window{Dim: d, Inputs: w.Inputs, Labels: w.Labels, Weights: slices.Clone(w.Weights)}
	for i := range w.Weights {
		double.Weights[i] *= 2
		third.Weights[i] /= 3
	}
	twice := &Window{Dim: d}
	for i := range w.Labels {
		for range 2 {
			twice.Inputs = append(twice.Inputs, w.Inputs[i*d:(i+1)*d]...)
			twice.Labels, twice.Weights = append(twice.Labels, w.Labels[i]), append(twice.Weights, w.Weights[i])
		}
	}
	same := []int{0, 1, 2, 3, 4}
	ofDouble, ofThird, ofTwice := buildAll(t, double), buildAll(t, third), buildAll(t, twice)
	for i, e := range buildAll(t, w) {
		k := e.Kind()
		exact := bytes.Equal(encode(t, e), encode(t, ofDouble[i]))
		if scaled := k == LogitTrees || k == VIBoost || k == BBLR; exact == scaled {
			t.Errorf("%s: twice the weights make the same bytes: %v, want %v", k, exact, !scaled)
		} else if far := alike(e, ofThird[i], w, same); !scaled && !(far <= 1e-9) {
			t.Errorf("%s: a third of the weights changes log-odds by %v, want at most 1e-9", k, far)
		}
		if k == RealAdaBoost || k == BHBoost {
			continue
		}
		near := 1e-9
		if k == LogitTrees {
			// It rounds a row's slope to 2⁻²⁹ of what all can add up to, here 4e−6. Over
			// 100 rounds a row's log-odds add up 100 sums of some tens of these errors,
			// each times 2·0.3/(H+1), H some tens: 1e−5, of either sign.
			near = 1e-4
		}
		if far := alike(ofDouble[i], ofTwice[i], w, same); !(far <= near) {
			t.Errorf("%s: log-odds of every row twice and of twice the weights differ by %v, want at most %v", k, far, near)
		}
	}
}

// A number and its rounding to float32 lie on the same side of every cut, but for
// the number exactly between two of float32.
func TestRoundedInputsAnswerAlike(t *testing.T) {
	const d = 5
	w := drawWindow(13, 500, d)
	r := rand.New(rand.NewPCG(13, 8))
	for _, e := range buildAll(t, w) {
		if k := e.Kind(); k == POEBoostCS || k == BBLR {
			continue // which do not cut
		}
		x, rounded := make([]float64, d), make([]float64, d)
		for i := range 2000 {
			for j := range x {
				// Next to the window's own numbers, where the cuts are.
				v := w.Inputs[(i%500)*d+j]
				x[j] = float64(v) + 0.49*(2*r.Float64()-1)*float64(math.Nextafter32(v, math.MaxFloat32)-v)
				rounded[j] = float64(float32(x[j]))
			}
			if a, b := e.LogOdds(x), e.LogOdds(rounded); a != b {
				t.Fatalf("%s: log-odds %v of %v and %v rounded", e.Kind(), a, x, b)
			}
		}
	}
}

// The bytes of the ensembles do not depend on what else is built, nor on when.
func TestKindsAreBuiltAlike(t *testing.T) {
	w := drawWindow(14, 300, 5)
	before := fmt.Sprint(w)
	all := buildAll(t, w)
	reversed := Kinds()
	slices.Reverse(reversed)
	for i, r := range Build(t.Context(), reversed, w) {
		if r.Err != nil || !bytes.Equal(encode(t, r.Ensemble), encode(t, all[len(all)-1-i])) {
			t.Errorf("%s: built in another order it is another (%v)", reversed[i], r.Err)
		}
	}
	if fmt.Sprint(w) != before {
		t.Error("Build changes the window")
	}
}
