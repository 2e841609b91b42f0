package bblr

import (
	"math"

	"hamlet/algos/internal/logistic"
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
	plus, minus := l.side(1), l.side(-1)
	up, _ := plus.at(u)
	down, _ := minus.at(-u)
	return down - up
}

// A side is the loss of one label. At the margin v = yγz the label's probability is
// lo + b·σ(v), and the other label's is hi + b·σ(−v).
type side struct {
	lo, b, hi float64
	logB      float64 // ln b, used only where lo is 0
	sigmoid   bool    // the loss is σ(−v) instead

	flat      float64 // for |v| > flat the computed loss is high or low
	high, low float64 // the plateaus for v → −∞ and v → ∞
	cut       float64 // for |v| > cut the derivative is taken as 0
}

func (l Likelihood) side(y float64) side {
	s := side{lo: l.A(), b: l.B(), hi: l.C(), logB: logistic.Log(l.B()), flat: math.Inf(1), cut: math.Inf(1)}
	if y < 0 {
		s.lo, s.hi = s.hi, s.lo
	}
	return s
}

// levelOff sets flat, high and low. They save most logarithms when γ is large and
// change no bit: the plateaus begin where b·e^−|v|, added to lo or hi, rounds away.
// That is at 40 if both are of b's size and at 80 if they are 10¹⁷ times smaller;
// for smaller ones flat stays infinite.
func (s *side) levelOff() {
	for far := 40.0; far <= 80 && s.lo > 0; far += 10 {
		if least := float64(s.b * logistic.Exp(-far)); s.lo+least == s.lo && s.hi+least == s.hi {
			s.low, _ = s.at(far)
			s.high, _ = s.at(-far)
			s.flat = far
			return
		}
	}
}

// at returns the loss −ln(lo + b·σ(v)) and its derivative −b·σ(v)σ(−v)/(lo +
// b·σ(v)) by v. Neither loses digits or overflows. With lo = 0 the loss is −ln b −
// ln σ(v); with lo > 0 it is bounded; for p near 1 it is computed from 1−p.
func (s *side) at(v float64) (loss, slope float64) {
	switch {
	case v > s.cut:
		return s.low, 0
	case v < -s.cut:
		return s.high, 0
	}
	e := logistic.Exp(-math.Abs(v))
	big := 1 / (1 + e) // σ(|v|)
	small := e * big   // σ(−|v|)
	up, down := big, small
	if v < 0 {
		up, down = small, big
	}
	if s.sigmoid {
		return down, -float64(big * small)
	}
	p, q := s.lo+float64(s.b*up), s.hi+float64(s.b*down)
	switch {
	case v > s.flat:
		loss = s.low
	case v < -s.flat:
		loss = s.high
	case s.lo == 0 && v < 0:
		loss = -(v - logistic.Log1p(e)) - s.logB
	case q < 0.5:
		loss = -logistic.Log1p(-q)
	default:
		loss = -logistic.Log(p)
	}
	switch {
	case s.b == 0:
		slope = 0
	case s.lo == 0:
		slope = -down
	default:
		slope = -float64(s.b*up) / p * down
	}
	return loss, slope
}
