package algotest

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// A perceptron of sorts, plain enough to see that it obeys: logistic regression
// by gradient steps of a fixed rate.
type gradient struct{ w []float64 }

func (g *gradient) z(x []float64) float64 {
	z := 0.0
	for j := range x {
		z += g.w[j] * x[j]
	}
	return z
}

func (g *gradient) Prob(x []float64) float64 { return 1 / (1 + math.Exp(-g.z(x))) }

func (g *gradient) Update(x []float64, y float64) {
	step := 0.1 * y / (1 + math.Exp(y*g.z(x)))
	for j := range x {
		g.w[j] += step * x[j]
	}
}

func (g *gradient) AppendBinary(dst []byte) ([]byte, error) {
	for _, w := range g.w {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(w))
	}
	return dst, nil
}

func restoreGradient(b []byte) (*gradient, error) {
	if len(b) != 8*dim {
		return nil, errors.New("wrong length")
	}
	g := &gradient{}
	for ; len(b) > 0; b = b[8:] {
		g.w = append(g.w, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return g, nil
}

const dim = 5

func newGradient() *gradient { return &gradient{w: make([]float64, dim)} }

func TestRun(t *testing.T) {
	Run(t, Subject{
		Dim:     dim,
		New:     func() Classifier { return newGradient() },
		Restore: func(b []byte) (Classifier, error) { return restoreGradient(b) },
	})
}

// Each law is broken by the classifier that breaks it, so no law is empty.
type broken struct {
	*gradient
	law   Law
	count float64
}

func (b *broken) Prob(x []float64) float64 {
	p := b.gradient.Prob(x)
	switch b.law {
	case Probability:
		return p + 1e-9
	case InputUntouched:
		x[0]++
	case ReadingIsPure:
		b.w[0] += 1e-3
	case Concurrent:
		return rand.Float64()
	case Learns:
		return 0.5
	}
	return p
}

func (b *broken) Update(x []float64, y float64) {
	b.count++
	switch b.law {
	case Deterministic:
		b.w[1] += rand.Float64()
	case PermutedInputs:
		b.w[0] += 1e-3 * x[0]
	case FlippedLabels:
		b.w[0] += 1e-3
	case Continues:
		y *= math.Copysign(1, 100-b.count) // count is not saved
	}
	b.gradient.Update(x, y)
}

func TestEveryLawCanBeBroken(t *testing.T) {
	for _, law := range laws {
		s := &Subject{
			Dim: dim,
			New: func() Classifier { return &broken{gradient: newGradient(), law: law.name} },
			Restore: func(b []byte) (Classifier, error) {
				if law.name == RefusesDamage && len(b) > 8*dim {
					b = b[:8*dim]
				}
				g, err := restoreGradient(b)
				return &broken{gradient: g, law: law.name}, err
			},
			Draw: drawNormal,
			Near: 1e-9,
		}
		if law.hold(s) == nil {
			t.Errorf("%s: a classifier that breaks the law passes", law.name)
		}
	}
}
