package poeboost_test

import (
	"math/rand/v2"

	"hamlet/algos/algotest/dataset"
)

// A set is one of the six of the paper's table 1 that are public.
type set struct {
	name  string
	table dataset.Table

	// The paper's table 2: test accuracy and mean test log likelihood.
	accuracy, likelihood float64
}

var sets = []set{
	{"ionosphere", dataset.Table{File: "ionosphere/ionosphere.data", Drop: []int{2}, Positive: dataset.Is("g")}, .85, -.41},
	{"breast cancer", dataset.Table{File: "wdbc/wdbc.data", Drop: []int{1}, Label: 2, Positive: dataset.Is("M")}, .96, -.12},
	{"spambase", dataset.Table{File: "spambase/spambase.data", Positive: dataset.Is("1")}, .86, -.39},
	{"pima", dataset.Table{File: "pima/pima-indians-diabetes.data", Positive: dataset.Is("1")}, .73, -.56},
	{"letter", dataset.Table{File: "letter-ab/letter-ab.data", Label: 1, Positive: dataset.Is("A")}, .94, -.15},
	{"wine", dataset.Table{File: "wine-red/winequality-red.csv", Header: true, Positive: func(quality string) bool { return quality >= "5" }}, .96, -.16},
}

// split shuffles by seed and cuts off three quarters to learn from, as section 6
// does.
func split(x [][]float64, y []float64, seed uint64) (train, test [][]float64, yTrain, yTest []float64) {
	order := rand.New(rand.NewPCG(seed, 7)).Perm(len(x))
	n := len(x) * 3 / 4
	for k, i := range order {
		if k < n {
			train, yTrain = append(train, x[i]), append(yTrain, y[i])
		} else {
			test, yTest = append(test, x[i]), append(yTest, y[i])
		}
	}
	return train, test, yTrain, yTest
}
