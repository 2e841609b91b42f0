package bblr_test

import (
	"context"
	"fmt"

	"hamlet/algos/bblr"
)

// A hundred rows on a line and five far out with forged labels. Logistic regression
// would turn around for them; here they cost little.
func ExampleRebuild() {
	var x [][]float64
	var y []float64
	for i := 1; i <= 50; i++ {
		x, y = append(x, []float64{float64(i)}, []float64{float64(-i)}), append(y, 1, -1)
	}
	for range 5 {
		x, y = append(x, []float64{150}), append(y, -1)
	}

	m, err := bblr.Rebuild(context.Background(), x, y, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range []float64{-25, 25} {
		fmt.Printf("at %+.0f: %+.0f, p = %.2f\n", v, m.Label([]float64{v}), m.Prob([]float64{v}))
	}
	// Output:
	// at -25: -1, p = 0.29
	// at +25: +1, p = 0.69
}
