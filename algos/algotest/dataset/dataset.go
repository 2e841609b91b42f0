// Package dataset reads the public data sets, for tests alone: they lie in
// ../shared/data beside the checkout, and a test that needs one is skipped without it.
//
//	x, y := dataset.Table{File: "pima/pima-indians-diabetes.data", Positive: dataset.Is("1")}.Read(t)
//	dataset.SignedLog(x)
//	x, y = dataset.Shuffled(x, y, 1)
//
// Labels are ±1.
package dataset

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Path returns the path of a file or folder of the data sets.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
	path := filepath.Join(dir, "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the data set %s is not beside the checkout, in ../shared/data", name)
	}
	return path
}

// A Table is a file of numbers with a label, in columns that commas, semicolons or
// blanks separate. Columns count from 1.
type Table struct {
	File     string
	Header   bool                    // the first line names the columns
	Label    int                     // column of the label; 0 is the last
	Drop     []int                   // columns that are no inputs
	Positive func(label string) bool // reports the labels that are +1
}

// Is returns a Table's Positive for one label.
func Is(positive string) func(string) bool {
	return func(label string) bool { return label == positive }
}

// Read returns the rows and labels in the file's order, without rows that hold "?".
func (s Table) Read(t testing.TB) (x [][]float64, y []float64) {
	t.Helper()
	b, err := os.ReadFile(Path(t, s.File))
	if err != nil {
		t.Fatal(err)
	}
	separates := func(r rune) bool { return strings.ContainsRune(",; \t\r\n", r) }
	for line := range strings.Lines(string(b)) {
		if s.Header {
			s.Header = false
			continue
		}
		if strings.Contains(line, "?") {
			continue
		}
		fields := strings.FieldsFunc(line, separates)
		label := s.Label - 1
		if label < 0 {
			label = len(fields) - 1
		}
		row := make([]float64, 0, len(fields))
		for j, field := range fields {
			if j == label || slices.Contains(s.Drop, j+1) {
				continue
			}
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatalf("%s: %v", s.File, err)
			}
			row = append(row, v)
		}
		sign := -1.0
		if s.Positive(fields[label]) {
			sign = 1
		}
		x, y = append(x, row), append(y, sign)
	}
	return x, y
}

// Spambase returns the 4,601 rows of spambase in the file's order.
func Spambase(t testing.TB) (x [][]float64, y []float64) {
	t.Helper()
	return Table{File: "spambase/spambase.data", Positive: Is("1")}.Read(t)
}

// ShuffledSpambase returns spambase in a seeded order, values as sign(v)·ln(1+|v|).
func ShuffledSpambase(t testing.TB, seed uint64) (x [][]float64, y []float64) {
	t.Helper()
	x, y = Spambase(t)
	SignedLog(x)
	return Shuffled(x, y, seed)
}

// SignedLog replaces every value v by sign(v)·ln(1+|v|).
func SignedLog(x [][]float64) {
	for _, row := range x {
		for j, v := range row {
			row[j] = math.Copysign(math.Log1p(math.Abs(v)), v)
		}
	}
}

// Shuffled returns rows and labels in an order that is drawn from seed.
func Shuffled(x [][]float64, y []float64, seed uint64) (xs [][]float64, ys []float64) {
	for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(len(x)) {
		xs, ys = append(xs, x[i]), append(ys, y[i])
	}
	return xs, ys
}
