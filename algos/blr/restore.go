package blr

import (
	"fmt"
	"math"

	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/logistic"
)

// HalfLife returns the half-life in events of a posterior that forgets at rate ρ
// an event, 0 < ρ < 1: ρ^HalfLife = ½.
func HalfLife(ρ float64) float64 { return -math.Ln2 / logistic.Log(ρ) }

// sane bounds the weights and evidences that are read. Learnt weights are below 1,000.
const sane = 1e30

// Read reads a posterior behind its length, which [codec.Writer.Part64] wrote, and
// fails as CheckAs does.
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

// CheckAs refuses a posterior that is not configured as fresh, or whose numbers no
// learning leads to. It costs what Check costs.
func (p *Posterior) CheckAs(fresh *Posterior) error {
	if !p.Alike(fresh) {
		return fmt.Errorf("a head of %d inputs and site %v that the configuration does not make: one with another prior, half-life or site", p.Dim(), p.Site())
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
