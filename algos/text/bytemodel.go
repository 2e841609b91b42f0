package text

import (
	"encoding/binary"
	"fmt"
	"math"

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
	byteShrinkage  = 20  // of the mean log ratio, in bytes
	byteAlphabet   = 128 // a byte's prior count is ½ of so many
)

// NewByteModel returns a model with the counts in table.
func NewByteModel(table Column) *ByteModel { return &ByteModel{table: table} }

// Score implements [Expert]. Its inputs are s = S/√(n+1) and 10·S/(n+21), with S the sum of
// the log ratios of n bytes.
func (e *ByteModel) Score(v *View) Score {
	n := len(v.Bytes)
	if n == 0 {
		return Score{}
	}
	prior := e.prior()
	var was byteCounts
	product, i := 1.0, 0
	for ; i < min(n, longestString-1); i++ { // the first bytes have fewer strings
		var ratio float64
		was, ratio = e.nextByte(v, i, &was, &prior)
		product *= ratio
	}
	sum := logistic.Log(product)
	var some [block]float64
	for index := v.Index[stringsPerByte*i:]; i < n; {
		to := some[:min(block, n-i)]
		e.ratios(to, v.Bytes[i:i+len(to)], index, &was, &prior)
		sum += logistic.Log(productOf(to))
		i, index = i+len(to), index[stringsPerByte*len(to):]
	}
	return byteScore(sum, n)
}

// block is how many ratios ratios makes at once. The product of so many, within e^±5 each, is a normal
// float64: e⁶⁴⁰ < 2¹⁰²³.
const block = 128

// productOf returns the product of at most block ratios, which take turns in four products.
func productOf(ratios []float64) float64 {
	p0, p1, p2, p3 := 1.0, 1.0, 1.0, 1.0
	for ; len(ratios) >= 4; ratios = ratios[4:] {
		p0 *= ratios[0]
		p1 *= ratios[1]
		p2 *= ratios[2]
		p3 *= ratios[3]
	}
	for k, p := range [...]*float64{&p0, &p1, &p2} {
		if k < len(ratios) {
			*p *= ratios[k]
		}
	}
	return float64(p0*p1) * float64(p2*p3)
}

// ratiosGo writes into to the ratio of each byte of text: its probability as spam over that as ham, held within
// e^±5. index has the strings that end at each. before are the counts at the byte before text; it becomes those at
// its end.
func (e *ByteModel) ratiosGo(to []float64, text []byte, index []uint32, before *byteCounts, prior *[2]float64) {
	pairs, stride := e.table.pairs, e.table.stride
	b1, b2, b3, b4 := before[0], before[1], before[2], before[3]
	for i, c := range text {
		four := index[stringsPerByte*i:][:stringsPerByte]
		p2, p3 := pairs[int(four[0])*stride], pairs[int(four[1])*stride]
		p4, p5 := pairs[int(four[2])*stride], pairs[int(four[3])*stride]
		c1 := e.single[c]
		c2 := [2]float64{float64(p2.a), float64(p2.b)}
		c3 := [2]float64{float64(p3.a), float64(p3.b)}
		c4 := [2]float64{float64(p4.a), float64(p4.b)}

		up, down := c1[0]+0.5, prior[0]
		up, down = blend(up, down, c2[0], b1[0])
		up, down = blend(up, down, c3[0], b2[0])
		up, down = blend(up, down, c4[0], b3[0])
		ham, hamDown := blend(up, down, float64(p5.a), b4[0])

		up, down = c1[1]+0.5, prior[1]
		up, down = blend(up, down, c2[1], b1[1])
		up, down = blend(up, down, c3[1], b2[1])
		up, down = blend(up, down, c4[1], b3[1])
		spam, spamDown := blend(up, down, float64(p5.b), b4[1])

		to[i] = held(float64(spam*hamDown) / float64(ham*spamDown))
		b1, b2, b3, b4 = c1, c2, c3, c4
	}
	before[0], before[1], before[2], before[3] = b1, b2, b3, b4
}

// byteCounts are the counts of the last 1 to longestString bytes, of ham and spam.
type byteCounts [longestString][2]float64

// blend returns (up, down) of p' = (g+2p)/(max(c, g)+2), p = up/down, without a division. c
// is the count of the string before and g that of the string with the byte.
func blend(up, down, g, c float64) (float64, float64) {
	most := g
	if c > g {
		most = c
	}
	return float64(g*down) + 2*up, float64(down * (most + 2))
}

// mostRatio is e⁵: a byte's ratio is held within e^±5.
const mostRatio = 148.4131591025766

// held returns the number within e^±5 that is nearest to ratio.
func held(ratio float64) float64 {
	if ratio > mostRatio {
		return mostRatio
	} else if ratio < 1/mostRatio {
		return 1 / mostRatio
	}
	return ratio
}

// prior returns the denominators of a byte's prior.
func (e *ByteModel) prior() [2]float64 {
	return [2]float64{e.totals[0] + byteAlphabet, e.totals[1] + byteAlphabet}
}

