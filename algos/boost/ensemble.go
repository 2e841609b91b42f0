package boost

import (
	"fmt"
	"slices"

	"hamlet/algos/internal/logistic"
)

// An Ensemble is a sum of weak hypotheses with real values,
//
//	f(x) = Σ h(x),   P(y=+1 | x) = 1/(1+e^(−2f(x))),
//
// the probability of boosting with the exponential and the logistic cost (slides,
// 37). It never changes and may be used concurrently.
type Ensemble struct {
	dim      int
	trees    []Tree
	profiles []Profile
	grove    grove // of LogitTrees
}

// NewEnsemble returns the sum of trees over dim inputs.
func NewEnsemble(dim int, trees []Tree) *Ensemble { return &Ensemble{dim: dim, trees: trees} }

// Dim returns the number of inputs D.
func (e *Ensemble) Dim() int { return e.dim }

// Len returns the number of weak hypotheses.
func (e *Ensemble) Len() int { return len(e.trees) + len(e.profiles) + e.grove.len() }

// Trees returns the hypotheses that are trees. Stumps are trees of depth 1 with
// leaves ±α.
func (e *Ensemble) Trees() []Tree { return slices.Clone(e.trees) }

// Profiles returns the hypotheses that are binned scores.
func (e *Ensemble) Profiles() []Profile { return slices.Clone(e.profiles) }

// Grown returns the leaves of each tree of LogitTrees, which the caller must not change.
func (e *Ensemble) Grown() [][]float64 {
	return slices.Collect(slices.Chunk(e.grove.leaves, max(1, 1<<e.grove.depth)))
}

// F returns f(x), summed in the order of the rounds; 0 for an empty ensemble. It
// panics if len(x) ≠ D. A NaN in x is below every threshold.
func (e *Ensemble) F(x []float64) float64 {
	if len(x) != e.dim {
		panic(fmt.Sprintf("boost: a vector of length %d for %d inputs", len(x), e.dim))
	}
	f := 0.0
	for i := range e.trees {
		f += e.trees[i].Value(x)
	}
	for i := range e.profiles {
		f += e.profiles[i].Value(x)
	}
	return f + e.grove.f(x)
}

// LogOdds returns 2f(x), the log-odds of y = +1 in nats.
func (e *Ensemble) LogOdds(x []float64) float64 { return 2 * e.F(x) }

// Prob returns the probability of y = +1.
func (e *Ensemble) Prob(x []float64) float64 { return logistic.Sigmoid(2 * e.F(x)) }
