package poeboost

import (
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// An Ensemble is a product of experts (1),
//
//	P(y | x, h₁…h_M) = ∏ P(y | x, h_j) / (∏ P(y | x, h_j) + ∏ P(ȳ | x, h_j)),
//
// whose log-odds are the sum of the experts' log-odds. Only UnmarshalBinary changes it.
type Ensemble struct {
	dim      int
	votes    []Vote    // of POEBoost.DS
	opinions []Opinion // of POEBoost.CS
}

// A Vote is an expert of POEBoost.DS with log-odds ±2α.
type Vote struct {
	Stump boost.Stump
	Alpha float64 // α ≥ 0
}

// An Opinion is an expert of POEBoost.CS: a hypothesis flipped with probability ErrorRate,
// P_e in (0, ½].
type Opinion struct {
	Univariate
	ErrorRate float64
}

// LogOdds returns the expert's log-odds of y = +1 in nats.
func (o *Opinion) LogOdds(x []float64) float64 {
	return expertLogOdds(o.Univariate.LogOdds(x), o.ErrorRate)
}

// Dim returns the number of inputs.
func (e *Ensemble) Dim() int { return e.dim }

// Len returns the number of experts.
func (e *Ensemble) Len() int { return len(e.votes) + len(e.opinions) }

// Votes returns the experts of POEBoost.DS in the order of their rounds.
func (e *Ensemble) Votes() []Vote { return slices.Clone(e.votes) }

// Opinions returns the experts of POEBoost.CS in the order of their rounds.
func (e *Ensemble) Opinions() []Opinion { return slices.Clone(e.opinions) }

// LogOdds returns the log-odds of y = +1 in nats, summed in the order of the
// rounds. They are finite for every x, and 0 without experts. A NaN in x is below every
// threshold of a vote, and the mean for an opinion. It panics if len(x) ≠ Dim.
func (e *Ensemble) LogOdds(x []float64) float64 {
	checkInputs(len(x), e.dim)
	f := 0.0
	for i := range e.votes {
		v := &e.votes[i]
		f += float64(2 * v.Alpha * v.Stump.Value(x))
	}
	for i := range e.opinions {
		f += e.opinions[i].LogOdds(x)
	}
	return f
}

// Prob returns P(y = +1 | x) of (24), σ of the log-odds.
func (e *Ensemble) Prob(x []float64) float64 { return logistic.Sigmoid(e.LogOdds(x)) }
