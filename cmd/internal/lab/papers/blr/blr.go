// Laboratory: the experiments of one source.

// Package blr computes the claims of J. Drugowitsch, Bayesian logistic regression, again.
//
// The source prints equations, and has no tables or figures. What its text says is
// stated as bounds on what the run computes. The text names no data. Where a title does
// not say otherwise, rows are drawn as drawn does it: a constant 1, Gaussian inputs, and
// weights from the prior.
package blr

import (
	"fmt"
	"math"
	"math/rand/v2"

	"hamlet/cmd/internal/lab/experiment"
)

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{sigmoidBound, batch, evidence, hyperprior, predictive, ard, incremental, sites}
}

// Shape and rate of the hyperprior in the author's scripts. The text has none.
const a0, b0 = 1e-2, 1e-4

// printedRule is the relative change of the bound at which the scripts stop.
const printedRule = 1e-5

// printedIterations is how many iterations the text allows.
const printedIterations = 100

// weights draws d weights from N(0, 1/α).
func weights(rng *rand.Rand, d int, α float64) []float64 {
	w := make([]float64, d)
	for j := range w {
		w[j] = rng.NormFloat64() / math.Sqrt(α)
	}
	return w
}

// drawn draws n rows of a constant 1 and standard normal inputs, and labels ±1 of the
// logistic model with weights w.
func drawn(rng *rand.Rand, w []float64, n int) (x [][]float64, y []float64) {
	for range n {
		row := []float64{1}
		for range w[1:] {
			row = append(row, rng.NormFloat64())
		}
		label := -1.0
		if rng.Float64() < sigma(dot(w, row)) {
			label = 1
		}
		x, y = append(x, row), append(y, label)
	}
	return x, y
}

// mixed draws as drawn does, with weights from N(0, 1/α), until no threshold on a single
// input separates the labels, nor are all labels equal. With one or two weights the
// posterior then has light tails.
func mixed(rng *rand.Rand, d, n int, α float64) (x [][]float64, y []float64) {
	for {
		x, y = drawn(rng, weights(rng, d, α), n)
		if overlap(x, y) {
			return x, y
		}
	}
}

// overlap reports whether each class has a value of the last input within the other's
// range. Of a constant input that means that both classes occur.
func overlap(x [][]float64, y []float64) bool {
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for i, row := range x {
		class, v := 0, row[len(row)-1]
		if y[i] > 0 {
			class = 1
		}
		lo[class], hi[class] = min(lo[class], v), max(hi[class], v)
	}
	return lo[0] <= hi[1] && lo[1] <= hi[0]
}

func sigma(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// logSigma returns ln σ(z).
func logSigma(z float64) float64 { return min(z, 0) - math.Log1p(math.Exp(-math.Abs(z))) }

func dot(a, b []float64) float64 {
	sum := 0.0
	for j := range a {
		sum += a[j] * b[j]
	}
	return sum
}

// apart returns the largest difference of two vectors' entries.
func apart(a, b []float64) float64 {
	most := 0.0
	for j := range a {
		most = max(most, math.Abs(a[j]-b[j]))
	}
	return most
}

// atMostZero adds a row for a number that the source says is at most 0, such as the size of
// a difference of equal quantities. The slack is for rounding errors alone.
func atMostZero(p *experiment.Report, group, what string, v experiment.Statistic, slack float64) {
	p.AtMost(group, what, v, "0").Slack = slack
}

func of(d, n int) string { return fmt.Sprintf("%d weights, %d rows", d, n) }
