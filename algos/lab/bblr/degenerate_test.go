package bblr

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/bblr"
	"hamlet/algos/internal/sla"
)

var variants = []Variant{BBLR1, BBLR2, BBLR3, BBLR4, Sigmoid}

// fits runs every kind of fit and hands each to check.
func fits(t *testing.T, x [][]float64, y, weight []float64, check func(name string, c classifier, r Report, err error)) {
	t.Helper()
	for _, v := range variants {
		for _, raw := range []bool{false, true} {
			m, r, err := Fit(t.Context(), Config{Variant: v, Raw: raw}, x, y, weight)
			name := v.String()
			if raw {
				name += ", raw"
			}
			check(name, m, r, err)
		}
	}
	for _, sparse := range []bool{false, true} {
		m, r, err := FitKernel(t.Context(), KernelConfig{Sparse: sparse}, x, y, weight)
		name := "kernel"
		if sparse {
			name = "sparse kernel"
		}
		check(name, m, r, err)
	}
}

// Whatever the rows look like, there is an answer without NaN, or a clear error.
func TestDegenerateRows(t *testing.T) {
	for name, c := range map[string]struct {
		x [][]float64
		y []float64
	}{
		"two rows":          {[][]float64{{1, 2}, {3, 4}}, []float64{1, -1}},
		"equal rows":        {[][]float64{{1, 2}, {1, 2}, {1, 2}, {1, 2}}, []float64{1, -1, 1, -1}},
		"zero rows":         {[][]float64{{0, 0}, {0, 0}, {0, 0}}, []float64{1, -1, 1}},
		"constant column":   {[][]float64{{7, 1}, {7, 2}, {7, 3}, {7, 4}, {7, 5}}, []float64{-1, -1, 1, -1, 1}},
		"constant, not 0.1": {[][]float64{{0.1}, {0.1}, {0.1}, {0.1}, {0.1}, {0.1}, {0.1}}, []float64{-1, -1, 1, -1, 1, 1, 1}},
		"separable":         {[][]float64{{-3}, {-2}, {-1}, {1}, {2}, {3}}, []float64{-1, -1, -1, 1, 1, 1}},
		"far apart":         {[][]float64{{-1e9}, {-2e9}, {1e9}, {1e-9}}, []float64{-1, -1, 1, 1}},
		"tiny":              {[][]float64{{1e-150}, {2e-150}, {3e-150}, {-1e-150}}, []float64{-1, 1, 1, -1}},
		"z of 800":          {[][]float64{{800, 1}, {-800, 1}, {799, 1}, {-801, 1}}, []float64{1, 1, -1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			fits(t, c.x, c.y, nil, func(kind string, m classifier, r Report, err error) {
				if err != nil {
					t.Errorf("%s: %v", kind, err)
					return
				}
				if !finite(r.LossStart, r.LossEnd, r.Lambda) || kind != "sparse kernel" && r.LossEnd > r.LossStart {
					t.Errorf("%s: report %+v", kind, r)
				}
				for _, row := range append(c.x, make([]float64, len(c.x[0]))) {
					if p, o := m.Prob(row), m.LogOdds(row); !(p >= 0 && p <= 1) || math.IsNaN(o) || math.IsNaN(m.Score(row)) {
						t.Errorf("%s: at %v p = %v, log-odds %v", kind, row, p, o)
					}
				}
			})
		})
	}
}

// Separable rows are separated.
func TestSeparableRowsAreSeparated(t *testing.T) {
	x := [][]float64{{-3, 1}, {-2, 0}, {-1, 1}, {1, 0}, {2, 1}, {3, 0}}
	y := []float64{-1, -1, -1, 1, 1, 1}
	fits(t, x, y, nil, func(kind string, m classifier, r Report, err error) {
		if err != nil || r.Errors != 0 {
			t.Errorf("%s: %d errors, %v", kind, r.Errors, err)
		}
	})
}

