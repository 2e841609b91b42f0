package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// weightedFits are all ways to fit weighted rows: an algorithm and its further fields.
var weightedFits = []struct {
	algorithm string
	fields    string
	relative  bool // only proportions of weights count

	// counts is what counts rows and not weights, so that a weight of k is not k rows.
	counts string
}{
	{"adaboost", ``, true, ""},
	{"anyboost", ``, true, ""},
	{"anyboost", `,"cost":"logit"`, true, ""},
	{"anyboost", `,"cost":"tanh","step":"theorem"`, true, ""},
	{"bhboost", `,"rounds":3`, true, "the smoothing 1/(N·bins)"},
	{"realadaboost", ``, true, "the smoothing 1/N"},
	{"realadaboost", `,"smoothing":0.01`, true, ""},
	{"realadaboost", `,"learner":"logistic"`, true, "the standardisation"},
	{"realadaboost", `,"learner":"logistic","fitted":"newton","criterion":"z"`, true, "the standardisation, by the penalty"},
	{"poeboost.ds", ``, true, ""},
	{"poeboost.ds", `,"half_alpha":true`, true, ""},
	{"poeboost.cs", ``, true, "the standardisation"},
	{"poeboost.cs", `,"learner":"newton"`, true, "the standardisation"},
	{"viboost", ``, false, ""},
	{"viboost", `,"stop":"elbo","mode":"mixed","type_update":"exact"`, false, ""},
	{"bblr.fit", ``, false, ""},
	{"bblr.fit", `,"variant":2`, false, ""},
	{"bblr.fit", `,"variant":"sigmoid"`, false, ""},
	{"bblr.fit", `,"variant":3`, false, "the held-out fifth"},
	{"bblr.fit", `,"variant":"kernel"`, false, "the coefficients"},
	{"blr.batch", ``, false, ""},
	{"blr.ard", ``, false, ""},
	{"blr.incremental", ``, false, "the sites"},
	{"blr.incremental", `,"site":"rvga"`, false, "the sites"},
	{"blr.merge", `,"cuts":[]`, false, "the sites"},
	{"blr.unlearn", `,"forget":[]`, false, "the sites"},
}

// weightedRows draws rows with labels of a noisy rule, and weights 1 and 2.
func weightedRows() (x [][]float64, y, ω []float64) {
	r := rand.New(rand.NewPCG(41, 1))
	for i := range 36 {
		row := []float64{math.Round(1000*r.NormFloat64()) / 500, math.Round(1000*r.NormFloat64()) / 500, 1}
		label := -1.0
		if row[0]-0.6*row[1]+0.8*r.NormFloat64() > 0 {
			label = 1
		}
		x, y, ω = append(x, row), append(y, label), append(ω, float64(1+i%2))
	}
	return x, y, ω
}

// Laws of sample weights: equal ones are none, and a weight of k is a row that stands
// there k times, unless the algorithm counts rows. In that case the replies differ: the
// exception is a real one.
func TestWeights(t *testing.T) {
	x, y, ω := weightedRows()
	var twice [][]float64
	var labels []float64
	for i, k := range ω {
		for range int(k) {
			twice, labels = append(twice, x[i]), append(labels, y[i])
		}
	}
	tests := [][]float64{{0, 0, 1}, {1, -1, 1}, {-0.5, 0.25, 1}, {2, 2, 1}}
	known := map[string]bool{}
	for _, f := range weightedFits {
		known[f.algorithm] = true
		t.Run(f.algorithm+f.fields, func(t *testing.T) {
			fit := func(x [][]float64, y, ω []float64) string {
				line := requestLine(t, f.algorithm, "x", x, "y", y, "x_test", tests)
				line = line[:len(line)-1] + f.fields
				if ω != nil {
					b, err := json.Marshal(ω)
					if err != nil {
						t.Fatal(err)
					}
					line += fmt.Sprintf(`,"weights":%s`, b)
				}
				text, failed := ask(t, line+"}")
				if failed {
					t.Fatal(text)
				}
				return text
			}
			none := fit(x, y, nil)
			equal := []float64{1}
			if f.relative {
				equal = []float64{1, 0.3, 7}
			}
			for _, v := range equal {
				if got := fit(x, y, slices.Repeat([]float64{v}, len(y))); got != none {
					t.Errorf("weights of %v each:\n got %s\nwant %s", v, got, none)
				}
			}
			weighted, repeated := fit(x, y, ω), fit(twice, labels, nil)
			if weighted == none {
				t.Error("the weights change nothing")
			}
			p, q := testsOf(t, weighted), testsOf(t, repeated)
			furthest := 0.0
			for i := range p {
				furthest = max(furthest, math.Abs(p[i]-q[i]))
			}
			switch {
			case f.counts == "" && furthest > 1e-7:
				t.Errorf("p_test %v by weights, %v by repeated rows", p, q)
			case f.counts != "" && furthest < 1e-10:
				t.Errorf("p_test differ by %v: are weights an exception because of %s?", furthest, f.counts)
			}
		})
	}
	for name, a := range algorithms {
		if a.request.field("x") != nil && a.request.field("x_test") != nil && !known[name] {
			t.Errorf("%s learns from rows; it has no test of weights", name)
		}
	}
}

func testsOf(t *testing.T, reply string) []float64 {
	t.Helper()
	var r struct {
		P []float64 `json:"p_test"`
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(reply))).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r.P
}
