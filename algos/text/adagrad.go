package text

import (
	"fmt"
	"math"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
)

// ClipAt bounds an expert's input to the head.
const ClipAt = 10

func clip(s float64) float64 { return max(-ClipAt, min(ClipAt, s)) }

// steady keeps the first step finite: a weight's first gradient g moves it by
// rate·g/√(g²+10⁻⁶).
const steady = 1e-6

// An AdaGradConfig describes an AdaGrad.
type AdaGradConfig struct {
	Rate   float64
	Root   bool // the input is scaled by the root of the known share of features, not by the share
	Robust bool // a doubtful label moves new weights less

	// Damp divides s and the gradient of n features by n^Damp, so that among many features
	// each says less.
	Damp float64

	// Margin is up to which margin, in nats, an event is learnt; 0: always. Beyond 8 a step
	// is below rate/3,000 of a first one and changes no result, but costs as much.
	Margin float64
}

// An AdaGrad is a logistic regression over hashed features with a step size per weight. A
// feature's pair is (w, G): its weight and the sum of its squared gradients.
type AdaGrad struct {
	cfg   AdaGradConfig
	table Column
}

// NewAdaGrad returns an expert with the weights in table.
func NewAdaGrad(table Column, cfg AdaGradConfig) *AdaGrad { return &AdaGrad{cfg, table} }

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
	return e.scored(float64(s*e.damp(n)), known, n)
}

// damp returns n^−Damp.
func (e *AdaGrad) damp(n float64) float64 {
	if e.cfg.Damp == 0 {
		return 1
	}
	return logistic.Exp(-float64(e.cfg.Damp * logistic.Log(n)))
}

// scored scales the log-odds s of n features. known of them were seen before.
func (e *AdaGrad) scored(s, known, n float64) Score {
	return Score{LogOdds: s, Inputs: [MaxInputs]float64{clip(s * e.share(known, n))}}
}

// share returns the factor of s in the input, with known of n features seen before.
func (e *AdaGrad) share(known, n float64) float64 {
	share := (known + 1) / (n + 1)
	if e.cfg.Root {
		share = math.Sqrt(share)
	}
	return share
}

// Terms implements [Expert]. A feature's term is its part of s times the share of features
// that were seen before.
func (e *AdaGrad) Terms(dst []Term, f *View) []Term {
	n := float64(len(f.Index))
	known, start := 0.0, len(dst)
	u := 1 / math.Sqrt(n)
	for k, i := range f.Index {
		w, g := e.at(i)
		if g == 0 {
			dst = append(dst, Term{})
			continue
		}
		if f.Value != nil {
			u = f.Value[k]
		}
		dst = append(dst, Term{float64(w) * u})
		known += float64(u * u)
	}
	scale := e.damp(n) * e.share(float64(known*n), n)
	for k := range dst[start:] {
		dst[start+k][0] *= scale
	}
	return dst
}

// sumBinary returns Σw_i and the number of features seen before. The features take turns in four
// sums.
func (e *AdaGrad) sumBinary(index []uint32) (s, known float64) {
	var sums lanes
	seen := sumWeights(&sums, e.table, index)
	return sums.total(), float64(seen)
}

// sumWeightsGo adds the weights of features to sums, and returns how many features were seen before.
func sumWeightsGo(sums *lanes, table Column, index []uint32) (seen uint64) {
	for k, i := range index {
		c := table.at(i)
		sums[k%len(sums)] += float64(c.a)
		b := math.Float32bits(c.b) // G ≥ 0, so some bit is set if and only if G > 0
		seen += uint64((b | -b) >> 31)
	}
	return seen
}

// sum returns Σw_i·u_i and Σu_i² over the features seen before.
func (e *AdaGrad) sum(f feature.Sparse) (s, known float64) {
	for k, i := range f.Index {
		u := f.Value[k]
		w, g := e.at(i)
		s += float64(float64(w) * u)
		if g > 0 {
			known += float64(u * u)
		}
	}
	return s, known
}

