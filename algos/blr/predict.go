package blr

import (
	"math"

	"hamlet/algos/internal/logistic"
)

// Moments returns the mean m = wᵀx and the variance a = xᵀVx of the log-odds
// z = βᵀx, in nats and nats². It panics if len(x) ≠ D or an entry is not finite. If an
// entry exceeds 2¹⁰⁰, m and a may be infinite. It costs D²/2 products.
func (p *Posterior) Moments(x []float64) (m, a float64) {
	p.checkLength(len(x))
	if scale := scaleOf(x); scale != 1 {
		m, a = p.moments(scaled(x, scale))
		return m / scale, a / scale / scale
	}
	return p.moments(x)
}

func (p *Posterior) moments(x []float64) (m, a float64) {
	return inOrder(p.mean, x), max(p.cov.quadratic(x)+p.block.variance(x), 0)
}

func scaled(x []float64, scale float64) []float64 {
	y := make([]float64, len(x))
	for j, v := range x {
		y[j] = v * scale
	}
	return y
}

// Prob returns the probability that x has label +1, σ(Moderate(m, a)), in [0, 1]. Like
// Moments it panics on a wrong length or an entry that is not finite. It changes nothing
// and may run concurrently.
func (p *Posterior) Prob(x []float64) float64 {
	p.checkLength(len(x))
	if scale := scaleOf(x); scale != 1 {
		// For an x this long the moderated log-odds no longer depend on its length.
		x = scaled(x, scale)
	}
	return logistic.Sigmoid(Moderate(p.moments(x)))
}

// Moderate returns the log-odds m/√(1+πa/8) whose σ is E[σ(z)] for z ~ N(m, a), a ≥ 0, by
// the probit approximation (MacKay 1992). It is off by at most .017 for a ≤ 50 and never
// on the wrong side of ½.
func Moderate(m, a float64) float64 {
	return m / math.Sqrt(1+float64(math.Pi/8*a))
}
