package bblr

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/lab/bblr"
	"hamlet/cmd/internal/lab/experiment"
)

// run computes an experiment on the sets of a folder.
func run(t *testing.T, folder string, e experiment.Experiment) *experiment.Result {
	t.Helper()
	n := experiment.Runner{Data: experiment.NewData(folder), Seed: 1, Cores: 2}
	outcomes, err := n.Run(t.Context(), []*experiment.Experiment{&e})
	if err != nil {
		t.Fatal(err)
	}
	return outcomes[0]
}

// row returns the row of an outcome with that name.
func row(t *testing.T, o *experiment.Result, group, what string) experiment.Row {
	t.Helper()
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	for _, r := range o.Report.Rows {
		if r.Group == group && r.What == what {
			return r
		}
	}
	t.Fatalf("%s has no row %q of %q", o.Name, what, group)
	return experiment.Row{}
}

// The figures need no data. The caption of figure 2 has a misprint, and no other row
// differs.
func TestFigures(t *testing.T) {
	for _, c := range []struct {
		e    experiment.Experiment
		want experiment.Count
	}{{figure2, experiment.Count{Reproduced: 7, NotReproduced: 1}}, {figure5, experiment.Count{Reproduced: 9}}} {
		o := run(t, t.TempDir(), c.e)
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		if got := o.Report.Count(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.e.Name, got, c.want)
		}
	}
	if r := row(t, run(t, t.TempDir(), figure2), "plateaus", "a"); r.Verdict != experiment.NotReproduced {
		t.Errorf("the misprinted a: %q", r.Verdict)
	}
}

// Reference: table 3, whose column LR is found exactly.
func TestTable3(t *testing.T) {
	o := run(t, dataset.Path(t, ""), table3)
	for set, want := range map[string]float64{"breast": 21, "heart": 39, "liver": 102, "pima": 167, "sum": 329} {
		if r := row(t, o, set, "LR"); r.Ours.Value != want || r.Verdict != experiment.Reproduced {
			t.Errorf("%s: LR makes %v errors (%s), want %v", set, r.Ours.Value, r.Verdict, want)
		}
	}
}

func TestFolds(t *testing.T) {
	var x [][]float64
	var y []float64
	for i := range 53 {
		x, y = append(x, []float64{float64(i)}), append(y, float64(2*(i%2)-1))
	}
	tested := map[float64]int{}
	count := 0
	for f := range folds(x, y, rand.New(rand.NewPCG(1, 1))) {
		count++
		if len(f.x)+len(f.test) != len(x) {
			t.Errorf("fold %d: %d and %d rows of %d", count, len(f.x), len(f.test), len(x))
		}
		for i, row := range f.test {
			tested[row[0]]++
			if f.testY[i] != y[int(row[0])] {
				t.Errorf("row %v has another row's label", row)
			}
		}
		noisy, changed := f.withNoise(rand.New(rand.NewPCG(2, 2))), 0
		for i, row := range noisy.x {
			if row[0] != f.x[i][0] {
				changed++
			}
		}
		if changed != len(f.x)/10 || !slices.Equal(noisy.y, f.y) {
			t.Errorf("fold %d: noise changed %d of %d rows", count, changed, len(f.x))
		}
	}
	if count != 5 || len(tested) != len(x) {
		t.Errorf("%d folds test %d of %d rows", count, len(tested), len(x))
	}
	for row, n := range tested {
		if n != 1 {
			t.Errorf("row %v is tested %d times", row, n)
		}
	}
}

// constant says one label of all rows.
type constant float64

func (c constant) Label([]float64) float64 { return float64(c) }

// The setting that errs least often wins; of equal ones the first.
func TestTuned(t *testing.T) {
	x, y := make([][]float64, 20), make([]float64, 20)
	for i := range x {
		x[i], y[i] = []float64{0}, 1
	}
	labels := []float64{-1, 1, 1}
	last := -1
	m := tuned("", len(labels), func(_ context.Context, setting int, rows [][]float64,
		_ []float64) (classifier, error) {
		if len(rows) == len(x) {
			last = setting
		}
		return constant(labels[setting]), nil
	})
	if _, err := m.fit(t.Context(), x, y, rand.New(rand.NewPCG(1, 1))); err != nil || last != 1 {
		t.Errorf("setting %d, %v; want 1", last, err)
	}
}

// b alone is wrong on 3, 4, 5 and 6, a alone on 1.
func TestMcNemar(t *testing.T) {
	a, b := []int{1, 2}, []int{2, 3, 4, 5, 6}
	if justA, justB := only(a, b); justA != 1 || justB != 4 {
		t.Errorf("%d and %d alone, want 1 and 4", justA, justB)
	}
	if got := mcNemar(a[1:], b); got != 2 {
		t.Errorf("z of 0 and 4 is %v, want 2", got)
	}
	if got := mcNemar(a, a); got != 0 {
		t.Errorf("z of equal errors is %v", got)
	}
}

