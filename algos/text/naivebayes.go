package text

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
)

const (
	// shrinkage is α, in messages.
	shrinkage = 10

	// nearError is the margin, in nats, up to which a message is learnt.
	nearError = 7

	// A product of ratios outside (1/productBound, productBound) is added to a sum of
	// logarithms. One ratio lies between 10/(n0+n1+11) and its inverse, so that a
	// product never overflows or underflows.
	productBound = 1e20
)

// A count is one feature's entry: the weighted ham and spam messages that hold it.
type count struct{ ham, spam float32 }

// A NaiveBayes compares the rates of each feature in spam and in ham. Both are shrunk to
// the feature's overall rate.
type NaiveBayes struct {
	ham, spam float64 // n0, n1: weighted messages learnt
	table     []count
}

// NewNaiveBayes returns an expert with a table of 2^tableBits counts, all 0.
func NewNaiveBayes(tableBits int) *NaiveBayes {
	return &NaiveBayes{table: make([]count, 1<<tableBits)}
}

// Score implements [Expert]. If no feature was seen before, the log-odds are 0 and the
// surprise is highest. Indices must be below 2^tableBits.
func (e *NaiveBayes) Score(f *View) Score {
	if len(f.Index) == 0 {
		return Score{}
	}
	if f.Value != nil {
		return e.Pool([]Expert{e}, f)
	}
	n := float64(len(f.Index))
	s, scales := e.sumBinary(f.Index)
	return e.scored(s/math.Sqrt(n), scales/n)
}

// scored returns the Score of the log-odds s and the mean scale of counts.
func (e *NaiveBayes) scored(s, mean float64) Score {
	return Score{LogOdds: s, Inputs: [MaxInputs]float64{clip(s)}, Surprise: e.surprise(mean)}
}

// Pool implements [Expert]. It adds the experts' counts.
func (e *NaiveBayes) Pool(like []Expert, f *View) Score {
	if len(f.Index) == 0 {
		return Score{}
	}
	var all NaiveBayes // only its totals are used
	for _, other := range like {
		all.ham += other.(*NaiveBayes).ham
		all.spam += other.(*NaiveBayes).spam
	}
	overall, prior := shrinkage/(all.ham+all.spam+1), all.prior()
	var s, scales float64
	for k, i := range f.Index {
		u := 1 / math.Sqrt(float64(len(f.Index)))
		if f.Value != nil {
			i, u = slot(i, f.Value[k]), math.Abs(f.Value[k])
		}
		var a, b float64
		for _, other := range like {
			c := other.(*NaiveBayes).table[i]
			a += float64(c.ham)
			b += float64(c.spam)
		}
		scales += float64(float64(u*u) * float64(scale(a+b)))
		if a+b == 0 {
			continue
		}
		r := float64(overall * (a + b))
		s += float64(u * (logistic.Log((b+r)/(a+r)) + prior))
	}
	return all.scored(s, scales)
}

// sumBinary returns Σ of the log-odds and of the scale of counts.
func (e *NaiveBayes) sumBinary(index []uint32) (s, scales float64) {
	overall := shrinkage / (e.ham + e.spam + 1)
	product, sum, seen, places := 1.0, 0.0, 0, uint64(0)
	for _, i := range index {
		c := e.table[i]
		a, b := float64(c.ham), float64(c.spam)
		places += scale(a + b)
		if a+b == 0 {
			continue
		}
		seen++
		r := float64(overall * (a + b))
		product *= (b + r) / (a + r) // the quotient does not wait for the product
		if product > productBound || product < 1/productBound {
			sum += logistic.Log(product)
			product = 1
		}
	}
	return sum + logistic.Log(product) + float64(float64(seen)*e.prior()), float64(places)
}

// unseen is added to a feature's count (the prior of Krichevsky and Trofimov, The
// performance of universal encoding, 1981).
const unseen = 0.5

// The upper 32 bits of a float64 c are about 2²⁰·(log₂ c + 1023): exact at powers of two,
// at most .0861·2²⁰ too low elsewhere (Mitchell, Computer multiplication and division
// using binary logarithms, 1962). So a feature's logarithm costs two additions, and the
// sum of these integers does not depend on their order.
const (
	scaleUnit = 1 << 20
	scaleBias = 1023
)

// scale returns Mitchell's logarithm of a count.
func scale(c float64) uint64 { return math.Float64bits(c+unseen) >> 32 }

// surprise turns the mean scale of a message's features into its Surprise.
func (e *NaiveBayes) surprise(mean float64) float64 {
	return logistic.Log(e.ham+e.spam+shrinkage) - float64(math.Ln2*(float64(mean/scaleUnit)-scaleBias))
}

// prior is ln((n0+α)/(n1+α)), which turns counts into rates.
func (e *NaiveBayes) prior() float64 {
	return logistic.Log((e.ham + shrinkage) / (e.spam + shrinkage))
}

// slot returns the slot that counts feature i with value v.
func slot(i uint32, v float64) uint32 {
	if v < 0 {
		return i ^ 1
	}
	return i
}

// Learn implements [Expert]. If the margin of was is at most 7, it counts f with ω rounded
// to a multiple of 2⁻¹⁰, and returns ω.
func (e *NaiveBayes) Learn(f *View, was Score, spam bool, ω float64) (counted float64) {
	margin := -was.LogOdds
	if spam {
		margin = was.LogOdds
	}
	if len(f.Index) == 0 || margin > nearError {
		return 0
	}
	e.count(f.Sparse, spam, grid(ω))
	return ω
}