// Learn implements [Expert]. It takes one gradient step, which cannot be withdrawn.
func (e *AdaGrad) Learn(f *View, was Score, spam bool, ω float64) (counted float64) {
	margin, slope := -was.LogOdds, logistic.Sigmoid(was.LogOdds)
	if spam {
		margin, slope = was.LogOdds, -logistic.Sigmoid(-was.LogOdds)
	}
	if len(f.Index) == 0 || e.cfg.Margin > 0 && margin > e.cfg.Margin {
		return 0
	}
	slope *= e.damp(float64(len(f.Index)))
	certain := float32(1)
	if e.cfg.Robust {
		if certain = float32(2*ω - 1); !(certain > 0) {
			return 0
		}
	} else {
		slope *= ω
	}
	if f.Value != nil {
		for k, i := range f.Index {
			g := float64(slope * f.Value[k])
			if e.cfg.Robust {
				e.table.at(i).robustStep(float32(g), float32(e.cfg.Rate*g), certain)
			} else {
				e.table.at(i).step(float32(g), float32(e.cfg.Rate*g))
			}
		}
		return 0
	}
	g := slope / math.Sqrt(float64(len(f.Index)))
	gradient, length := float32(g), float32(e.cfg.Rate*g)
	square := float32(gradient * gradient)
	if e.cfg.Robust {
		steps(e.table, f.Index, square, float32(certain*length), float32(certain*square))
	} else {
		steps(e.table, f.Index, square, length, square)
	}
	return 0
}

// stepsGo moves the weights of features by length/√(G + square + 10⁻⁶), and adds gain to each G. No feature may
// be there twice.
func stepsGo(table Column, index []uint32, square, length, gain float32) {
	for _, i := range index {
		c := table.at(i)
		c.a -= length / float32(math.Sqrt(float64(c.b+square+steady)))
		c.b += gain
	}
}

// Withdraw implements [Expert]. It does nothing: the event's step stays in the weights.
func (e *AdaGrad) Withdraw(*View, bool, float64) {}

// step adds g² to G and moves a weight by length/√(G + 10⁻⁶).
func (c *pair) step(gradient, length float32) {
	c.b += float32(gradient * gradient)
	c.a -= length / float32(math.Sqrt(float64(c.b+steady)))
}

// robustStep moves a weight by certain·length/√(G + g² + 10⁻⁶) and adds certain·g² to G.
func (c *pair) robustStep(gradient, length, certain float32) {
	square := float32(gradient * gradient)
	c.a -= float32(certain*length) / float32(math.Sqrt(float64(c.b+square+steady)))
	c.b += float32(certain * square)
}

// at returns the weight w and the sum of squared gradients G of feature i.
func (e *AdaGrad) at(i uint32) (w, g float32) {
	c := e.table.at(i)
	return c.a, c.b
}

// AdaGradSize returns the number of bytes of an AdaGrad's table: 8·2^tableBits.
func AdaGradSize(tableBits int) int { return pairSize << tableBits }

// AppendBinary appends the table, little endian:
//
//	(w, G float32) of each slot, from slot 0
func (e *AdaGrad) AppendBinary(dst []byte) ([]byte, error) { return e.table.append(dst), nil }

func (e *AdaGrad) appendTotals(dst []byte) []byte               { return dst } // it has none
func (e *AdaGrad) readTotals(b []byte) (rest []byte, err error) { return b, nil }
func (e *AdaGrad) column() Column                               { return e.table }

// UnmarshalBinary reads what AppendBinary wrote for a table of e's size. After an error e
// must not be used.
func (e *AdaGrad) UnmarshalBinary(b []byte) error {
	if want := pairSize * e.table.len(); len(b) != want {
		return fmt.Errorf("adagrad expert: %d bytes, want %d", len(b), want)
	}
	if bad := e.table.read(b, validWeight); bad >= 0 {
		return fmt.Errorf("adagrad expert: slot %d holds no weight and squared gradients", bad)
	}
	return nil
}

func validWeight(c pair) bool {
	return c.a >= -math.MaxFloat32 && c.a <= math.MaxFloat32 && c.b >= 0 && c.b <= math.MaxFloat32 &&
		!math.Signbit(float64(c.b))
}