// Only a fixed prior can be fitted to one label; the others return ErrOneClass.
func TestOneClass(t *testing.T) {
	x := [][]float64{{1, 2}, {2, 1}, {0, 3}}
	for _, label := range []float64{1, -1} {
		fits(t, x, []float64{label, label, label}, nil, func(kind string, m classifier, r Report, err error) {
			if !strings.Contains(kind, "BBLR1") && !strings.Contains(kind, "sigmoid") {
				if !errors.Is(err, ErrOneClass) {
					t.Errorf("%s: %v", kind, err)
				}
				return
			}
			if err != nil || m.Label(x[0]) != label || !finite(r.LossEnd) {
				t.Errorf("%s: label %v of %v, report %+v, %v", kind, m.Label(x[0]), label, r, err)
			}
		})
	}
	// A label whose rows have weight 0 counts as missing.
	_, _, err := Fit(t.Context(), Config{}, x, []float64{1, 1, -1}, []float64{1, 1, 0})
	if !errors.Is(err, ErrOneClass) {
		t.Errorf("with weight 0: %v", err)
	}
}

// N = 1.
func TestOneRow(t *testing.T) {
	for _, raw := range []bool{false, true} {
		m, r, err := Fit(t.Context(), Config{Variant: BBLR1, Raw: raw}, [][]float64{{3, -1}}, []float64{-1}, nil)
		if err != nil || m.Label([]float64{3, -1}) != -1 || r.Errors != 0 {
			t.Errorf("raw %v: %+v, %v", raw, r, err)
		}
	}
}

// Errors in the data are all reported together.
func TestBadData(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	_, _, err := Fit(t.Context(), Config{}, [][]float64{{1, nan}, {inf, 2}, {1, 2}}, []float64{1, 0, nan}, []float64{1, -1, inf})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"row 0 has NaN", "row 1 has +Inf", "label 1 is 0", "label 2 is NaN", "weight 1 is -1", "weight 2 is +Inf"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not told in: %v", part, err)
		}
	}
	if _, _, err := Fit(t.Context(), Config{}, nil, nil, nil); err == nil {
		t.Error("no rows are accepted")
	}
	if _, _, err := FitKernel(t.Context(), KernelConfig{}, [][]float64{{}}, []float64{1}, nil); err == nil {
		t.Error("a row of nothing is accepted")
	}
	for _, v := range []float64{1e200, 1e308, -1e308} {
		fits(t, [][]float64{{v, 1}, {1, 2}, {-v / 2, 3}, {0, 4}}, []float64{1, -1, 1, -1}, nil, func(kind string, m classifier, r Report, err error) {
			if err == nil && !finite(r.LossStart, r.LossEnd, m.Score([]float64{1, 1})) {
				t.Errorf("%s with %v: report %+v without an error", kind, v, r)
			}
		})
	}
}

// Every bad field of a configuration is reported.
func TestBadConfig(t *testing.T) {
	err := Config{
		Variant: 9, Lambda: -1, Start: []float64{math.NaN()},
		Schedule: Schedule{Radius: -1, GammaGrowth: 1, RateShrink: 2, LossTolerance: math.NaN()},
	}.Check()
	for _, part := range []string{"Variant", "Lambda", "Start", "Radius", "GammaGrowth", "RateShrink", "LossTolerance"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s is not told in: %v", part, err)
		}
	}
	for what, cfg := range map[string]Config{
		"GammaMax":          {Schedule: Schedule{GammaMin: 3, GammaMax: 2}},
		"rates":             {Schedule: Schedule{RateShrink: 0.99, RateMin: 1e-300}},
		"RateMin":           {Schedule: Schedule{RateMin: 1}},
		"levels":            {Schedule: Schedule{GammaGrowth: math.Nextafter(1, 2)}},
		"steps":             {Schedule: Schedule{Spacing: 1e-300}},
		"steps, in the end": {Schedule: Schedule{GammaMax: 1e300, SpacingShrink: 1e-3, RadiusShrink: 1}},
		"Unpenalised":       {Lambda: 1, Unpenalised: true},
	} {
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), strings.Split(what, ",")[0]) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := (KernelConfig{Bandwidth: -1, Lambda: math.Inf(1)}).Check(); err == nil || !strings.Contains(err.Error(), "Bandwidth") {
		t.Errorf("bandwidth: %v", err)
	}
	if err := (Config{}).Check(); err != nil {
		t.Errorf("the zero configuration: %v", err)
	}
}