// nextByte returns byte i's ratio, and the counts at byte i. before are those at the byte before.
func (e *ByteModel) nextByte(v *View, i int, before *byteCounts, prior *[2]float64) (now byteCounts, ratio float64) {
	longest := min(longestString, i+1)
	now[0] = e.single[v.Bytes[i]]
	for l := 2; l <= longest; l++ {
		p := e.table.at(v.Index[stringsPerByte*i+l-2])
		now[l-1] = [2]float64{float64(p.a), float64(p.b)}
	}
	var up, down [2]float64
	for y := range up {
		up[y], down[y] = now[0][y]+0.5, prior[y]
		for l := 2; l <= longest; l++ {
			up[y], down[y] = blend(up[y], down[y], now[l-1][y], before[l-2][y])
		}
	}
	return now, held(float64(up[1]*down[0]) / float64(up[0]*down[1]))
}

// Terms implements [Expert]. The log ratio of a byte is the term of the first of its strings,
// the byte and the one before it. The longer strings have none.
func (e *ByteModel) Terms(dst []Term, v *View) []Term {
	prior := e.prior()
	var was byteCounts
	n := len(v.Bytes)
	for i := range v.Bytes {
		var ratio float64
		was, ratio = e.nextByte(v, i, &was, &prior)
		dst = append(dst, Term(byteInputs(logistic.Log(ratio), n)))
		for range stringsPerByte - 1 {
			dst = append(dst, Term{})
		}
	}
	return dst
}

// byteScore returns the Score of S over n bytes.
func byteScore(sum float64, n int) Score {
	inputs := byteInputs(sum, n)
	return Score{LogOdds: inputs[0], Inputs: [MaxInputs]float64{clip(inputs[0]), clip(inputs[1])}}
}

// byteInputs returns the inputs of S over n bytes, not clipped.
func byteInputs(sum float64, n int) [MaxInputs]float64 {
	return [MaxInputs]float64{sum / math.Sqrt(float64(n+1)), 10 * sum / float64(n+1+byteShrinkage)}
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

// count adds ω, a multiple of 2⁻¹⁰ in [−2, 2], to the counts of v.
func (e *ByteModel) count(v *View, spam bool, ω float64) {
	y := 0
	if spam {
		y = 1
	}
	e.totals[y] = max(0, e.totals[y]+float64(ω*float64(len(v.Bytes))))
	for _, c := range v.Bytes {
		count := e.single[c][y] + ω
		if count < 0 {
			count = 0
		}
		e.single[c][y] = count
	}
	seed, first := seedOf(e.totals[0], e.totals[1]), min(len(v.Bytes), longestString-1)
	for i := range first { // the first bytes have fewer strings
		at := stringsPerByte * i
		addCountsGo(e.table, spam, v.Index[at:at+i], ω, seed+uint32(at))
	}
	at := stringsPerByte * first
	addCounts(e.table, spam, v.Index[at:stringsPerByte*len(v.Bytes)], ω, seed+uint32(at))
}

// singleSize is the number of bytes of the totals and the counts of single bytes.
const singleSize = 8 * 2 * (1 + 256)

// ByteModelSize returns the number of bytes of a ByteModel: 4,112 + 8·2^tableBits.
func ByteModelSize(tableBits int) int { return singleSize + pairSize<<tableBits }

// AppendBinary appends, little endian:
//
//	N₀, N₁ float64 | (C₀, C₁ float64) of each byte | (C₀, C₁ float32) of each slot
func (e *ByteModel) AppendBinary(dst []byte) ([]byte, error) {
	return e.table.append(e.appendTotals(dst)), nil
}

func (e *ByteModel) appendTotals(dst []byte) []byte {
	for _, c := range append([][2]float64{e.totals}, e.single[:]...) {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(c[0]))
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(c[1]))
	}
	return dst
}

func (e *ByteModel) column() Column { return e.table }

// UnmarshalBinary reads what AppendBinary wrote for a table of e's size. After an error e
// must not be used.
func (e *ByteModel) UnmarshalBinary(b []byte) error {
	if want := singleSize + pairSize*e.table.len(); len(b) != want {
		return fmt.Errorf("byte model: %d bytes, want %d", len(b), want)
	}
	pairs, err := e.readTotals(b)
	if err != nil {
		return err
	}
	if bad := e.table.read(pairs, validCount); bad >= 0 {
		return fmt.Errorf("byte model: slot %d holds no counts", bad)
	}
	return nil
}

func (e *ByteModel) readTotals(b []byte) (rest []byte, err error) {
	for i := -1; i < len(e.single); i++ {
		to := &e.totals
		if i >= 0 {
			to = &e.single[i]
		}
		for y := range to {
			to[y] = math.Float64frombits(binary.LittleEndian.Uint64(b))
			if b = b[8:]; !(to[y] >= 0 && to[y] <= mostCount) || math.Signbit(to[y]) {
				return nil, fmt.Errorf("byte model: byte %d has the count %v", i, to[y])
			}
		}
	}
	return b, nil
}
