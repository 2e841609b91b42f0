package blr

import (
	"math"

	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/normal"
)

// Predictive returns the log-odds f(m, a) of the predictive probability E[σ(z)],
// z ~ N(m, a), m in nats and a in nats². p = σ(f) and 1−p = σ(−f) both have a relative
// error below 1e−9 for every m and a, also where E[σ(−z)] underflows; beyond |f| = 10⁶,
// f's own rounding is larger. f is odd in m to the last bit and has m's sign. At a = 0 it
// is m, at a = +Inf it is 0. Every CPU computes the same bits.
//
// Below, m ≥ 0 and Q = E[σ(−z)], so that f = ln(1−Q)/Q. Since σ(−z) = e⁻ᶻσ(z), and
// e⁻ᶻ·N(z; m, a) = e^{a/2−m}·N(z; m−a, a),
//
//	Q(m, a) = e^{a/2−m}·(1 − Q(m−a, a)).                                       (1)
//
// For m ≥ 3a/2 + 24 this gives f = m − a/2, because Q(m−a, a) ≤ e^{3a/2−m} ≤ 4e−11.
//
// For a ≤ 36 we use the trapezoidal rule with step h about m, and add z = m ± kh in pairs. With
// C = cosh m, c_k = cosh kh and weights w_k = e^{−(kh)²/2a}, ½ at k = 0,
//
//	Q ∝ Σ w_k (e⁻ᵐ+c_k)/(C+c_k),   (1−Q) − Q ∝ 2·sinh m·Σ w_k/(C+c_k).         (2)
//
// All terms are positive. The factor cancels in f = ln(1 + (1−2Q)/Q). Recurrences give w_k
// and c_k: a node costs one division. The rule's relative error is 2·exp(−2π²a/h²) by
// the Gaussian and, for h < 2a, about (5/√a)·exp(π²/2a − 2π²/h) by σ's poles at ±iπ. The
// step keeps either below 5e−11. The range is 6.6√a beyond where (1) shifts the mass.
//
// For a > 36 we use the same rule about 0, with h = ¾, on the difference of σ and its probit twin
// Φ(z/c), c = √(8/π), d_k = σ(−kh) − Φ(−kh/c). The twin has a closed form. With ρ = m/a,
// s = √a, τ² = a + c² and the scaled erfcx(x) = e^{x²}·erfc(x),
//
//	Q·e^{m²/2a} = ½·e^{ρ²c²a/2τ²}·erfcx(m/√2τ)
//	              + 2h/(√2π·s)·Σ_{k≥1} d_k e^{−(kh)²/2a} sinh(ρkh)             (3)
//
// for m ≤ a/2. For a larger m, (1) leads back to it. It has at most 66 nodes, which take longer than (2)
// does at a = 36.
//
// It takes 110 to 160 ns for a ≤ 6, 240 at 36 and up to 600 above, where Moderate takes 6.
func Predictive(m, a float64) float64 {
	switch {
	case m != m || a != a:
		return math.NaN()
	case a > math.MaxFloat64:
		return math.Copysign(0, m)
	case !(a > 0) || math.Abs(m) > math.MaxFloat64:
		return m
	case m < 0:
		return -predictive(-m, a)
	}
	return predictive(m, a)
}

const (
	almostLinear = 1e-6 // f(m)/m is constant below it, to m²
	widestDirect = 36.0 // largest a for (2)
	shiftedAll   = 24.0 // nats beyond 3a/2 where f = m − a/2 to 4e−11
	tailReach    = 6.6  // Φ(−6.6) = 2e−11
	twinStep     = 0.75
)

// predictive is Predictive for finite m ≥ 0 and a > 0.
func predictive(m, a float64) float64 {
	switch {
	case m < almostLinear:
		return float64(m * (predictive(almostLinear, a) / almostLinear))
	case m >= float64(1.5*a)+shiftedAll:
		return m - float64(0.5*a)
	case a <= widestDirect:
		return pairs(m, a)
	}
	s := math.Sqrt(a)
	if x := m / math.Sqrt(2*(a+twinScale2)); x < 0.5 {
		// ½−Q without Q's rounding: f has m's sign also where Q is almost ½.
		half := float64(0.5*normal.Erf(x)) - float64(logistic.Exp(float64(-0.5*float64(m*(m/a))))*twinSum(m, a, s))
		return logistic.Log1p(2 * half / (0.5 - half))
	}
	l := logTail(m, a, s)
	return logistic.Log1p(-logistic.Exp(l)) - l
}

