package viboost

import (
	"math"

	"hamlet/algos/internal/vi"
)

// The oracle of the paper's approximations: the model summed over all 2ᴺ types of
// the labels and integrated on grids.
type enumeration struct {
	prior Prior
	y     []float64
	f     [][]float64 // base classifiers, one or two
	h0    []float64   // log-odds H added to Σ cf; nil is 0
}

func lbeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

func logSigma(z float64) float64 {
	if z < 0 {
		return z - math.Log1p(math.Exp(z))
	}
	return -math.Log1p(math.Exp(-z))
}

// means returns ln p(y) and the posterior means. Weights c are on a grid of step
// 1/20 from −grid to grid, on which the trapezoidal rule is exact to rounding for
// these functions; the density of the prior falls as e^(−μ₀|c|).
func (e *enumeration) means(grid float64) (logEvidence float64, m Means) {
	n, k := len(e.y), len(e.f)
	m = Means{C: make([]float64, k), C2: make([]float64, k), W: make([]float64, n)}
	const step = 0.05
	side := int(2*grid/step) + 1
	points := side
	if k == 2 {
		points *= side
	}
	// Of each w: prior of the types and, by the noise grade, of the noisy labels.
	types := 1 << n
	base := make([]float64, types)
	xi := make([]float64, types)
	for w := range types {
		trues := 0.0
		ω := [2]float64{e.prior.Mu0Prime, e.prior.Mu0Prime}
		for i, y := range e.y {
			switch {
			case w>>i&1 == 1:
				trues++
			case y < 0:
				ω[0]++
			default:
				ω[1]++
			}
		}
		base[w] = lbeta(e.prior.Zeta[0]+trues, e.prior.Zeta[1]+float64(n)-trues) - lbeta(e.prior.Zeta[0], e.prior.Zeta[1]) +
			lbeta(ω[0], ω[1]) - lbeta(e.prior.Mu0Prime, e.prior.Mu0Prime)
		xi[w] = vi.Digamma(ω[1]) - vi.Digamma(ω[0])
	}
	like := make([]float64, n)
	total := 0.0
	for p := range points {
		c := [2]float64{float64(p%side)*step - grid, float64(p/side)*step - grid}
		weight := 1.0
		for j := range k {
			weight *= step * math.Exp(e.prior.Mu0*(logSigma(c[j])+logSigma(-c[j]))-lbeta(e.prior.Mu0, e.prior.Mu0))
		}
		for i, y := range e.y {
			z := 0.0
			if e.h0 != nil {
				z = e.h0[i]
			}
			for j := range k {
				z += c[j] * e.f[j][i]
			}
			like[i] = logSigma(y * z)
		}
		for w := range types {
			l := base[w]
			trues := 0.0
			for i := range n {
				if w>>i&1 == 1 {
					l += like[i]
					trues++
				}
			}
			q := weight * math.Exp(l)
			total += q
			for j := range k {
				m.C[j] += q * c[j]
				m.C2[j] += q * c[j] * c[j]
			}
			m.Xi += q * xi[w]
			m.Theta += q * (e.prior.Zeta[0] + trues) / (e.prior.Zeta[0] + e.prior.Zeta[1] + float64(n))
			for i := range n {
				if w>>i&1 == 1 {
					m.W[i] += q
				}
			}
		}
	}
	for _, v := range [][]float64{m.C, m.C2, m.W} {
		for i := range v {
			v[i] /= total
		}
	}
	m.Xi /= total
	m.Theta /= total
	return math.Log(total), m
}
