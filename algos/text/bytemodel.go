package text

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"hamlet/algos/internal/logistic"
)

// A ByteModel predicts each byte of a text from the bytes before it, once as ham and once
// as spam (prediction by partial matching; Cleary and Witten, Data compression using
// adaptive coding and partial string matching, 1984; for spam Bratko et al., Spam filtering
// using statistical data compression models, JMLR 2006). Its view is [feature.Hasher.Strings]:
// the strings of 2 to longestString bytes that end at each byte. A string's pair is (ham,
// spam): how often it was learnt. Single bytes have exact counts.
type ByteModel struct {
	totals [2]float64      // N_y: bytes learnt as ham, as spam
	single [256][2]float64 // C_y of each byte
	table  Column
}

const (
	longestString  = 5
	stringsPerByte = longestString - 1
	byteMargin     = 7   // in nats: up to this margin of s a text is learnt
	mostByteRatio  = 5   // |ln p₁/p₀| of a byte
	byteShrinkage  = 20  // of the mean log ratio, in bytes
	byteAlphabet   = 128 // a byte's prior count is ½ of so many
)

// NewByteModel returns a model with the counts in table.
func NewByteModel(table Column) *ByteModel { return &ByteModel{table: table} }

// Score implements [Expert]. Its inputs are s = S/√(n+1) and 10·S/(n+21), with S the sum of
// the log ratios of n bytes.
func (e *ByteModel) Score(v *View) Score { return e.Pool([]Expert{e}, v) }

// Pool implements [Expert]. It adds the experts' counts.
func (e *ByteModel) Pool(like []Expert, v *View) Score {
	n := len(v.Bytes)
	if n == 0 {
		return Score{}
	}
	prior := [2]float64{byteAlphabet, byteAlphabet}
	for _, other := range like {
		for y := range prior {
			prior[y] += other.(*ByteModel).totals[y]
		}
	}
	// p_y is up[y]/down[y].
	product, sum := 1.0, 0.0
	var before [longestString][2]float64 // before[L]: counts of the last L bytes
	for i, c := range v.Bytes {
		var now [longestString + 1][2]float64
		for _, other := range like {
			m := other.(*ByteModel)
			now[1][0] += m.single[c][0]
			now[1][1] += m.single[c][1]
			for l := 2; l <= min(longestString, i+1); l++ {
				p := m.table.at(v.Index[stringsPerByte*i+l-2])
				now[l][0] += float64(p.a)
				now[l][1] += float64(p.b)
			}
		}
		var up, down [2]float64
		for y := range up {
			up[y], down[y] = now[1][y]+0.5, prior[y]
			for l := 2; l <= min(longestString, i+1); l++ {
				g, context := now[l][y], before[l-1][y]
				up[y] = float64(g*down[y]) + 2*up[y]
				down[y] *= max(g, context) + 2
			}
		}
		ratio := float64(up[1]*down[0]) / float64(up[0]*down[1])
		product *= max(1/mostRatio, min(mostRatio, ratio))
		if product > productBound || product < 1/productBound {
			sum += logistic.Log(product)
			product = 1
		}
		copy(before[:], now[:longestString])
	}
	return byteScore(sum+logistic.Log(product), n)
}

// mostRatio is e⁵.
const mostRatio = 148.4131591025766

// byteScore returns the Score of S over n bytes.
func byteScore(sum float64, n int) Score {
	s := sum / math.Sqrt(float64(n+1))
	return Score{LogOdds: s, Inputs: [MaxInputs]float64{clip(s), clip(10 * sum / float64(n+1+byteShrinkage))}}
}

// Learn implements [Expert]. If the margin of was is at most byteMargin, it counts v with
// ω rounded to a multiple of 2⁻¹⁰, and returns ω.
func (e *ByteModel) Learn(v *View, was Score, spam bool, ω float64) (counted float64) {
	margin := -was.LogOdds
	if spam {
		margin = was.LogOdds
	}
	if len(v.Bytes) == 0 || margin > byteMargin {
		return 0
	}
	e.count(v, spam, grid(ω))
	return ω
}

// Withdraw implements [Expert]. It is exact while no count has passed 2¹⁴, and unbiased
// beyond. No count falls below 0.
func (e *ByteModel) Withdraw(v *View, spam bool, counted float64) { e.count(v, spam, -grid(counted)) }

// count adds ω, a multiple of 2⁻¹⁰ in [−1, 1], to the counts of v.
func (e *ByteModel) count(v *View, spam bool, ω float64) {
	y := 0
	if spam {
		y = 1
	}
	e.totals[y] = max(0, e.totals[y]+float64(ω*float64(len(v.Bytes))))
	seed := spread(math.Float64bits(e.totals[0]) ^ bits.RotateLeft64(math.Float64bits(e.totals[1]), 32))
	for i, c := range v.Bytes {
		e.single[c][y] = max(0, e.single[c][y]+ω)
		for l := 2; l <= min(longestString, i+1); l++ {
			k := stringsPerByte*i + l - 2
			p := e.table.at(v.Index[k])
			to := &p.a
			if spam {
				to = &p.b
			}
			*to = plus(*to, ω, seed+uint64(k))
		}
	}
}

// byteCounts is the number of bytes of the totals and the counts of single bytes.
const byteCounts = 8 * 2 * (1 + 256)

// ByteModelSize returns the number of bytes of a ByteModel: 4,112 + 8·2^tableBits.
func ByteModelSize(tableBits int) int { return byteCounts + pairSize<<tableBits }

// AppendBinary appends, little endian:
//
//	N₀, N₁ float64 | (C₀, C₁ float64) of each byte | (C₀, C₁ float32) of each slot
func (e *ByteModel) AppendBinary(dst []byte) ([]byte, error) {
	for _, c := range append([][2]float64{e.totals}, e.single[:]...) {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(c[0]))
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(c[1]))
	}
	return e.table.append(dst), nil
}

// UnmarshalBinary reads what AppendBinary wrote for a table of e's size. After an error e
// must not be used.
func (e *ByteModel) UnmarshalBinary(b []byte) error {
	if want := byteCounts + pairSize*e.table.len(); len(b) != want {
		return fmt.Errorf("byte model: %d bytes, want %d", len(b), want)
	}
	for i := -1; i < len(e.single); i++ {
		to := &e.totals
		if i >= 0 {
			to = &e.single[i]
		}
		for y := range to {
			to[y] = math.Float64frombits(binary.LittleEndian.Uint64(b))
			if b = b[8:]; !(to[y] >= 0 && to[y] <= mostCount) || math.Signbit(to[y]) {
				return fmt.Errorf("byte model: byte %d has the count %v", i, to[y])
			}
		}
	}
	if bad := e.table.read(b, validCount); bad >= 0 {
		return fmt.Errorf("byte model: slot %d holds no counts", bad)
	}
	return nil
}
