package sla

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// A Curve is the loss as a function of the margin v = yγz. Each label has its own
// function, a side.
type Curve struct {
	Plus, Minus Side
	Gamma       float64
}

// NewCurve returns the losses −ln p of p(+1) = a + b·σ(γz) and p(−1) = c + b·σ(−γz).
func NewCurve(a, b, c, γ float64) Curve {
	l := Curve{Plus: NewSide(a, b, c), Minus: NewSide(c, b, a), Gamma: γ}
	l.Plus.levelOff()
	l.Minus.levelOff()
	return l
}

// Side returns the loss of the label y.
func (c *Curve) Side(y float64) *Side {
	if y > 0 {
		return &c.Plus
	}
	return &c.Minus
}

// A Side is the loss of one label. At the margin v = yγz the label's probability is
// lo + b·σ(v), and the other label's is hi + b·σ(−v).
type Side struct {
	Lo, B, hi float64
	logB      float64 // ln b, used only where lo is 0
	sigmoid   bool    // the loss is σ(−v) instead

	Flat      float64 // for |v| > flat the computed loss is high or low
	high, low float64 // the plateaus for v → −∞ and v → ∞
	Cut       float64 // for |v| > cut the derivative is taken as 0
}

// NewSide returns the loss −ln(lo + b·σ(v)).
func NewSide(lo, b, hi float64) Side {
	return Side{Lo: lo, B: b, hi: hi, logB: logistic.Log(b), Flat: math.Inf(1), Cut: math.Inf(1)}
}

// levelOff sets flat, high and low. They save most logarithms when γ is large and
// change no bit: the plateaus begin where b·e^−|v|, added to lo or hi, rounds away.
// That is at 40 if both are of b's size and at 80 if they are 10¹⁷ times smaller;
// for smaller ones flat stays infinite.
func (s *Side) levelOff() {
	for far := 40.0; far <= 80 && s.Lo > 0; far += 10 {
		if least := float64(s.B * logistic.Exp(-far)); s.Lo+least == s.Lo && s.hi+least == s.hi {
			s.low, _ = s.At(far)
			s.high, _ = s.At(-far)
			s.Flat = far
			return
		}
	}
}

// At returns the loss −ln(lo + b·σ(v)) and its derivative −b·σ(v)σ(−v)/(lo +
// b·σ(v)) by v. Neither loses digits or overflows. With lo = 0 the loss is −ln b −
// ln σ(v); with lo > 0 it is bounded; for p near 1 it is computed from 1−p.
func (s *Side) At(v float64) (loss, slope float64) {
	switch {
	case v > s.Cut:
		return s.low, 0
	case v < -s.Cut:
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
	p, q := s.Lo+float64(s.B*up), s.hi+float64(s.B*down)
	switch {
	case v > s.Flat:
		loss = s.low
	case v < -s.Flat:
		loss = s.high
	case s.Lo == 0 && v < 0:
		loss = -(v - logistic.Log1p(e)) - s.logB
	case q < 0.5:
		loss = -logistic.Log1p(-q)
	default:
		loss = -logistic.Log(p)
	}
	switch {
	case s.B == 0:
		slope = 0
	case s.Lo == 0:
		slope = -down
	default:
		slope = -float64(s.B*up) / p * down
	}
	return loss, slope
}

// SigmoidCurve is the loss of Nguyen and Sanner, σ(−v) (equation 10).
func SigmoidCurve(γ float64) Curve {
	s := Side{B: 1, sigmoid: true, Flat: math.Inf(1), Cut: math.Inf(1)}
	return Curve{Plus: s, Minus: s, Gamma: γ}
}
