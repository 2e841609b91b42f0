package information_test

import (
	"fmt"

	"hamlet/algos/lab/information"
)

// What a word tells about spam. Rows: the mail is ham, spam; columns: the word is
// absent, present.
func Example() {
	j, err := information.NewJoint([][]float64{
		{0.58, 0.02},
		{0.22, 0.18},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("label %.3f bits, given the word %.3f: the word tells %.3f\n",
		j.EntropyY(), j.EntropyYGivenX(), j.MutualInformation())
	// The word's distribution in spam and in ham.
	spam, ham := []float64{0.55, 0.45}, []float64{0.58 / 0.6, 0.02 / 0.6}
	fmt.Printf("D(spam‖ham) = %.3f bits, BC = %.3f\n",
		information.Divergence(spam, ham), information.Bhattacharyya(spam, ham))
	// Output:
	// label 0.971 bits, given the word 0.773: the word tells 0.198
	// D(spam‖ham) = 1.242 bits, BC = 0.852
}
