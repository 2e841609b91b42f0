package blr

import "math"

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
