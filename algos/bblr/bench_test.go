package bblr

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// The cost of a fit of 500 rows and 60 columns, as the multiple of logistic
// regression by gonum's L-BFGS on the same rows in the same run. The rows are
// normals with labels of a linear truth, of which a tenth are flipped.
func BenchmarkFit(b *testing.B) {
	x, y := noisySample(1, 500, 60, 0.1)
	rows := make([][]float64, len(x))
	for i, row := range x {
		rows[i] = append(append([]float64(nil), row...), 1)
	}
	for _, v := range []Variant{BBLR1, BBLR2, Sigmoid, BBLR3, BBLR4} {
		b.Run(v.String(), func(b *testing.B) {
			// The two take turns and the least of each counts: what else the machine does
			// must not fall on one of them.
			gonum, ours := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				start := time.Now()
				gonumLogistic(b, rows, y, 1e-3, 1e-6)
				middle := time.Now()
				if _, _, err := Fit(b.Context(), Config{Variant: v}, x, y, nil); err != nil {
					b.Fatal(err)
				}
				gonum, ours = min(gonum, middle.Sub(start)), min(ours, time.Since(middle))
			}
			b.ReportMetric(float64(ours)/float64(gonum), "×gonum")
			b.ReportMetric(float64(ours.Microseconds())/1e3, "ms/fit")
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
