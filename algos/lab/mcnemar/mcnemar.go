// Package mcnemar is McNemar's test of two classifiers on the same examples.
//
//	var t mcnemar.Test
//	for i := range y {
//		t.Add(first[i] != y[i], second[i] != y[i])
//	}
//	p := t.MidP() // small: they do not err equally often
package mcnemar

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// A Test holds the examples on which two classifiers differ. If both err equally
// often, Only1 is binomial with n = Only1 + Only2 draws of probability ½ (McNemar 1947,
// "Note on the sampling error of the difference between correlated proportions or
// percentages", Psychometrika 12). Merge pools several test sets.
type Test struct {
	Only1 int // examples on which the first classifier alone errs
	Only2 int // examples on which the second alone errs
}

// Add counts an example.
func (t *Test) Add(wrong1, wrong2 bool) {
	switch {
	case wrong1 && !wrong2:
		t.Only1++
	case wrong2 && !wrong1:
		t.Only2++
	}
}

// Merge adds the examples of n, another test set.
func (t *Test) Merge(n Test) { t.Only1, t.Only2 = t.Only1+n.Only1, t.Only2+n.Only2 }

// Z returns (Only1 − Only2)/√n, without a continuity correction. It is positive if the
// first errs more often, about standard normal if they err equally often, and 0 if they
// never differ.
func (t Test) Z() float64 {
	n := t.Only1 + t.Only2
	if n == 0 {
		return 0
	}
	return float64(t.Only1-t.Only2) / math.Sqrt(float64(n))
}

// Exact returns the exact two-sided p-value: the probability of a split at least as
// uneven. It never exceeds the level of the test, and often stays far below it.
func (t Test) Exact() float64 {
	if t.Only1 == t.Only2 {
		return 1
	}
	return min(2*t.tail(), 1)
}

// MidP returns the two-sided mid-p-value: splits that are exactly as uneven count half
// (Fagerland, Lydersen and Laake 2013, "The McNemar test for binary matched-pairs data:
// mid-p and asymptotic are better than exact conditional", BMC Medical Research
// Methodology 13). It is less conservative than Exact and may exceed the level a little.
func (t Test) MidP() float64 {
	if t.Only1 == t.Only2 {
		return 1 - float64(0.5*t.mass())
	}
	return float64(2*t.tail()) - t.mass()
}

// tail returns P(K ≤ k) for the lesser count k, K ~ Binomial(n, ½): the regularised
// incomplete beta function I_½(n−k, k+1).
func (t Test) tail() float64 {
	k, n := float64(min(t.Only1, t.Only2)), float64(t.Only1+t.Only2)
	return mathext.RegIncBeta(n-k, k+1, 0.5)
}

// mass returns P(K = k), by log gamma functions.
func (t Test) mass() float64 {
	k, n := float64(t.Only1), float64(t.Only1+t.Only2)
	all, _ := math.Lgamma(n + 1)
	one, _ := math.Lgamma(k + 1)
	other, _ := math.Lgamma(n - k + 1)
	return math.Exp(all - one - other - float64(n*math.Ln2))
}