// Rows whose sums overflow get a score of the right sign. A column that was
// constant in the sample never matters.
func TestScoresFarOut(t *testing.T) {
	const far = math.MaxFloat64
	m := bblr.NewLinear([]float64{4, -4, 1e-300}, 1, Counts(1, 1, 100))
	for _, c := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{far, 0, 0}, far}, {[]float64{far, far, 0}, 0}, {[]float64{far / 2, far, far}, -far},
		{[]float64{0, 0, far}, 1 + 1e-300*far}, {[]float64{-far, -far / 2, 0}, -far},
	} {
		if got := m.Score(c.x); got != c.want {
			t.Errorf("the score at %v is %v, want %v", c.x, got, c.want)
		}
		if p, o := m.Prob(c.x), m.LogOdds(c.x); !(p >= 0 && p <= 1) || !finite(o) {
			t.Errorf("at %v p = %v, log-odds %v", c.x, p, o)
		}
	}
	x := [][]float64{{far, 1}, {far, 2}, {far, -1}, {far, -2}}
	k, _, err := FitKernel(t.Context(), KernelConfig{}, x, []float64{1, 1, -1, -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := k.Score([]float64{-far, 1}), k.Score(x[0]); got != want {
		t.Errorf("with another constant the score is %v, want %v", got, want)
	}
}

// A label whose rows have almost no weight still has rates.
func TestLabelOfLittleWeight(t *testing.T) {
	x, y := noisySample(3, 40, 2, 0.1)
	for _, light := range []float64{1e-3, 1e-9, 1e-300, math.SmallestNonzeroFloat64} {
		weight := make([]float64, len(x))
		for i := range weight {
			weight[i] = 1
			if y[i] < 0 {
				weight[i] = light
			}
		}
		p := sla.NewProblem(x, y, weight)
		if l := ratesOf(p, []float64{1, 1}, 1); !(l.Mix > 0 && l.Mix < 1 && l.Theta >= 0 && l.Theta <= 1) {
			t.Errorf("weights of %v: %+v", light, l)
		}
		fits(t, x, y, weight, func(kind string, m classifier, r Report, err error) {
			if err != nil || !finite(r.LossStart, r.LossEnd, m.LogOdds(x[0])) {
				t.Errorf("weights of %v, %s: report %+v, %v", light, kind, r, err)
			}
		})
	}
}

// rebuildConfig has Rebuild's constants, for rows of that many columns.
func rebuildConfig(columns int) Config {
	return Config{
		Lambda:   3,
		Start:    make([]float64, columns+1),
		Schedule: Schedule{GammaMin: 2, GammaMax: 2, LossTolerance: 1, GradientTolerance: 1e-3},
	}
}

// Rebuild is robust: forged labels on a tenth of the rows, far out, mislead
// logistic regression and cost Rebuild almost nothing.
func TestRebuildIsRobust(t *testing.T) {
	const n = 2000
	x, y := noisySample(n, n, 10, 0)
	rows, forged := slices.Clone(x), slices.Clone(y)
	for i := 0; i < n; i += 10 {
		rows[i], forged[i] = slices.Clone(x[i]), -y[i]
		for j := range rows[i] {
			rows[i][j] *= 10
		}
	}
	m, r, err := Fit(t.Context(), rebuildConfig(10), rows, forged, nil)
	if err != nil || !(r.LossEnd < r.LossStart) || m.Likelihood().Gamma != 2 {
		t.Fatalf("γ = %v, report %+v, %v", m.Likelihood().Gamma, r, err)
	}
	all := fold{test: x, testY: y}
	clean := all.errorsOn(logisticOf(t, x, y).Label)
	fooled := all.errorsOn(logisticOf(t, rows, forged).Label)
	got := all.errorsOn(m.Label)
	t.Logf("%d errors, logistic regression %d, without the forged rows %d", got, fooled, clean)
	if got > clean+n/50 || fooled < clean+n/5 {
		t.Errorf("%d errors, logistic regression %d, without the forged rows %d", got, fooled, clean)
	}
}

// Rebuild is Fit with the same constants, to the bit, and has its errors.
func TestRebuildIsAFit(t *testing.T) {
	for seed, scale := range []float64{1, 1e100, 1e160, 0} {
		x, y := noisySample(uint64(seed), 300, 8, 0.1)
		weight := make([]float64, len(x))
		for i, row := range x {
			weight[i] = float64(i % 5)
			for j := range row {
				row[j] *= scale
			}
		}
		if scale == 0 {
			y = slices.Repeat([]float64{1}, len(x))
		}
		want, _, wantErr := Fit(t.Context(), rebuildConfig(8), x, y, weight)
		got, err := bblr.Rebuild(t.Context(), x, y, weight)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("scale %v: error %v, want %v", scale, err, wantErr)
		}
		if err == nil && !bytes.Equal(encode(t, got), encode(t, want)) {
			t.Errorf("scale %v: %+v, want %+v", scale, got, want)
		}
	}
}