// Sets of reviews in the documented form give both tables; without them an experiment says
// which file is missing.
func TestReviews(t *testing.T) {
	if o := run(t, t.TempDir(), table12); !isMissing(o.Err, "reviews/books.svm") {
		t.Errorf("without data: %v", o.Err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "reviews"), 0o755); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, d := range domains {
		var text strings.Builder
		for i := range 40 {
			sign, word := "+1", 1 // the word that only good reviews have
			if i%2 == 1 {
				sign, word = "-1", 2
			}
			fmt.Fprintf(&text, "%s %d:2 %d:1 %d:1\n", sign, word, 3+random.IntN(10), 13+random.IntN(10))
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(d.file)), []byte(text.String()),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := run(t, folder, table11)
	if r := row(t, o, "Books", "reviews"); r.Ours.Value != 40 || r.Verdict != experiment.NotReproduced {
		t.Errorf("%v reviews: %q", r.Ours.Value, r.Verdict)
	}
	o = run(t, folder, table12)
	for _, d := range domains {
		for _, method := range []string{"LR", "SVM", "BBLR3", "BBLR4"} {
			if r := row(t, o, d.name, method+", errors in percent"); r.Ours.Value != 0 ||
				r.Verdict != experiment.Better {
				t.Errorf("%s, %s errs %v %%: %q", d.name, method, r.Ours.Value, r.Verdict)
			}
		}
	}
}

func isMissing(err error, path string) bool {
	var missing *experiment.MissingError
	return errors.As(err, &missing) && strings.HasSuffix(filepath.ToSlash(missing.Path), path)
}

// A method errs on sparse rows as on the same rows written out.
func TestSparseMethods(t *testing.T) {
	s := sparseSet{columns: 3}
	random := rand.New(rand.NewPCG(3, 3))
	var x [][]float64
	for range 60 {
		row := []float64{float64(random.IntN(2)), float64(random.IntN(2)), float64(random.IntN(3))}
		var sparse bblr.SparseRow
		for j, v := range row {
			if v != 0 {
				sparse.Index, sparse.Value = append(sparse.Index, j), append(sparse.Value, v)
			}
		}
		label := -1.0
		if row[0]+row[2]-row[1]+random.NormFloat64() > 1 {
			label = 1
		}
		x, s.x, s.y = append(x, row), append(s.x, sparse), append(s.y, label)
	}
	m, err := sparseVariant("BBLR2", bblr.Config{}).fit(t.Context(), s, random)
	if err != nil {
		t.Fatal(err)
	}
	dense, _, err := bblr.Fit(t.Context(), bblr.Config{}, x, s.y, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(s.wrong(m)), (fold{test: x, testY: s.y}).errors(dense); got != want {
		t.Errorf("%d rows are wrong, dense %d", got, want)
	}
	if b := s.withBias(); b.columns != 4 || b.x[0].Index[len(b.x[0].Index)-1] != 3 ||
		len(b.x[0].Index) != len(s.x[0].Index)+1 {
		t.Errorf("with bias: %d columns, first row %v", b.columns, b.x[0])
	}
	train, test := s.split(random.Perm(60), 5, 2)
	if len(train.x) != 48 || len(test.x) != 12 || test.columns != 3 {
		t.Errorf("%d and %d rows of %d columns", len(train.x), len(test.x), test.columns)
	}
}

// The machine's margins meet the conditions of its optimum: at least 1 for rows that it
// does not keep, 1 for rows with 0 < α < C, and at most 1 for those with α = C.
func TestKernelMachine(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	var x [][]float64
	var y []float64
	for range 80 {
		row := []float64{random.NormFloat64(), 10 * random.NormFloat64(), 3}
		label := -1.0
		if row[0]*row[0]+row[1]*row[1]/100+0.3*random.NormFloat64() < 1.2 {
			label = 1
		}
		x, y = append(x, row), append(y, label)
	}
	const c = 2
	m, err := fitKernelMachine(t.Context(), c, x, y)
	if err != nil {
		t.Fatal(err)
	}
	if kept := m.report.Support; kept == 0 || kept == len(x) {
		t.Fatalf("%d of %d rows are kept", kept, len(x))
	}
	for i, row := range x {
		f := 0.0
		for k, α := range m.report.Alpha {
			f += α * y[k] * bblr.Kernel(m.row(row), m.row(x[k]), 3)
		}
		if label := m.Label(row); label*f < 0 {
			t.Errorf("row %d: f = %v, label %v", i, f, label)
		}
		const ε = 0.05
		margin, α := y[i]*f, m.report.Alpha[i]
		switch {
		case α == 0 && margin < 1-ε, α > 0 && α < c && (margin < 1-ε || margin > 1+ε), α == c && margin > 1+ε:
			t.Errorf("row %d: margin %v at α = %v", i, margin, α)
		}
	}
}
