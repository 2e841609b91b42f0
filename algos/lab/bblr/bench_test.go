package bblr

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"hamlet/algos/algotest/dataset"
)

// withBias returns the rows with a 1 behind each.
func withBias(x [][]float64) [][]float64 {
	rows := make([][]float64, len(x))
	for i, row := range x {
		rows[i] = append(append([]float64(nil), row...), 1)
	}
	return rows
}

// compare measures fit in units of logistic regressions by gonum's L-BFGS. The two
// take turns of about equal length, so other load on the machine slows both alike.
func compare(b *testing.B, rows [][]float64, y []float64, fit func() error) {
	regressions := func(n int) time.Duration {
		start := time.Now()
		for range n {
			gonumLogistic(b, rows, y, 1e-3, 1e-6)
		}
		return time.Since(start)
	}
	timed := func() time.Duration {
		start := time.Now()
		if err := fit(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	at := max(1, int(timed()/regressions(1)))
	var gonum, ours time.Duration
	least, n := time.Duration(math.MaxInt64), 0
	for b.Loop() {
		gonum += regressions(at)
		took := timed()
		ours, least = ours+took, min(least, took)
		n += at
	}
	b.ReportMetric(float64(ours)*float64(n)/float64(b.N)/float64(gonum), "×gonum")
	b.ReportMetric(float64(least.Microseconds())/1e3, "ms/fit")
}

// The cost of a fit of 500 rows and 60 columns. The rows are normals with labels of
// a linear truth, of which a tenth are flipped.
func BenchmarkFit(b *testing.B) {
	x, y := noisySample(1, 500, 60, 0.1)
	for _, v := range []Variant{BBLR1, BBLR2, Sigmoid, BBLR3, BBLR4} {
		b.Run(v.String(), func(b *testing.B) {
			compare(b, withBias(x), y, func() error {
				_, _, err := Fit(b.Context(), Config{Variant: v}, x, y, nil)
				return err
			})
		})
	}
}

// The cost of a fit to a window of 2,000 weighted rows of 60 columns.
func BenchmarkRebuild(b *testing.B) {
	x, y := noisySample(3, 2000, 60, 0.1)
	r := rand.New(rand.NewPCG(3, 4))
	weight := make([]float64, len(x))
	for i := range weight {
		weight[i] = 1 - 0.5*r.Float64()
	}
	for _, c := range []struct {
		name string
		cfg  Config
	}{{"zero", Config{}}, {"as Rebuild", rebuildConfig(60)}} {
		b.Run(c.name, func(b *testing.B) {
			compare(b, withBias(x), y, func() error {
				_, _, err := Fit(b.Context(), c.cfg, x, y, weight)
				return err
			})
		})
	}
}

// The cost of a kernel fit by the number of rows.
func BenchmarkFitKernel(b *testing.B) {
	for _, n := range []int{250, 500} {
		x, y := noisySample(1, n, 10, 0.1)
		for _, sparse := range []bool{false, true} {
			b.Run(fmt.Sprintf("n=%d/sparse=%v", n, sparse), func(b *testing.B) {
				for b.Loop() {
					if _, _, err := FitKernel(b.Context(), KernelConfig{Sparse: sparse}, x, y, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkLogOdds(b *testing.B) {
	x, y := noisySample(1, 500, 60, 0.1)
	m, _, err := Fit(b.Context(), Config{}, x, y, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.LogOdds(x[0])
	}
}

// The cost of a fit of w8a, 49,749 rows of 300 columns of which one number in 26 is
// not 0.
func BenchmarkFitSparse(b *testing.B) {
	x, y := w8a(b)
	for _, v := range []Variant{BBLR1, BBLR2, Sigmoid, BBLR3, BBLR4} {
		b.Run(v.String(), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := FitSparse(b.Context(), Config{Variant: v}, 300, x, y, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// w8a returns the training rows of w8a.
func w8a(t testing.TB) (x []SparseRow, y []float64) {
	f, err := os.Open(dataset.Path(t, "w8a/w8a.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(z); lines.Scan(); {
		label, rest, _ := strings.Cut(lines.Text(), " ")
		var row SparseRow
		for pair := range strings.FieldsSeq(rest) {
			column, _, _ := strings.Cut(pair, ":")
			j, err := strconv.Atoi(column)
			if err != nil {
				t.Fatal(err)
			}
			row.Index, row.Value = append(row.Index, j-1), append(row.Value, 1)
		}
		sign := -1.0
		if label == "+1" {
			sign = 1
		}
		x, y = append(x, row), append(y, sign)
	}
	return x, y
}
