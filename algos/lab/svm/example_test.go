package svm_test

import (
	"context"
	"fmt"

	"hamlet/algos/lab/svm"
)

func Example() {
	x := [][]float64{{2, 0}, {3, 1}, {-2, 0}, {-1, -1}}
	y := []float64{1, 1, -1, -1}
	m, report, err := svm.Fit(context.Background(), svm.Config{C: 10}, svm.DenseRows(x), y, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("f(1, 1) = %.2f, %d support vectors\n", m.Decision([]float64{1, 1}), report.Support)
	fmt.Println("the gap is small:", report.Gap() < 1e-6)
	// Output:
	// f(1, 1) = 1.00, 2 support vectors
	// the gap is small: true
}
