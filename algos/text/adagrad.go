package text

import (
	"encoding/binary"
	"fmt"
	"math"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
)

// A Score is an expert's answer to one message.
type Score struct {
	LogOdds float64 // s: what the expert learns from, nats
	Input   float64 // what it says to the head: s scaled by what it knows, clipped at ±10

	// Surprise is how unlike all that it learnt the message is, in nats; of an
	// expert that does not count, 0.
	Surprise float64
}

// clipAt bounds an expert's input to the head.
const clipAt = 10

func clip(s float64) float64 { return max(-clipAt, min(clipAt, s)) }

// steady keeps the first step finite: a weight's first gradient g moves it by
// rate·g/√(g²+10⁻⁶).
const steady = 1e-6

// A weight is one feature's entry: the weight and the sum of its squared gradients.
type weight struct{ w, g float32 }

// An AdaGrad is a logistic regression over hashed features with a step size of
// its own per weight. Score may be called concurrently with itself, but not with
// Learn.
type AdaGrad struct {
	rate  float64
	table []weight
}

// NewAdaGrad returns an expert with a table of 2^tableBits weights, all 0.
func NewAdaGrad(tableBits int, rate float64) *AdaGrad {
	return &AdaGrad{rate: rate, table: make([]weight, 1<<tableBits)}
}

// Score returns the expert's answer to f; to no features it is 0. Indices must
// be below 2^tableBits.
func (e *AdaGrad) Score(f feature.Sparse) Score {
	n := float64(len(f.Index))
	if n == 0 {
		return Score{}
	}
	var s, known float64
	if f.Value == nil {
		s, known = e.sumBinary(f.Index)
		s /= math.Sqrt(n)
	} else {
		s, known = e.sum(f)
		known = float64(known * n)
	}
	return Score{LogOdds: s, Input: clip(s * math.Sqrt((known+1)/(n+1)))}
}

// sumBinary returns Σw_i and the number of features seen before.
func (e *AdaGrad) sumBinary(index []uint32) (s, known float64) {
	table, seen := e.table, uint32(0)
	for _, i := range index {
		c := table[i]
		s += float64(c.w)
		b := math.Float32bits(c.g) // g ≥ 0: some bit is set where g > 0
		seen += (b | -b) >> 31
	}
	return s, float64(seen)
}

// sum returns Σw_i·u_i and Σu_i² over the features seen before.
func (e *AdaGrad) sum(f feature.Sparse) (s, known float64) {
	for k, i := range f.Index {
		c, u := e.table[i], f.Value[k]
		s += float64(float64(c.w) * u)
		if c.g > 0 {
			known += float64(u * u)
		}
	}
	return s, known
}

// Learn takes one step on f with its label, weighted by ω in (0, 1]; was is what
// Score said of f. No features: nothing is learnt. It reports whether it did.
func (e *AdaGrad) Learn(f feature.Sparse, was Score, spam bool, ω float64) bool {
	if len(f.Index) == 0 {
		return false
	}
	slope := logistic.Sigmoid(was.LogOdds)
	if spam {
		slope = -logistic.Sigmoid(-was.LogOdds)
	}
	slope *= ω
	if f.Value != nil {
		for k, i := range f.Index {
			g := float64(slope * f.Value[k])
			e.table[i].step(float32(g), float32(e.rate*g))
		}
		return true
	}
	g := slope / math.Sqrt(float64(len(f.Index)))
	gradient, length := float32(g), float32(e.rate*g)
	for _, i := range f.Index {
		e.table[i].step(gradient, length)
	}
	return true
}

// step adds a gradient's square and moves the weight by length/√(G + 10⁻⁶).
func (c *weight) step(gradient, length float32) {
	c.g += float32(gradient * gradient)
	c.w -= length / float32(math.Sqrt(float64(c.g+steady)))
}

// AdaGradSize returns the number of bytes of an AdaGrad's table: 8·2^tableBits.
func AdaGradSize(tableBits int) int { return 8 << tableBits }

// Size returns the number of bytes that AppendBinary appends.
func (e *AdaGrad) Size() int { return 8 * len(e.table) }

// AppendBinary appends the table, little endian:
//
//	(w, G float32) of each slot, from slot 0
func (e *AdaGrad) AppendBinary(dst []byte) ([]byte, error) {
	dst, b := grow(dst, e.Size())
	for i, c := range e.table {
		binary.LittleEndian.PutUint32(b[8*i:], math.Float32bits(c.w))
		binary.LittleEndian.PutUint32(b[8*i+4:], math.Float32bits(c.g))
	}
	return dst, nil
}

// UnmarshalBinary reads what AppendBinary wrote for a table of e's size. On an
// error e is of no more use.
func (e *AdaGrad) UnmarshalBinary(b []byte) error {
	if len(b) != e.Size() {
		return fmt.Errorf("adagrad expert: %d bytes, want %d", len(b), e.Size())
	}
	for i := range e.table {
		w := math.Float32frombits(binary.LittleEndian.Uint32(b[8*i:]))
		g := math.Float32frombits(binary.LittleEndian.Uint32(b[8*i+4:]))
		if !(w >= -math.MaxFloat32 && w <= math.MaxFloat32) || !(g >= 0 && g <= math.MaxFloat32) || math.Signbit(float64(g)) {
			return fmt.Errorf("adagrad expert: slot %d holds weight %v and squared gradients %v", i, w, g)
		}
		e.table[i] = weight{w, g}
	}
	return nil
}