// pairs is predictive by (2). Both sums are multiplied by 2e⁻ᵐ.
func pairs(m, a float64) float64 {
	s := math.Sqrt(a)
	h := float64(0.9 * s)
	if a > 0.16 {
		h = 2 * math.Pi * math.Pi / (26 + math.Pi*math.Pi/2/a)
	}
	n := int((min(m, a)+float64(tailReach*s))/h) + 1
	e, g := logistic.Exp(-m), logistic.Exp(h)
	e2, up, down := float64(e*e), e, e // up, down = e^{±kh−m}
	inverse := 1 / g
	w := logistic.Exp(float64(-0.5 * float64(h*(h/a))))
	w2, fall := float64(w*w), w // fall = w_{k+1}/w_k
	t := 1 / (1 + e2 + (e + e))
	rise, tail := float64(0.5*t), float64((e2+e)*t)
	for ; n > 0; n-- {
		up, down = float64(up*g), float64(down*inverse)
		r := up + down
		t := w / (1 + e2 + r)
		rise += t
		tail += float64((e2 + e2 + r) * t)
		fall *= w2
		w *= fall
	}
	return logistic.Log1p(float64(2*float64((1-e2)*rise)) / tail)
}

// logTail returns ln Q(m, a) for m ≥ 0 and a > widestDirect.
func logTail(m, a, s float64) float64 {
	switch {
	case m > a:
		shifted := float64(0.5*a) - m
		if m >= float64(1.5*a)+shiftedAll {
			return shifted
		}
		return shifted + logistic.Log1p(-logistic.Exp(logTail(m-a, a, s)))
	case m > float64(0.5*a): // (1), and 1 − Q(−v) = Q(v)
		return float64(0.5*a) - m + logTail(a-m, a, s)
	}
	ρ, τ2 := m/a, a+twinScale2
	twin := float64(0.5 * logistic.Exp(float64(0.5*twinScale2*float64(ρ*ρ)*(a/τ2))) * normal.Erfcx(m/math.Sqrt(2*τ2)))
	return logistic.Log(twin+twinSum(m, a, s)) - float64(0.5*float64(m*ρ))
}

// twinSum returns the second summand of (3), m ≤ a/2. Neighbouring sinh follow from
// sinh(x+y) = 2·cosh y·sinh x − sinh(x−y).
func twinSum(m, a, s float64) float64 {
	g := logistic.Exp(float64(m / a * twinStep))
	twice := g + 1/g
	sinh, before := 0.5*(g-1/g), 0.0
	w := logistic.Exp(-0.5 * twinStep * twinStep / a)
	w2, fall := float64(w*w), w
	sum := 0.0
	n := int(min(float64(len(twinGap)), (m+float64(tailReach*s))/twinStep+1))
	for _, d := range twinGap[:n] {
		sum += float64(float64(w*d) * sinh)
		sinh, before = float64(twice*sinh)-before, sinh
		fall *= w2
		w *= fall
	}
	return float64(2*twinStep/math.Sqrt(2*math.Pi)/s) * sum
}

// twinGap holds d_k = σ(−kh) − Φ(−kh/c) for k = 1 … 66. Beyond, sinh(kh/2)·d_k < 1e−11.
var twinGap = func() (d [66]float64) {
	for k := range d {
		z := twinStep * float64(k+1)
		d[k] = logistic.Sigmoid(-z) - normal.CDF(-z/math.Sqrt(twinScale2))
	}
	return d
}()

// A Contribution is what one input adds to the log-odds m: its mean wⱼxⱼ and its
// standard deviation |xⱼ|√Vⱼⱼ, both in nats. Inputs are correlated, so the
// squares of SD do not add up to a.
type Contribution struct {
	Mean, SD float64
}

// Contributions appends the contribution of each input, in the order of x, and returns
// the longer slice. The means, summed in order, are m to the last bit. It panics as
// Moments does.
func (p *Posterior) Contributions(dst []Contribution, x []float64) []Contribution {
	p.checkLength(len(x))
	Shortened(x)
	for j, v := range x {
		dst = append(dst, Contribution{
			Mean: float64(p.mean[j] * v),
			SD:   math.Abs(v) * math.Sqrt(max(p.varianceOf(j), 0)),
		})
	}
	return dst
}

// varianceOf returns Vⱼⱼ.
func (p *Posterior) varianceOf(j int) float64 {
	v := p.cov.At(p.dim, j, j)
	for k := range p.block.n {
		u := p.block.row(p.block.u, k)[j]
		v += float64(p.block.g[k] * float64(u*u))
	}
	return v
}
