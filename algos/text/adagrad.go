package text

import (
	"encoding/binary"
	"fmt"
	"math"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
)

// clipAt bounds an expert's input to the head.
const clipAt = 10

func clip(s float64) float64 { return max(-clipAt, min(clipAt, s)) }

// steady keeps the first step finite: a weight's first gradient g moves it by
// rate·g/√(g²+10⁻⁶).
const steady = 1e-6

// A weight is one feature's entry: the weight and the sum of its squared gradients.
type weight struct{ w, g float32 }

// An AdaGrad is a logistic regression over hashed features with a step size per weight.
type AdaGrad struct {
	rate  float64
	table []weight
}

// NewAdaGrad returns an expert with a table of 2^tableBits weights, all 0.
func NewAdaGrad(tableBits int, rate float64) *AdaGrad {
	return &AdaGrad{rate: rate, table: make([]weight, 1<<tableBits)}
}

// Score implements [Expert]. Indices must be below 2^tableBits.
func (e *AdaGrad) Score(f *View) Score {
	n := float64(len(f.Index))
	if n == 0 {
		return Score{}
	}
	var s, known float64
	if f.Value == nil {
		s, known = e.sumBinary(f.Index)
		s /= math.Sqrt(n)
	} else {
		s, known = e.sum(f.Sparse)
		known = float64(known * n)
	}
	return adaGradScore(s, known, n)
}

// adaGradScore scales the log-odds s of n features. known of them were seen before.
func adaGradScore(s, known, n float64) Score {
	return Score{LogOdds: s, Inputs: [MaxInputs]float64{clip(s * math.Sqrt((known+1)/(n+1)))}}
}

// Pool implements [Expert]. A pooled weight is the mean of the experts' weights, weighted
// by their sums of squared gradients: w_i = Σ G_ik·w_ik / Σ G_ik, G_i = Σ G_ik. A feature
// that only one expert has seen keeps its weight.
func (e *AdaGrad) Pool(like []Expert, f *View) Score {
	n := float64(len(f.Index))
	if n == 0 {
		return Score{}
	}
	var s, known float64
	for k, i := range f.Index {
		var sum, total float64
		for _, other := range like {
			c := other.(*AdaGrad).table[i]
			sum += float64(float64(c.g) * float64(c.w))
			total += float64(c.g)
		}
		if total == 0 {
			continue
		}
		u := 1 / math.Sqrt(n)
		if f.Value != nil {
			u = f.Value[k]
		}
		s += float64(sum / total * u)
		known += float64(u * u)
	}
	return adaGradScore(s, float64(known*n), n)
}

// sumBinary returns Σw_i and the number of features seen before.
func (e *AdaGrad) sumBinary(index []uint32) (s, known float64) {
	table, seen := e.table, uint32(0)
	for _, i := range index {
		c := table[i]
		s += float64(c.w)
		b := math.Float32bits(c.g) // g ≥ 0, so some bit is set if and only if g > 0
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

// Learn implements [Expert]. It takes one gradient step, which cannot be withdrawn.
func (e *AdaGrad) Learn(f *View, was Score, spam bool, ω float64) (counted float64) {
	if len(f.Index) == 0 {
		return 0
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
		return 0
	}
	g := slope / math.Sqrt(float64(len(f.Index)))
	gradient, length := float32(g), float32(e.rate*g)
	for _, i := range f.Index {
		e.table[i].step(gradient, length)
	}
	return 0
}

// Withdraw implements [Expert]. It does nothing: the event's step stays in the weights.
func (e *AdaGrad) Withdraw(*View, bool, float64) {}

// step adds a gradient's square and moves the weight by length/√(G + 10⁻⁶).
func (c *weight) step(gradient, length float32) {
	c.g += float32(gradient * gradient)
	c.w -= length / float32(math.Sqrt(float64(c.g+steady)))
}

// AdaGradSize returns the number of bytes of an AdaGrad's table: 8·2^tableBits.
func AdaGradSize(tableBits int) int { return 8 << tableBits }

// AppendBinary appends the table, little endian:
//
//	(w, G float32) of each slot, from slot 0
func (e *AdaGrad) AppendBinary(dst []byte) ([]byte, error) {
	dst, b := grow(dst, 8*len(e.table))
	for i, c := range e.table {
		binary.LittleEndian.PutUint32(b[8*i:], math.Float32bits(c.w))
		binary.LittleEndian.PutUint32(b[8*i+4:], math.Float32bits(c.g))
	}
	return dst, nil
}

// UnmarshalBinary reads what AppendBinary wrote for a table of e's size. After an error e
// must not be used.
func (e *AdaGrad) UnmarshalBinary(b []byte) error {
	if want := 8 * len(e.table); len(b) != want {
		return fmt.Errorf("adagrad expert: %d bytes, want %d", len(b), want)
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
