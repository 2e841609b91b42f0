package vlog

import (
	"fmt"
	"math"
	"math/rand/v2"

	"hamlet/algos/internal/logistic"
)

// A Sampler draws from a Density by rejection. Call Reset before using the zero value, and
// for each new density. It allocates only while K grows. It is not safe for concurrent use.
type Sampler struct {
	anchor anchor

	// −g̃(t) is at most 0, at most left.slope·(t−left.from) below the mode and
	// at most −right.slope·(t−right.from) above it.
	left, right side
}

// A side is the part of the hat where a tangent rules: from the offset where it
// crosses 0, outwards.
type side struct{ from, slope float64 }

// NewSampler returns a sampler of d; the error is Check's. It keeps d's slices,
// which must not change while it draws.
func NewSampler(d Density) (*Sampler, error) {
	s := &Sampler{}
	if err := s.Reset(d); err != nil {
		return nil, err
	}
	return s, nil
}

// Reset makes s a sampler of d, in a dozen passes over the K terms. On an error s is
// unchanged.
func (s *Sampler) Reset(d Density) error {
	if err := d.Check(); err != nil {
		return fmt.Errorf("v-Log: %w", err)
	}
	s.anchor.reset(d, d.Mode())
	s.left, s.right = s.tangent(-1), s.tangent(+1)
	return nil
}

// tangent touches −g̃ where g̃ is between 0.8 and 1.2. With h = g̃(t) and s = |g′(t)|
// it crosses 0 at t − h/s, and the hat's area there, |t| − h/s + 1/s, is least at
// h = 1.
func (s *Sampler) tangent(sign float64) side {
	t, height := s.anchor.reach(sign, 0.8)
	slope := math.Abs(s.anchor.slope(t))
	return side{from: t - sign*(height/slope), slope: slope}
}

// Draw returns one draw. It takes two numbers from src and a pass over the K terms
// for each trial, of which fewer than 1.9 are needed in the mean.
func (s *Sampler) Draw(src rand.Source) float64 {
	below, flat, above := 1/s.left.slope, s.right.from-s.left.from, 1/s.right.slope
	for {
		u := float64(uniform(src) * (below + flat + above))
		var t, hat float64 // the trial, and the hat's log there
		switch {
		case u < below:
			hat = logistic.Log(u * s.left.slope)
			t = s.left.from + float64(hat*below)
		case u-below < flat:
			t = s.left.from + (u - below)
		default:
			hat = logistic.Log(max((u-below-flat)*s.right.slope, math.SmallestNonzeroFloat64))
			t = s.right.from - float64(hat*above)
		}
		if logistic.Log(uniform(src))+hat <= -s.anchor.rise(t) {
			return s.anchor.at + t
		}
	}
}

// uniform returns a multiple of 2⁻⁵³ plus 2⁻⁵⁴, inside (0, 1).
func uniform(src rand.Source) float64 {
	return (float64(src.Uint64()>>11) + 0.5) * 0x1p-53
}
