package viboost_test

import (
	"fmt"
	"math/rand/v2"

	"hamlet/algos/boost"
	"hamlet/algos/viboost"
)

// The noise watch: 250 rows of each class, as they are and with a tenth of the
// labels flipped. The signal-to-noise ratio tells; 1−φ, the doubt in a label, is
// larger for the flipped ones.
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
		e := b.Ensemble()
		phi := make([]float64, len(given))
		b.PhiTo(phi)
		var doubt, count [2]float64 // of labels that were flipped, and of the others
		for i := range given {
			k := 0
			if given[i] == y[i] {
				k = 1
			}
			doubt[k] += 1 - phi[i]
			count[k]++
		}
		fmt.Printf("%2.0f %% flipped: SNR %.1f, noise grade %+.2f, mean doubt in true labels %.4f", 100*share, e.SNR(), e.NoiseGrade(), doubt[1]/count[1])
		if count[0] > 0 {
			fmt.Printf(", in flipped ones %.4f", doubt[0]/count[0])
		}
		fmt.Println()
	}
	// Output:
	// 0 % flipped: SNR 358.6, noise grade -0.01, mean doubt in true labels 0.0008
	// 10 % flipped: SNR 242.7, noise grade +0.01, mean doubt in true labels 0.0018, in flipped ones 0.0048
}
