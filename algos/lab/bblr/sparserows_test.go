package bblr

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/internal/sla"
)

// sparseSample returns rows of which about a tenth of the numbers are not 0, also as
// sparse rows, with noisy labels of a linear truth. Column 0 is always 0, column 1
// always 3.
func sparseSample(seed uint64, n, d int) (x [][]float64, rows []SparseRow, y []float64) {
	r := rand.New(rand.NewPCG(seed, 12))
	truth := make([]float64, d)
	for j := range truth {
		truth[j] = r.NormFloat64()
	}
	for range n {
		row, sum := make([]float64, d), 0.2*r.NormFloat64()
		row[1] = 3
		for j := 2; j < d; j++ {
			if r.IntN(10) == 0 {
				row[j] = float64(1 + r.IntN(3))
				sum += truth[j] * row[j]
			}
		}
		label := -1.0
		if sum > 0 {
			label = 1
		}
		x, rows, y = append(x, row), append(rows, sparseRow(row)), append(y, label)
	}
	return x, rows, y
}

func sparseRow(row []float64) (s SparseRow) {
	for j, v := range row {
		if v != 0 {
			s.Index, s.Value = append(s.Index, j), append(s.Value, v)
		}
	}
	return s
}

func sameNumbers(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for k, v := range want {
		if !(math.Abs(got[k]-v) <= 1e-12*(1+math.Abs(v))) {
			t.Fatalf("%s: %v at %d, want %v", what, got[k], k, v)
		}
	}
}

// A sparse design holds the numbers of the dense one, raw or standardised, and its
// sums are the dense ones'.
func TestSparseDesign(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	draw := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			if v[i] = r.NormFloat64(); r.IntN(4) == 0 {
				v[i] = 0
			}
		}
		return v
	}
	for _, raw := range []bool{true, false} {
		x, rows, _ := sparseSample(2, 101, 23)
		s := newSparse(23, rows)
		if !raw {
			scaling, err := sla.NewScaling(x)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.standardise()
			if err != nil {
				t.Fatal(err)
			}
			sameNumbers(t, "centers", got.Center, scaling.Center)
			sameNumbers(t, "inverse deviations", got.Inverse, scaling.Inverse)
			x = scaling.Rows(x, 1)
		}
		s.layColumns()
		m, n, d := sla.NewDense(x), len(x), len(x[0])
		compare := func(got, want sla.Design, n int) {
			for i := range n {
				sameNumbers(t, "row", got.Row(make([]float64, d), i), want.Row(nil, i))
			}
			for j := range d {
				sameNumbers(t, "column", got.Column(make([]float64, n), j), want.Column(nil, j))
			}
			w, scale := draw(d), draw(n)
			a, b := make([]float64, n), make([]float64, n)
			got.Products(a, w)
			want.Products(b, w)
			sameNumbers(t, "products", a, b)
			a, b = slices.Clone(w), slices.Clone(w)
			got.AddRows(a, scale)
			want.AddRows(b, scale)
			sameNumbers(t, "sum of rows", a, b)
		}
		compare(s, m, n)
		chosen := []int{0, 3, 4, 77, 100}
		compare(s.Part(chosen), m.Part(chosen), len(chosen))
	}
}

