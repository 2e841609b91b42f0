package ensemble

import (
	"encoding"
	"fmt"

	"hamlet/algos/internal/logistic"
)

// An Ensemble is a function from inputs to log-odds that one booster made from a window.
// Only UnmarshalBinary changes it. It may be used concurrently. The zero value is good
// only for UnmarshalBinary.
type Ensemble struct {
	kind     Kind
	dim      int // Invariant: function.Dim(), 0 without a function
	function function
}

// A function is what the boosters' own ensembles have in common.
type function interface {
	Dim() int
	LogOdds(x []float64) float64
	encoding.BinaryAppender
}

// Kind returns what kind of ensemble e is, "" for the zero value.
func (e *Ensemble) Kind() Kind { return e.kind }

// Dim returns the number of inputs D, 0 for the zero value.
func (e *Ensemble) Dim() int { return e.dim }

// LogOdds returns the ensemble's log-odds of y = +1 in nats: finite for finite x.
// It allocates nothing and panics if len(x) ≠ D. VIBoost's are about half the true
// log-odds (τ = 1): a stacker must weight the ensembles.
func (e *Ensemble) LogOdds(x []float64) float64 {
	if len(x) != e.dim || e.function == nil {
		panic(fmt.Sprintf("ensemble: %d inputs for an ensemble of %d", len(x), e.dim))
	}
	return e.function.LogOdds(x)
}

// Prob returns σ(LogOdds(x)), the ensemble's own probability of y = +1, in [0, 1].
// It panics if len(x) ≠ D.
func (e *Ensemble) Prob(x []float64) float64 { return logistic.Sigmoid(e.LogOdds(x)) }