// Withdraw implements [Expert]. It is exact while no count has passed 2¹⁴, and unbiased
// beyond. A feature that no other message had must return to 0: shrinkage is in
// proportion, so a residue of 10⁻⁸ would count like a thousand messages. No count falls
// below 0.
func (e *NaiveBayes) Withdraw(f *View, spam bool, counted float64) {
	e.count(f.Sparse, spam, -grid(counted))
}

// grid rounds a weight to a multiple of 2⁻¹⁰, at least 2⁻¹⁰, so that sums of weights are
// exact in float32 up to 2¹⁴ messages.
func grid(ω float64) float64 { return float64(max(1, int(float64(1024*ω)+0.5))) / 1024 }

// count adds ω, a multiple of 2⁻¹⁰ in [−1, 1], to the total of a class and to the
// counts of f.
func (e *NaiveBayes) count(f feature.Sparse, spam bool, ω float64) {
	if spam {
		e.spam = max(0, e.spam+ω)
	} else {
		e.ham = max(0, e.ham+ω)
	}
	seed := spread(math.Float64bits(e.ham) ^ bits.RotateLeft64(math.Float64bits(e.spam), 32))
	for k, i := range f.Index {
		if f.Value != nil {
			if f.Value[k] == 0 {
				continue
			}
			i = slot(i, f.Value[k])
		}
		c := &e.table[i].ham
		if spam {
			c = &e.table[i].spam
		}
		*c = plus(*c, ω, seed+uint64(i))
	}
}

// plus returns max(0, c+ω), exact up to 2¹⁴ and stochastically rounded beyond: its
// expectation is exact (Connolly, Higham and Mary, Stochastic rounding and its
// probabilistic error analysis, 2021, §2; for counters Morris, Counting large numbers of
// events in small registers, 1978). Rounding to the nearest would make sums of .97 3 % too
// large at 2²⁰, and counts would stop growing at 2²⁴ while the totals grow. A count of 2ᵏ,
// k ≥ 24, is off by at most √(2ᵏ·2ᵏ⁻²³), 3·10⁻⁴ of itself. draw replaces a random number;
// it depends on totals and slot only, so that equal models stay equal.
func plus(c float32, ω float64, draw uint64) float32 {
	sum := max(0, float64(c)+ω) // exact
	near := float32(sum)
	if float64(near) == sum {
		return near
	}
	low := math.Float32bits(near) // of the float32 below sum; sum > 0
	if float64(near) > sum {
		low--
	}
	below, above := math.Float32frombits(low), math.Float32frombits(low+1)
	upward := (sum - float64(below)) / (float64(above) - float64(below))
	if float64(spread(draw)>>11) < float64(upward*0x1p53) {
		return above
	}
	return below
}

// spread is the finalizer of SplitMix64 (Steele, Lea and Flood, Fast splittable
// pseudorandom number generators, 2014).
func spread(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// NaiveBayesSize returns the number of bytes of a NaiveBayes' table and totals:
// 16 + 8·2^tableBits.
func NaiveBayesSize(tableBits int) int { return 16 + 8<<tableBits }

// AppendBinary appends, little endian:
//
//	n0, n1 float64 | (a, b float32) of each slot, from slot 0
func (e *NaiveBayes) AppendBinary(dst []byte) ([]byte, error) {
	dst, b := grow(dst, 16+8*len(e.table))
	binary.LittleEndian.PutUint64(b, math.Float64bits(e.ham))
	binary.LittleEndian.PutUint64(b[8:], math.Float64bits(e.spam))
	b = b[16:]
	for i, c := range e.table {
		binary.LittleEndian.PutUint32(b[8*i:], math.Float32bits(c.ham))
		binary.LittleEndian.PutUint32(b[8*i+4:], math.Float32bits(c.spam))
	}
	return dst, nil
}

// UnmarshalBinary reads what AppendBinary wrote for a table of e's size. After an error e
// must not be used.
func (e *NaiveBayes) UnmarshalBinary(b []byte) error {
	if want := 16 + 8*len(e.table); len(b) != want {
		return fmt.Errorf("naive Bayes expert: %d bytes, want %d", len(b), want)
	}
	// A float64 counts exactly up to here.
	const most = 1 << 53
	e.ham = math.Float64frombits(binary.LittleEndian.Uint64(b))
	e.spam = math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
	if !(e.ham >= 0 && e.ham <= most) || !(e.spam >= 0 && e.spam <= most) {
		return fmt.Errorf("naive Bayes expert: %v ham and %v spam messages", e.ham, e.spam)
	}
	b = b[16:]
	for i := range e.table {
		c := count{
			ham:  math.Float32frombits(binary.LittleEndian.Uint32(b[8*i:])),
			spam: math.Float32frombits(binary.LittleEndian.Uint32(b[8*i+4:])),
		}
		if !(c.ham >= 0 && c.ham <= most) || !(c.spam >= 0 && c.spam <= most) {
			return fmt.Errorf("naive Bayes expert: slot %d counts %v ham and %v spam", i, c.ham, c.spam)
		}
		e.table[i] = c
	}
	return nil
}

// grow appends n bytes to dst and returns it and them.
func grow(dst []byte, n int) (all, tail []byte) {
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	return dst, dst[at:]
}
