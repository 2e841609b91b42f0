package bblr_test

import (
	"context"
	"fmt"

	"hamlet/algos/lab/bblr"
)

// Eight rows on a line and one far out with a forged label. Logistic regression
// would turn around for it; here it costs a constant.
func Example() {
	x := [][]float64{{-4}, {-3}, {-2}, {-1}, {1}, {2}, {3}, {4}, {30}}
	y := []float64{-1, -1, -1, -1, 1, 1, 1, 1, -1}

	m, report, err := bblr.Fit(context.Background(), bblr.Config{Variant: bblr.BBLR4}, x, y, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d error in %d rows\n", report.Errors, len(x))
	for _, v := range []float64{-1.5, 1.5} {
		fmt.Printf("at %+.1f: %+.0f, p = %.2f\n", v, m.Label([]float64{v}), m.Prob([]float64{v}))
	}
	// Output:
	// 1 error in 9 rows
	// at -1.5: -1, p = 0.00
	// at +1.5: +1, p = 0.80
}

// A disc of one label within the other needs a kernel, and few of its rows.
func Example_kernel() {
	var x [][]float64
	var y []float64
	for i := range 10 {
		for j := range 10 {
			u, v := float64(i)-4.5, float64(j)-4.5
			label := -1.0
			if u*u+v*v < 9 {
				label = 1
			}
			x, y = append(x, []float64{u, v}), append(y, label)
		}
	}
	m, report, err := bblr.FitKernel(context.Background(), bblr.KernelConfig{Sparse: true}, x, y, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, _ := m.Support()
	fmt.Printf("%d errors, %d of %d rows kept\n", report.Errors, len(rows), len(x))
	fmt.Printf("centre %+.0f, corner %+.0f\n", m.Label([]float64{0, 0}), m.Label([]float64{4, 4}))
	// Output:
	// 0 errors, 8 of 100 rows kept
	// centre +1, corner -1
}
