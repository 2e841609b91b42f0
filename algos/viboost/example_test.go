package viboost_test

import (
	"fmt"
	"math/rand/v2"

	"hamlet/algos/boost"
	"hamlet/algos/viboost"
)

// The noise watch: 250 rows of each class, as they are and with a tenth of the
// labels flipped. The signal-to-noise ratio tells.
func Example() {
	r := rand.New(rand.NewPCG(1, 1))
	var x [][]float64
	var y []float64
	for i := range 500 {
		label := float64(2*(i%2) - 1)
		x = append(x, []float64{r.NormFloat64() + 2*label, r.NormFloat64() + label, r.NormFloat64()})
		y = append(y, label)
	}
	for _, share := range []float64{0, 0.1} {
		given := append([]float64(nil), y...)
		for i := range given {
			if r.Float64() < share {
				given[i] = -given[i]
			}
		}
		data, err := boost.Quantise(x, 64)
		if err != nil {
			fmt.Println(err)
			return
		}
		b, err := viboost.New(data, given, viboost.Config{Rounds: 10, Inner: 5})
		if err != nil {
			fmt.Println(err)
			return
		}
		for b.Round() {
		}
		last, _ := b.Last()
		fmt.Printf("%2.0f %% flipped: SNR %.1f, noise grade %+.2f\n", 100*share, last.SNR(), last.NoiseGrade())
	}
	// Output:
	// 0 % flipped: SNR 358.6, noise grade -0.01
	// 10 % flipped: SNR 242.7, noise grade +0.01
}
