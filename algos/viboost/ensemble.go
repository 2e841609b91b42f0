package viboost

import (
	"fmt"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// An Ensemble is the result of VIBoost: the noise of the labels, and H(x) = Σ αₜhₜ(x), the
// log-odds that the true label of x is +1. Only UnmarshalBinary changes it.
type Ensemble struct {
	dim        int
	terms      []Term
	omega, eta [2]float64
}

// A Term is a stump of polarity +1 and its weight.
type Term struct {
	Stump boost.Stump
	Alpha float64
}

// Ensemble returns the result of the rounds so far.
func (b *Booster) Ensemble() *Ensemble {
	e := &Ensemble{dim: b.data.Dim(), terms: make([]Term, 0, len(b.log)), omega: b.stage.Omega, eta: b.stage.Eta}
	for _, r := range b.log {
		e.terms = append(e.terms, Term{Stump: r.Stump, Alpha: r.Alpha})
	}
	return e
}

// NewEnsemble returns the sum of terms over dim inputs, with the ω and η of the labels.
func NewEnsemble(dim int, terms []Term, omega, eta [2]float64) *Ensemble {
	return &Ensemble{dim: dim, terms: terms, omega: omega, eta: eta}
}

// Dim returns the number of inputs D.
func (e *Ensemble) Dim() int { return e.dim }

// Len returns the number of terms.
func (e *Ensemble) Len() int { return len(e.terms) }

// Terms returns the stumps and their weights in the order of the rounds.
func (e *Ensemble) Terms() []Term { return slices.Clone(e.terms) }

// LogOdds returns H(x) in nats, summed in the order of the rounds; 0 without any.
// It panics if len(x) ≠ D. A NaN in x is below every threshold.
func (e *Ensemble) LogOdds(x []float64) float64 {
	if len(x) != e.dim {
		panic(fmt.Sprintf("viboost: a vector of length %d for %d inputs", len(x), e.dim))
	}
	H := 0.0
	for i := range e.terms {
		H += float64(e.terms[i].Alpha * e.terms[i].Stump.Value(x))
	}
	return H
}

// Prob returns σ(H(x)), the probability that the true label of x is +1. With τ = 1 it
// is too near ½.
func (e *Ensemble) Prob(x []float64) float64 { return logistic.Sigmoid(e.LogOdds(x)) }
