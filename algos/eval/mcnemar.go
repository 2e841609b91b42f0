// Laboratory: McNemar's test of two classifiers on the same examples.

package eval

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// A McNemar holds the examples on which two classifiers differ. If both err equally
// often, Only1 is binomial with n = Only1 + Only2 draws of probability ½ (McNemar 1947,
// "Note on the sampling error of the difference between correlated proportions or
// percentages", Psychometrika 12). Merge pools several test sets.
type McNemar struct {
	Only1 int // examples on which the first classifier alone errs
	Only2 int // examples on which the second alone errs
}

// Add counts an example.
func (m *McNemar) Add(wrong1, wrong2 bool) {
	switch {
	case wrong1 && !wrong2:
		m.Only1++
	case wrong2 && !wrong1:
		m.Only2++
	}
}

// Merge adds the examples of n, another test set.
func (m *McNemar) Merge(n McNemar) { m.Only1, m.Only2 = m.Only1+n.Only1, m.Only2+n.Only2 }

// Z returns (Only1 − Only2)/√n, without a continuity correction. It is positive if the
// first errs more often, about standard normal if they err equally often, and 0 if they
// never differ.
func (m McNemar) Z() float64 {
	n := m.Only1 + m.Only2
	if n == 0 {
		return 0
	}
	return float64(m.Only1-m.Only2) / math.Sqrt(float64(n))
}

// Exact returns the exact two-sided p-value: the probability of a split at least as
// uneven. It never exceeds the level of the test, and often stays far below it.
func (m McNemar) Exact() float64 {
	if m.Only1 == m.Only2 {
		return 1
	}
	return min(2*m.tail(), 1)
}

// MidP returns the two-sided mid-p-value: splits that are exactly as uneven count half
// (Fagerland, Lydersen and Laake 2013, "The McNemar test for binary matched-pairs data:
// mid-p and asymptotic are better than exact conditional", BMC Medical Research
// Methodology 13). It is less conservative than Exact and may exceed the level a little.
func (m McNemar) MidP() float64 {
	if m.Only1 == m.Only2 {
		return 1 - float64(0.5*m.mass())
	}
	return float64(2*m.tail()) - m.mass()
}

// tail returns P(K ≤ k) for the lesser count k, K ~ Binomial(n, ½): the regularised
// incomplete beta function I_½(n−k, k+1).
func (m McNemar) tail() float64 {
	k, n := float64(min(m.Only1, m.Only2)), float64(m.Only1+m.Only2)
	return mathext.RegIncBeta(n-k, k+1, 0.5)
}

// mass returns P(K = k), by log gamma functions.
func (m McNemar) mass() float64 {
	k, n := float64(m.Only1), float64(m.Only1+m.Only2)
	all, _ := math.Lgamma(n + 1)
	one, _ := math.Lgamma(k + 1)
	other, _ := math.Lgamma(n - k + 1)
	return math.Exp(all - one - other - float64(n*math.Ln2))
}
