package crf_test

import (
	"fmt"

	"hamlet/algos/lab/crf"
)

// One pixel in nine disagrees with its neighbours.
func Example() {
	g := crf.Grid(3, 3)
	f := crf.Field{Site: make([][2]float64, 9), Pair: make([][2][2]float64, len(g.Pairs()))}
	for i := range f.Site {
		f.Site[i] = [2]float64{0, -1} // +1 is cheaper by 1 nat
	}
	f.Site[4] = [2]float64{-2, 0}
	for l := range f.Pair {
		f.Pair[l] = [2][2]float64{{-0.8, 0}, {0, -0.8}} // equal labels are cheaper
	}
	fmt.Println("alone:", f.Site[4][0] < f.Site[4][1])
	fmt.Println("with its neighbours:", g.Argmin(&f)[4])
	fmt.Printf("P(+1) = %.2f\n", g.Marginals(&f).Site[4])
	// Output:
	// alone: true
	// with its neighbours: 1
	// P(+1) = 0.59
}
