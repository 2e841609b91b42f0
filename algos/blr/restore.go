package blr

import (
	"fmt"
	"math"

	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/logistic"
)

// HalfLife returns the half-life in events of a posterior whose evidence decays by the
// factor ρ with each event, 0 < ρ < 1: ρ^HalfLife = ½.
func HalfLife(ρ float64) float64 { return -math.Ln2 / logistic.Log(ρ) }

// sane bounds the weights and the log evidence of a restored posterior. Weights that were
// learnt are below 1,000.
const sane = 1e30

// Read reads a posterior that [codec.Writer.Part64] wrote: its length, then its bytes. If
// CheckAs refuses the posterior, r fails.
func Read(r *codec.Reader, fresh *Posterior) *Posterior {
	p := new(Posterior)
	r.Unmarshal64(p)
	if r.Err() == nil {
		if err := p.CheckAs(fresh); err != nil {
			r.Fail("%w", err)
		}
	}
	return p
}

// CheckAs returns an error if p and fresh have different configurations, or if p holds
// numbers that learning cannot produce. It costs as much as Check.
func (p *Posterior) CheckAs(fresh *Posterior) error {
	if !p.Alike(fresh) {
		return fmt.Errorf("a head of %d inputs and site %v does not match the configuration: "+
			"its prior, half-life or site is another", p.Dim(), p.Approximation())
	}
	for j, w := range p.mean {
		if !(math.Abs(w) <= sane) {
			return fmt.Errorf("head with weight %v of input %d", w, j)
		}
	}
	if !(math.Abs(p.LogEvidence()) <= sane) {
		return fmt.Errorf("head with log evidence %v", p.LogEvidence())
	}
	return p.Check()
}
