package ensemble

import (
	"encoding"
	"fmt"
	"slices"

	"hamlet/algos/internal/logistic"
)

// A Kind names a booster, as hamlet fit names it.
type Kind string

const (
	AnyBoost     Kind = "anyboost"     // the logistic cost over trees of depth 2, shrunk: boost.LogitTrees
	RealAdaBoost Kind = "realadaboost" // trees of depth 2, shrunk
	POEBoostDS   Kind = "poeboost.ds"  // stumps, with Qᵢ and the minimising P_e
	POEBoostCS   Kind = "poeboost.cs"  // univariate logistic regressions by Newton
	AdaBoost     Kind = "adaboost"     // stumps
	BHBoost      Kind = "bhboost"      // 16 quantile bins, shrunk
	VIBoost      Kind = "viboost"      // stumps
	BBLR         Kind = "bblr"         // linear, on standardised inputs
)

// kinds are all kinds in the documented order. A kind's place is its code in the
// bytes: new ones are appended.
var kinds = [...]Kind{AnyBoost, RealAdaBoost, POEBoostDS, POEBoostCS, AdaBoost, BHBoost, VIBoost, BBLR}

// Kinds returns all kinds, the default ensemble first.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// Valid reports whether k is one of Kinds.
func (k Kind) Valid() bool { return slices.Contains(kinds[:], k) }

// An Ensemble is one booster's answer to a window: a function from inputs to
// log-odds. It never changes, but by UnmarshalBinary, and may be used
// concurrently. The zero value knows nothing and is there to be unmarshalled into.
type Ensemble struct {
	kind     Kind
	dim      int
	function function
}

// A function is what the boosters' own ensembles have in common.
type function interface {
	LogOdds(x []float64) float64
	encoding.BinaryAppender
}

// Kind returns what kind of ensemble e is, "" for the zero value.
func (e *Ensemble) Kind() Kind { return e.kind }

// Dim returns the number of inputs D, 0 for the zero value.
func (e *Ensemble) Dim() int { return e.dim }

// LogOdds returns the ensemble's log-odds of y = +1 in nats: finite for finite x.
// It allocates nothing and panics if len(x) ≠ D. VIBoost's are about half of what
// they should be (τ = 1); who joins ensembles weighs them anyway.
func (e *Ensemble) LogOdds(x []float64) float64 {
	if len(x) != e.dim || e.function == nil {
		panic(fmt.Sprintf("ensemble: %d inputs for an ensemble of %d", len(x), e.dim))
	}
	return e.function.LogOdds(x)
}

// Prob returns σ(LogOdds(x)), the ensemble's own probability of y = +1, in [0, 1].
// It panics if len(x) ≠ D.
func (e *Ensemble) Prob(x []float64) float64 { return logistic.Sigmoid(e.LogOdds(x)) }
