package vi

import (
	"math"
	"slices"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// A Stage is the model of one round: H and h are given, and q(c)·q(ξ)·q(θ)·Πq(wₙ)
// approximates the posterior of the weight c of h, the noise grade ξ, the fraction θ of
// true labels and the types w.
type Stage struct {
	Mu0, Mu0Prime float64    // μ₀ and μ₀′ of the prior
	Zeta          [2]float64 // ζ of the prior
	Tau           float64    // τ of (17)

	Y      []float64 // labels ±1
	Weight []float64 // sample weights
	Before []float64 // H(xₙ) without h
	H      []float64 // h(xₙ), ±1

	Phi   []float64  // q(wₙ = 1), the probability that the label is true
	Omega [2]float64 // q(ξ) = v-Log([1,−1], 0, ω)
	Eta   [2]float64 // q(θ) = Beta(η)

	Signed []int64   // scratch of a search
	Scaled []float64 // scratch: the weights of a search
	tail   []float64 // e^(−τyH); −τyH itself if tails is false
	odds   []float64 // e^(−yH); nothing if plain is false
	tails  bool      // no e^(−τyH) is out of range
	plain  bool      // no e^(−yH) is
}

// NewStage returns the stage before the first round: H is 0, φ is 1, and all parameters of
// the prior and τ are 1. It keeps y and weight.
func NewStage(y, weight []float64) Stage {
	n := len(y)
	memory := make([]float64, 6*n)
	next := func() []float64 {
		v := memory[:n:n]
		memory = memory[n:]
		return v
	}
	s := Stage{
		Mu0: 1, Mu0Prime: 1, Zeta: [2]float64{1, 1}, Tau: 1, Y: y, Weight: weight, Eta: [2]float64{1, 1},
		Before: next(), H: next(), Phi: next(), Signed: make([]int64, n), Scaled: next(), tail: next(), odds: next(),
	}
	for i := range s.Phi {
		s.Phi[i] = 1
	}
	return s
}

// farthest is the largest exponent whose exponential is used directly. Sums of products of
// two exponentials over 2³⁰ rows stay finite.
const farthest = 300

// Exponents computes e^(−τyH) and e^(−yH) for the round.
func (s *Stage) Exponents() {
	largest := 0.0
	for _, H := range s.Before {
		largest = max(largest, math.Abs(H))
	}
	s.tails, s.plain = largest*s.Tau <= farthest, largest <= farthest
	for i, H := range s.Before {
		s.tail[i] = -float64(float64(s.Tau*s.Y[i]) * H)
		if s.tails {
			s.tail[i] = logistic.Exp(s.tail[i])
		}
	}
	switch {
	case s.plain && s.Tau == 1:
		copy(s.odds, s.tail)
	case s.plain:
		for i, H := range s.Before {
			s.odds[i] = logistic.Exp(-s.Y[i] * H)
		}
	}
}

// Choose returns the stump with the largest |mode|. The approximate mode rises with the
// weight wφe^(−τyH) of the rows that the stump gets right (103): the largest |edge| wins.
func (s *Stage) Choose(search *boost.Search) (boost.Candidate, bool) {
	if s.tails {
		for i, p := range s.Phi {
			s.Scaled[i] = float64(s.Weight[i]*p) * s.tail[i]
		}
	} else {
		s.logsTo(s.Scaled)
		largest := slices.Max(s.Scaled)
		for i, v := range s.Scaled {
			s.Scaled[i] = 0
			if v > math.Inf(-1) {
				s.Scaled[i] = logistic.Exp(v - largest)
			}
		}
	}
	boost.Fix(s.Signed, s.Scaled, s.Y)
	return search.Best(s.Signed)
}

// logsTo writes ln(wφe^(−τyH)) to dst, −Inf where φ or the weight is 0.
func (s *Stage) logsTo(dst []float64) {
	for i, p := range s.Phi {
		dst[i] = logistic.Log(s.Weight[i]*p) + s.tail[i]
	}
}

// Weigh returns the approximate mode of q(c) for the current φ,
// ln((μ₀+R)/(μ₀+W))/2τ, R and W the weights of the rows that h gets right and wrong
// (101).
func (s *Stage) Weigh() float64 {
	if s.tails {
		sums := [2]float64{s.Mu0, s.Mu0}
		for i, p := range s.Phi {
			sums[Index(s.Y[i]*s.H[i])] += float64(float64(s.Weight[i]*p) * s.tail[i])
		}
		return logistic.Log(sums[1]/sums[0]) / (2 * s.Tau)
	}
	s.logsTo(s.Scaled)
	logs := [2]float64{logistic.Log(s.Mu0), logistic.Log(s.Mu0)}
	for i, v := range s.Scaled {
		k := Index(s.Y[i] * s.H[i])
		logs[k] = logAdd(logs[k], v)
	}
	return (logs[1] - logs[0]) / (2 * s.Tau)
}

// logAdd returns ln(eᵃ + eᵇ) for a finite a; b may be −Inf.
func logAdd(a, b float64) float64 {
	return max(a, b) + logistic.Log1p(logistic.Exp(-math.Abs(a-b)))
}

// Noisy returns ω for the current φ (73, 74).
func (s *Stage) Noisy() [2]float64 {
	ω := [2]float64{s.Mu0Prime, s.Mu0Prime}
	for i, p := range s.Phi {
		ω[Index(s.Y[i])] += float64(s.Weight[i] * (1 - p))
	}
	return ω
}

// Index returns 0 for −1 and 1 for +1. In a loop it costs less than a branch that
// cannot be predicted.
func Index(sign float64) int { return int(1+sign) / 2 }

// Trusted returns η for the current φ (82, 83).
func (s *Stage) Trusted() [2]float64 {
	η := s.Zeta
	for i, p := range s.Phi {
		η[0] += float64(s.Weight[i] * p)
		η[1] += float64(s.Weight[i] * (1 - p))
	}
	return η
}

// Odds returns the part of ln κ (79) that depends only on the label, for y = −1 and +1:
// ψ(η₁) − ψ(η₂) + ψ(ω₀) − ψ(ω₁ or ω₂).
func (s *Stage) Odds() [2]float64 {
	common := Digamma(s.Eta[0]) - Digamma(s.Eta[1]) + Digamma(s.Omega[0]+s.Omega[1])
	return [2]float64{common - Digamma(s.Omega[0]), common - Digamma(s.Omega[1])}
}

// ClassifyAt sets φ with c at α in place of E_c: κ = e^odds/(1 + e^(−y(H+αh))) and
// φ = κ/(1+κ), which in terms of u = e^(−odds) is 1/(1 + u·(1 + e^(−yH)e^(−αyh))).
func (s *Stage) ClassifyAt(α float64) {
	odds := s.Odds()
	if s.plain && math.Abs(α) <= farthest && max(math.Abs(odds[0]), math.Abs(odds[1])) <= farthest {
		u := [2]float64{logistic.Exp(-odds[0]), logistic.Exp(-odds[1])}
		right := logistic.Exp(-α)
		shrink := [2]float64{1 / right, right} // e^(−αyh) where h errs, and where it does not
		for i, y := range s.Y {
			s.Phi[i] = 1 / (1 + float64(u[Index(y)]*(1+float64(s.odds[i]*shrink[Index(y*s.H[i])]))))
		}
		return
	}
	for i, y := range s.Y {
		z := y * (s.Before[i] + float64(α*s.H[i]))
		s.Phi[i] = logistic.Sigmoid(odds[Index(y)] + logistic.LogSigmoid(z))
	}
}

// Add adds α·h to H. It returns the sample weight of the rows that sign H then gets wrong;
// H = 0 counts as −1.
func (s *Stage) Add(α float64) (wrong float64) {
	for i, h := range s.H {
		s.Before[i] += float64(α * h)
		if (s.Before[i] > 0) != (s.Y[i] > 0) {
			wrong += s.Weight[i]
		}
	}
	return wrong
}

// Digamma returns ψ(x) = d ln Γ(x)/dx for x > 0, with an error below 4 ulp of the
// larger of |ψ(x)| and 1: ψ(x) = ψ(x+1) − 1/x up to 10, then
// ln x − 1/2x − Σ B₂ₖ/(2k x²ᵏ), of which the first term left out is 4·10⁻¹⁷.
func Digamma(x float64) float64 {
	s := 0.0
	if x < 10 {
		// From the largest x down, so that the small terms are added first.
		n := math.Ceil(10 - x)
		for i := n - 1; i >= 0; i-- {
			s -= 1 / (x + i)
		}
		x += n
	}
	u := 1 / float64(x*x)
	t := 1.0 / 12
	for _, c := range [...]float64{-691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12} {
		t = c + float64(u*t)
	}
	return s + ((logistic.Log(x) - 0.5/x) - float64(u*t))
}
