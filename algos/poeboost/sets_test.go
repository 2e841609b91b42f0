package poeboost_test

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A set is one of the six of the paper's table 1 that are public.
type set struct {
	name      string
	file      string
	separator string
	header    bool
	drop      []int // columns that are no features, besides the label's
	label     int   // column of the label
	positive  func(label string) bool

	// The paper's table 2: test accuracy and mean test log likelihood.
	accuracy, likelihood float64
}

func is(positive string) func(string) bool {
	return func(label string) bool { return label == positive }
}

var sets = []set{
	{name: "ionosphere", file: "ionosphere/ionosphere.data", separator: ",", drop: []int{1}, label: 34, positive: is("g"), accuracy: .85, likelihood: -.41},
	{name: "breast cancer", file: "wdbc/wdbc.data", separator: ",", drop: []int{0}, label: 1, positive: is("M"), accuracy: .96, likelihood: -.12},
	{name: "spambase", file: "spambase/spambase.data", separator: ",", label: 57, positive: is("1"), accuracy: .86, likelihood: -.39},
	{name: "pima", file: "pima/pima-indians-diabetes.data", separator: ",", label: 8, positive: is("1"), accuracy: .73, likelihood: -.56},
	{name: "letter", file: "letter-ab/letter-ab.data", separator: ",", label: 0, positive: is("A"), accuracy: .94, likelihood: -.15},
	{name: "wine", file: "wine-red/winequality-red.csv", separator: ";", header: true, label: 11,
		positive: func(quality string) bool { return quality >= "5" }, accuracy: .96, likelihood: -.16},
}

// read returns the rows and labels of the set.
func (s *set) read(tb testing.TB) (x [][]float64, y []float64) {
	tb.Helper()
	root, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			tb.Fatal("no go.mod above the working directory")
		}
		root = filepath.Dir(root)
	}
	file, err := os.Open(filepath.Join(root, "..", "shared", "data", filepath.FromSlash(s.file)))
	if err != nil {
		tb.Skipf("the public data sets are not beside the checkout: %v", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	if s.header {
		lines.Scan()
	}
	for lines.Scan() {
		var row []float64
		label := ""
	fields:
		for j, field := range strings.Split(strings.TrimSpace(lines.Text()), s.separator) {
			if j == s.label {
				label = field
				continue
			}
			for _, d := range s.drop {
				if j == d {
					continue fields
				}
			}
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				tb.Fatal(err)
			}
			row = append(row, v)
		}
		x = append(x, row)
		if s.positive(label) {
			y = append(y, 1)
		} else {
			y = append(y, -1)
		}
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return x, y
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
