package bblr

import (
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/sla"
)

// A Likelihood is the generalised Beta–Bernoulli likelihood of a label given
// z = wᵀx (equations 16 to 22),
//
//	p(y = +1 | z) = μ = a + b·σ(γz),   p(y = −1 | z) = c + b·σ(−γz),
//	a = wθ,   b = 1−w,   c = 1−a−b = w(1−θ),
//
// w is the weight of the Beta prior in the mixture and θ the prior's mean. The code
// calls w Mix, because the paper also writes w for the coefficients. μ lies in [a,
// a+b].
type Likelihood struct {
	Mix   float64 // w, in [0, 1]; at 0 this is logistic regression
	Theta float64 // θ_B, in [0, 1]
	Gamma float64 // γ > 0, the steepness
}

// Counts returns the mixture of a Beta prior with pseudo counts α and β and n
// examples (equation 16): w = (α+β)/(α+β+n) and θ = α/(α+β). Without pseudo counts
// w is 0 and θ, which has no effect, is ½. All must be finite and not negative; if
// all are 0, w is NaN. γ is 1.
func Counts(α, β, n float64) Likelihood {
	if α+β+n > math.MaxFloat64 {
		α, β, n = α/4, β/4, n/4 // exact; no ratio changes
	}
	l := Likelihood{Mix: (α + β) / (α + β + n), Theta: 0.5, Gamma: 1}
	if α+β > 0 {
		l.Theta = α / (α + β)
	}
	return l
}

// A returns a = wθ, the least probability of +1.
func (l Likelihood) A() float64 { return float64(l.Mix * l.Theta) }

// B returns b = 1−w, the distance between the least and the largest probability.
func (l Likelihood) B() float64 { return 1 - l.Mix }

// C returns 1−a−b = w(1−θ), the least probability of −1, without cancellation.
func (l Likelihood) C() float64 { return float64(l.Mix * (1 - l.Theta)) }

// Prob returns p(y = +1 | z) = a + b·σ(γz).
func (l Likelihood) Prob(z float64) float64 {
	return min(l.A()+float64(l.B()*logistic.Sigmoid(float64(l.Gamma*z))), 1)
}

// LogOdds returns ln μ/(1−μ) at z in nats. It is monotone in z, between
// ln a/(1−a) and ln (a+b)/c, and 0 at z = 0 only if θ = ½.
func (l Likelihood) LogOdds(z float64) float64 {
	u := float64(l.Gamma * z)
	if l.Mix == 0 {
		return u
	}
	plus, minus := sla.NewSide(l.A(), l.B(), l.C()), sla.NewSide(l.C(), l.B(), l.A())
	up, _ := plus.At(u)
	down, _ := minus.At(-u)
	return down - up
}
