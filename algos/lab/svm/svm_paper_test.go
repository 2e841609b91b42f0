package svm

import (
	"bufio"
	"compress/gzip"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/algotest/dataset"
)

// overlapping returns rows of two classes that no plane separates.
func overlapping(n, d int, seed uint64) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(seed, 7))
	for range n {
		label := float64(2*r.IntN(2) - 1)
		row := make([]float64, d)
		for j := range row {
			row[j] = r.NormFloat64() + 0.5*label
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y
}

// primal computes P(w) from its definition.
func primal(x [][]float64, y, weight, w []float64, b, bias, c float64) float64 {
	sum := 0.0
	for _, v := range w {
		sum += v * v / 2
	}
	if bias != 0 {
		sum += b * b / bias / bias / 2
	}
	for i, row := range x {
		z := b
		for j, v := range row {
			z += w[j] * v
		}
		u := c
		if weight != nil {
			u *= weight[i]
		}
		sum += u * math.Max(0, 1-y[i]*z)
	}
	return sum
}

// P and D of the report are those of the definitions, at a point that is feasible, and
// the gap is as small as asked. This certifies the optimum: no other w is better by more.
func TestDualityGap(t *testing.T) {
	x, y := overlapping(300, 6, 1)
	weight := make([]float64, len(x))
	for i := range weight {
		weight[i] = float64(i % 4)
	}
	for _, cfg := range []Config{{}, {C: 100, Bias: 1}, {C: 1e-3, Bias: 2}, {C: 10, Gap: 1e-10, Seed: 3}} {
		for _, weight := range [][]float64{nil, weight} {
			m, r, err := Fit(t.Context(), cfg, DenseRows(x), y, weight)
			if err != nil {
				t.Fatal(err)
			}
			c, gap := cfg.withDefaults().C, cfg.withDefaults().Gap
			w, b := m.Weights()
			if p := primal(x, y, weight, w, b, cfg.Bias, c); math.Abs(p-r.Primal) > 1e-9*p {
				t.Errorf("%+v: P is %v, by its definition %v", cfg, r.Primal, p)
			}
			sum, square := 0.0, 0.0
			dual := make([]float64, len(w)+1)
			for i, a := range r.Alpha {
				u := c
				if weight != nil {
					u *= weight[i]
				}
				if a < 0 || a > u {
					t.Fatalf("%+v: α of row %d is %v, outside [0, %v]", cfg, i, a, u)
				}
				sum += a
				for j, v := range append(slices.Clone(x[i]), cfg.Bias) {
					dual[j] += a * y[i] * v
				}
			}
			for _, v := range dual {
				square += v * v
			}
			if d := sum - square/2; math.Abs(d-r.Dual) > 1e-9*(1+math.Abs(d)) {
				t.Errorf("%+v: D is %v, by its definition %v", cfg, r.Dual, d)
			}
			if r.Gap() > gap*max(r.Primal, 1) || r.Gap() < -1e-9*max(r.Primal, 1) {
				t.Errorf("%+v: the gap is %v of %v after %d passes", cfg, r.Gap(), r.Primal, r.Passes)
			}
			for range 20 { // no step away from w is better
				other := slices.Clone(w)
				for j := range other {
					other[j] += 0.01 * rand.NormFloat64()
				}
				if p := primal(x, y, weight, other, b, cfg.Bias, c); p < r.Dual {
					t.Errorf("%+v: P is %v elsewhere, below D = %v", cfg, p, r.Dual)
				}
			}
		}
	}
}

// Two points have a machine that can be found on paper. If C is small, α = C for both.
// If it is large, both margins are 1: with the bias column, α solves
// 11·α₊ − 3·α₋ = 1 and −3·α₊ + 3·α₋ = 1.
func TestTwoPoints(t *testing.T) {
	x, y := [][]float64{{3, 1}, {1, -1}}, []float64{1, -1}
	for _, c := range []struct{ c, plus, minus float64 }{{0.01, 0.01, 0.01}, {1e3, 6. / 24, 14. / 24}} {
		m, r, err := Fit(t.Context(), Config{C: c.c, Bias: 1, Gap: 1e-13}, DenseRows(x), y, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, b := m.Weights()
		got := []float64{r.Alpha[0], r.Alpha[1], w[0], w[1], b}
		want := []float64{c.plus, c.minus, 3*c.plus - c.minus, c.plus + c.minus, c.plus - c.minus}
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-6 {
				t.Errorf("C = %v: α, w, b are %v, want %v", c.c, got, want)
			}
		}
	}
}

// A weight of k is k equal rows, and a weight of 0 leaves the row out.
func TestWeightsRepeatRows(t *testing.T) {
	x, y := overlapping(80, 3, 2)
	weight := make([]float64, len(x))
	var many [][]float64
	var labels []float64
	for i := range x {
		weight[i] = float64(i % 3)
		for range i % 3 {
			many, labels = append(many, x[i]), append(labels, y[i])
		}
	}
	cfg := Config{C: 0.3, Bias: 1, Gap: 1e-11}
	a, ra, err := Fit(t.Context(), cfg, DenseRows(x), y, weight)
	if err != nil {
		t.Fatal(err)
	}
	b, rb, err := Fit(t.Context(), cfg, DenseRows(many), labels, nil)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(ra.Primal-rb.Primal) > 1e-9 {
		t.Errorf("P with weights is %v, with repeated rows %v", ra.Primal, rb.Primal)
	}
	for i, row := range x {
		if p, q := a.Decision(row), b.Decision(row); math.Abs(p-q) > 1e-4 {
			t.Errorf("row %d: f is %v with weights, %v with repeated rows", i, p, q)
		}
	}
}

// Flipped labels turn w round; the order of the columns and zeros change nothing.
func TestSymmetries(t *testing.T) {
	x, y := overlapping(60, 4, 3)
	cfg := Config{Bias: 1, Gap: 1e-12}
	fit := func(x *Rows, y []float64) *Linear {
		m, _, err := Fit(t.Context(), cfg, x, y, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := fit(DenseRows(x), y)
	flipped := make([]float64, len(y))
	turned := make([][]float64, len(x))
	for i := range y {
		flipped[i] = -y[i]
		turned[i] = []float64{x[i][3], x[i][2], 0, x[i][1], x[i][0]}
	}
	f, p := fit(DenseRows(x), flipped), fit(DenseRows(turned), y)
	for i, row := range x {
		z := m.Decision(row)
		if g := f.Decision(row); math.Abs(g+z) > 1e-5 {
			t.Errorf("row %d: f is %v, with flipped labels %v", i, z, g)
		}
		if g := p.Decision(turned[i]); math.Abs(g-z) > 1e-5 {
			t.Errorf("row %d: f is %v, with permuted columns %v", i, z, g)
		}
		if g := m.DecisionOf(DenseRows(x), i); g != z {
			t.Errorf("row %d: f is %v, of sparse rows %v", i, z, g)
		}
	}
}

// A kernel's machine is the linear one of the features that the kernel stands for. Rows
// of the Cholesky factor have the products K. The optima agree.
func TestKernelIsLinearInItsFeatures(t *testing.T) {
	x, y := overlapping(40, 2, 4)
	const width = 1.5
	n := len(x)
	k := mat.NewSymDense(n, nil)
	for i := range x {
		for j := range x {
			d0, d1 := x[i][0]-x[j][0], x[i][1]-x[j][1]
			k.SetSym(i, j, math.Exp(-(d0*d0+d1*d1)/2/width))
		}
		k.SetSym(i, i, 1+1e-9) // the smallest eigenvalues are below rounding
	}
	var factor mat.Cholesky
	if !factor.Factorize(k) {
		t.Fatal("the kernel has no Cholesky factor")
	}
	var l mat.TriDense
	factor.LTo(&l)
	features := make([][]float64, n)
	for i := range features {
		features[i] = mat.Row(nil, i, &l)
	}
	cfg := Config{C: 2, Bias: 0.7, Gap: 1e-9}
	m, rm, err := FitKernel(t.Context(), cfg, width, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	linear, rl, err := Fit(t.Context(), cfg, DenseRows(features), y, nil)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(rm.Primal-rl.Primal) > 1e-6*rl.Primal || rm.Gap() > 1e-9*rm.Primal {
		t.Errorf("P is %v with a gap of %v, in the features %v", rm.Primal, rm.Gap(), rl.Primal)
	}
	for i, row := range x {
		if got, want := m.Decision(row), linear.Decision(features[i]); math.Abs(got-want) > 1e-3 {
			t.Errorf("row %d: f is %v, in the features %v", i, got, want)
		}
	}
	if len(m.rows) != rm.Support || m.Label(x[0]) != math.Copysign(1, m.Decision(x[0])) {
		t.Errorf("%d rows are kept, %d have α > 0", len(m.rows), rm.Support)
	}
}

// A row of zeros has the loss 1 whatever w is; one class alone is no special case.
func TestDegenerateRows(t *testing.T) {
	m, r, err := Fit(t.Context(), Config{}, DenseRows([][]float64{{0, 0}, {1, 0}}), []float64{1, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w, _ := m.Weights(); w[0] != 1 || w[1] != 0 || r.Alpha[0] != 1 || r.Errors != 1 || r.Gap() != 0 {
		t.Errorf("w = %v, report %+v, want w = (1, 0), α = 1 for the empty row, a gap of 0", w, r)
	}
	if _, _, err := Fit(t.Context(), Config{}, DenseRows([][]float64{{1e200}}), []float64{1}, nil); err != ErrTooLarge {
		t.Errorf("rows of 10²⁰⁰: error %v, want %v", err, ErrTooLarge)
	}
	if _, _, err := Fit(t.Context(), Config{C: -1, Gap: math.NaN(), Passes: -1, Bias: math.Inf(1)}, NewRows(1), nil, nil); err == nil || strings.Count(err.Error(), "svm:") != 4 {
		t.Errorf("a wrong configuration: error %v, want one that names all four fields", err)
	}
}

// 50,000 sparse rows of 300 columns are fitted within seconds, to a small gap.
func TestSparse(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads 50,000 rows")
	}
	x, y := readW8a(t, "w8a/w8a.gz")
	start := time.Now()
	_, r, err := Fit(t.Context(), Config{Bias: 1, Gap: 1e-3}, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("w8a: %d rows, P %.3f, D %.3f, %d errors, %d support vectors, %d passes, %v",
		x.Len(), r.Primal, r.Dual, r.Errors, r.Support, r.Passes, time.Since(start).Round(time.Millisecond))
	if x.Len() != 49749 || r.Gap() > 1e-3*r.Primal {
		t.Errorf("%d rows, a gap of %v of %v", x.Len(), r.Gap(), r.Primal)
	}
}

func readW8a(t *testing.T, name string) (*Rows, []float64) {
	t.Helper()
	file, err := os.Open(dataset.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	x := NewRows(300)
	var y []float64
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		var index []int32
		var value []float64
		for k, field := range strings.Fields(lines.Text()) {
			if k == 0 {
				y = append(y, map[string]float64{"+1": 1, "-1": -1}[field])
				continue
			}
			j, err := strconv.Atoi(strings.TrimSuffix(field, ":1"))
			if err != nil {
				t.Fatal(err)
			}
			index, value = append(index, int32(j-1)), append(value, 1)
		}
		x.Add(index, value)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return x, y
}
