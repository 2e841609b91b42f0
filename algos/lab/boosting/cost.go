package boosting

import (
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// A Cost is a function C of the margin z = yf(x); AnyBoost lowers its mean. All
// fall with z, so −C′ > 0 and the weights D ∝ −C′ are positive.
type Cost uint8

const (
	ExpCost   Cost = iota // C = e^(−z): AdaBoost's
	LogitCost             // C = ln(1+e^(−2z)): the negative log likelihood of P = 1/(1+e^(−2f))
	TanhCost              // C = 1−tanh z: bounded, so examples with very negative margins lose weight
)

// String returns "exp", "logit" or "tanh".
func (c Cost) String() string {
	if c > TanhCost {
		return fmt.Sprintf("Cost(%d)", uint8(c))
	}
	return [...]string{"exp", "logit", "tanh"}[c]
}

// Value returns C(z). For ExpCost it is +Inf from z = −709.8 on.
func (c Cost) Value(z float64) float64 {
	switch c {
	case LogitCost:
		return -logistic.LogSigmoid(2 * z)
	case TanhCost:
		return 2 * logistic.Sigmoid(-2*z) // 1 − tanh z, without cancellation
	}
	return logistic.Exp(-z)
}

// Slope returns −C′(z), which is positive until it underflows to 0.
func (c Cost) Slope(z float64) float64 {
	switch c {
	case LogitCost:
		return 2 * logistic.Sigmoid(-2*z)
	case TanhCost: // sech²z = (1 − tanh z)(1 + tanh z)
		s := logistic.Sigmoid(-2 * math.Abs(z))
		return 4 * s * (1 - s)
	}
	return logistic.Exp(-z)
}

// Curvature returns max|C″|, the Lipschitz constant of C′. It is 1 for LogitCost,
// where C″ = 4σ(2z)σ(−2z). It is 4/√27 for TanhCost, where C″ = 2 tanh z·sech²z is
// greatest at tanh z = 1/√3. It is +Inf for ExpCost.
func (c Cost) Curvature() float64 {
	switch c {
	case LogitCost:
		return 1
	case TanhCost:
		return 0.76980035891950101
	}
	return math.Inf(1)
}