// A fit takes no more columns than its bytes.
func TestTooManyColumns(t *testing.T) {
	if _, _, err := Fit(t.Context(), Config{}, [][]float64{make([]float64, sla.MaxColumns+1)}, []float64{1}, nil); err == nil {
		t.Error("accepted")
	}
}

// Wrong lengths panic.
func TestWrongLengthsPanic(t *testing.T) {
	x, y := noisySample(1, 20, 2, 0.1)
	m, _, err := Fit(t.Context(), Config{}, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := FitKernel(t.Context(), KernelConfig{}, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(){
		"score":         func() { m.Score([]float64{1}) },
		"kernel score":  func() { k.Score([]float64{1}) },
		"labels":        func() { _, _, _ = Fit(t.Context(), Config{}, x, y[1:], nil) },
		"weights":       func() { _, _, _ = Fit(t.Context(), Config{}, x, y, y[1:]) },
		"rows":          func() { _, _, _ = Fit(t.Context(), Config{}, [][]float64{{1}, {1, 2}}, y[:2], nil) },
		"start":         func() { _, _, _ = Fit(t.Context(), Config{Start: []float64{1}}, x, y, nil) },
		"kernel start":  func() { _, _, _ = FitKernel(t.Context(), KernelConfig{Start: []float64{1}}, x, y, nil) },
		"gradient":      func() { GradientTo(make([]float64, 3), Counts(1, 1, 1), x, y, []float64{1, 2}, 0) },
		"prior":         func() { GaussLaplace{}.GradientTo(nil, []float64{1}) },
		"kernel vector": func() { Kernel([]float64{1}, nil, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// A row of weight k is that row k times, and one of weight 0 is not there.
func TestWeightsAreCopies(t *testing.T) {
	x, y := noisySample(8, 40, 3, 0.1)
	weight := make([]float64, len(x))
	var copies [][]float64
	var labels []float64
	for i := range x {
		weight[i] = float64(i % 3)
		for range i % 3 {
			copies, labels = append(copies, x[i]), append(labels, y[i])
		}
	}
	for _, v := range []Variant{BBLR1, BBLR2, Sigmoid} {
		m, _, err := Fit(t.Context(), Config{Variant: v, Raw: true}, x, y, weight)
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := Fit(t.Context(), Config{Variant: v, Raw: true}, copies, labels, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := m.Weights()
		want, _ := c.Weights()
		for j := range want {
			if math.Abs(got[j]-want[j]) > 1e-6*(1+math.Abs(want[j])) {
				t.Errorf("%v: weights %v, of copies %v", v, got, want)
			}
		}
	}
}

// Fits do not change their arguments; equal arguments give equal bytes.
func TestArgumentsAreUntouched(t *testing.T) {
	x, y := noisySample(9, 50, 3, 0.1)
	weight := make([]float64, len(x))
	for i := range weight {
		weight[i] = float64(1 + i%2)
	}
	wantX, wantY := noisySample(9, 50, 3, 0.1)
	start := []float64{1, -1, 0.5, 0}
	first, _, err := Fit(t.Context(), Config{Variant: BBLR4, Start: start}, x, y, weight)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := Fit(t.Context(), Config{Variant: BBLR4, Start: start}, x, y, weight)
	if err != nil {
		t.Fatal(err)
	}
	if string(encode(t, first)) != string(encode(t, second)) {
		t.Error("the second fit has other bytes")
	}
	if start[0] != 1 || start[1] != -1 || start[2] != 0.5 || start[3] != 0 {
		t.Errorf("the start is now %v", start)
	}
	for i := range x {
		for j := range x[i] {
			if x[i][j] != wantX[i][j] || y[i] != wantY[i] || weight[i] != float64(1+i%2) {
				t.Fatalf("row %d has changed", i)
			}
		}
	}
}