// Reference: the dense fit of the same rows, which ends where the sparse one ends.
func TestFitSparse(t *testing.T) {
	for _, raw := range []bool{true, false} {
		for _, v := range []Variant{BBLR1, BBLR2, BBLR3, BBLR4, Sigmoid, LR} {
			x, rows, y := sparseSample(3, 400, 20)
			cfg := Config{Variant: v, Raw: raw, Lambda: 0.1}
			want, wantReport, err := Fit(t.Context(), cfg, x, y, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, report, err := FitSparse(t.Context(), cfg, 20, rows, y, nil)
			if err != nil {
				t.Fatal(err)
			}
			// Steps in the last digits may lead to another of the local minima.
			if d := math.Abs(report.LossEnd - wantReport.LossEnd); !(d <= 0.03*wantReport.LossEnd) {
				t.Errorf("%v, raw %v: the loss ends at %v, dense at %v", v, raw, report.LossEnd, wantReport.LossEnd)
			}
			if d := math.Abs(report.LossStart - wantReport.LossStart); v < BBLR3 && !(d <= 1e-6*wantReport.LossStart) {
				t.Errorf("%v, raw %v: the loss starts at %v, dense at %v", v, raw, report.LossStart, wantReport.LossStart)
			}
			wrong := 0
			for i := range x {
				if got.Label(x[i]) != y[i] {
					wrong++
				}
			}
			if wrong != report.Errors {
				t.Errorf("%v, raw %v: %d rows are wrong, the report says %d", v, raw, wrong, report.Errors)
			}
			if got.Dim() != want.Dim() {
				t.Errorf("%v, raw %v: %d columns, want %d", v, raw, got.Dim(), want.Dim())
			}
		}
	}
}

// From 2²⁰ numbers on Fit is FitSparse to the bit, if three quarters are 0.
func TestFitFindsSparseRows(t *testing.T) {
	const n, d = 2048, 512
	x, rows, y := sparseSample(4, n, d)
	cfg := rebuildConfig(d)
	got, _, err := Fit(t.Context(), cfg, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := FitSparse(t.Context(), cfg, d, rows, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encode(t, got), encode(t, want)) {
		t.Error("the weights of Fit and FitSparse differ")
	}
	if sparseOf(x[1:]) != nil {
		t.Errorf("%d rows of %d count as sparse", n-1, d)
	}
	for _, row := range x {
		for j := range row[:d/4+1] {
			row[j] = 1
		}
	}
	if sparseOf(x) != nil {
		t.Error("rows of which more than a quarter is not 0 count as sparse")
	}
}

func TestFitSparseRefuses(t *testing.T) {
	good := SparseRow{[]int{0, 2}, []float64{1, 1}}
	for _, c := range []struct {
		columns int
		rows    []SparseRow
		y       []float64
		want    string
	}{
		{0, []SparseRow{good}, []float64{1}, "0 columns"},
		{3, nil, nil, "no data"},
		{2, []SparseRow{good}, []float64{1}, "row 0 has column 2 after 0"},
		{3, []SparseRow{good, {[]int{1, 1}, []float64{1, 1}}}, []float64{1, -1}, "row 1 has column 1 after 1"},
		{3, []SparseRow{{[]int{1}, []float64{math.Inf(1)}}}, []float64{1}, "row 0"},
		{3, []SparseRow{good}, []float64{2}, "label 0 is 2"},
		{3, []SparseRow{good}, []float64{1}, ErrOneClass.Error()},
		{3, []SparseRow{good, {[]int{0}, []float64{1e300}}}, []float64{1, -1}, "column 0 lies between 1 and 1e+300"},
	} {
		if _, _, err := FitSparse(t.Context(), Config{}, c.columns, c.rows, c.y, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d columns, %v: error %v, want one with %q", c.columns, c.rows, err, c.want)
		}
	}
}

// Probes of sparse columns find what probes in full find.
func TestProbesOfSparseColumns(t *testing.T) {
	const n, d = 150, 12
	found := 0
	for seed := range uint64(20) {
		_, rows, y := sparseSample(seed, n, d)
		s := newSparse(d, rows)
		s.layColumns()
		c := curveOf(Counts(1, 1, 100))
		if seed%2 == 1 {
			c = sla.SigmoidCurve(1)
		}
		c.Gamma = 20
		o := sla.NewObjective(sla.ProblemOf(s, n, d, y, nil), c, 1e-3)
		p := sla.NewProber(o, 1e-3)
		w := make([]float64, d)
		w[2] = 1
		for range 10 {
			value, want := o.Value(w), slices.Clone(w)
			wantOK := plainImprove(o, want, value, 4, 0.2, 1e-3)
			ok, err := p.Improve(t.Context(), w, value, 4, 0.2, 1e-3)
			if err != nil {
				t.Fatal(err)
			}
			if ok != wantOK || !slices.Equal(w, want) {
				t.Fatalf("seed %d: %v %v, in full %v %v", seed, ok, w, wantOK, want)
			}
			if !ok {
				break
			}
			found++
		}
	}
	if found < 50 {
		t.Errorf("only %d probes improved", found)
	}
}
