package text

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
)

// A product of ratios outside (1/productBound, productBound) is added to a sum of
// logarithms. One ratio lies between α/(n0+n1+α+1) and its inverse, so that a product
// never overflows or underflows.
const productBound = 1e20

// A NaiveBayesConfig describes a NaiveBayes.
type NaiveBayesConfig struct {
	Shrinkage float64 // α, in messages
	Margin    float64 // in nats: up to this margin a message is learnt
	Inputs    int     // 1: the log-odds s; 2: s and c; 3: s, c and z
	Surprise  bool    // set Score.Surprise
}

// A NaiveBayes compares the rates of each feature in spam and in ham. Both are shrunk to
// the feature's overall rate. A feature's pair is (a, b): the weighted ham and spam
// messages that hold it.
type NaiveBayes struct {
	cfg       NaiveBayesConfig
	ham, spam float64 // n0, n1: weighted messages learnt
	table     Column
}

// NewNaiveBayes returns an expert with the counts in table.
func NewNaiveBayes(table Column, cfg NaiveBayesConfig) *NaiveBayes {
	return &NaiveBayes{cfg: cfg, table: table}
}

// Score implements [Expert]. If no feature was seen before, the log-odds are 0 and the
// surprise is highest. Indices must be below 2^tableBits.
func (e *NaiveBayes) Score(f *View) Score {
	n := len(f.Index)
	switch {
	case n == 0:
		return Score{}
	case f.Value != nil:
		return e.weighted(f)
	case e.cfg.Inputs == 1:
		s, scales := e.sumRatios(f.Index)
		return e.scored(evidence{sum: s / math.Sqrt(float64(n))}, scales/float64(n))
	}
	t := e.newTerms()
	var sums evidenceLanes
	places := t.features(&sums, e.table, f.Index)
	u := 1 / math.Sqrt(float64(n))
	return e.scored(evidence{
		float64(u * sums[0].total()), sums[1].total(), sums[2].total(), float64(u * sums[3].total()),
	}, float64(places)/float64(n))
}

// lanes are four sums in which the terms of a sum take turns: the first, the fifth, … are in lanes[0]. So
// four are added at once.
type lanes [4]float64

func (l *lanes) total() float64 { return (l[0] + l[1]) + (l[2] + l[3]) }

// evidenceLanes are the lanes of Σr, Σr², Σr³ and Σz.
type evidenceLanes [4]lanes

// An evidence sums what features say. r is a feature's log-odds and z the standardised
// difference of its rates. Each feature has the weight u = |u_i|.
type evidence struct {
	sum            float64 // Σ u·r
	squares, cubes float64 // Σ n·u²·r², Σ n·u²·r³
	rates          float64 // Σ u·z
}

// terms are what all features have in common.
type terms struct {
	overall, prior float64
	ham, spam      float64 // 1/N₀, 1/N₁
	all            float64 // 1/(N₀+N₁)
	both           float64 // 1/N₀ + 1/N₁
	standardised   bool    // z is wanted
}

func (e *NaiveBayes) newTerms() terms {
	α := e.cfg.Shrinkage
	ham, spam := e.ham+α, e.spam+α
	return terms{
		overall: α / (e.ham + e.spam + 1), prior: e.prior(),
		ham: 1 / ham, spam: 1 / spam, all: 1 / (ham + spam), both: 1/ham + 1/spam,
		standardised: e.cfg.Inputs > 2,
	}
}

// mostDeviation bounds a feature's z. leastSpread bounds p(1−p) from below.
const mostDeviation, leastSpread = 6, 1e-6

// feature returns r and z of a feature of counts a and b, not both 0.
func (t *terms) feature(a, b float64) (r, z float64) {
	toward := float64(t.overall * (a + b))
	r = logistic.QuickLog((b+toward)/(a+toward)) + t.prior
	if t.standardised {
		p := float64((a + b + 0.5) * t.all)
		spread := float64(max(leastSpread, float64(p*(1-p))) * t.both)
		z = (float64(b*t.spam) - float64(a*t.ham)) / math.Sqrt(spread)
		z = max(-mostDeviation, min(mostDeviation, z))
	}
	return r, z
}

// featuresGo adds what features say to sums, 0 for those that no message had, and returns the sum of
// their scales. It adds no z that is not wanted.
func (t *terms) featuresGo(sums *evidenceLanes, table Column, index []uint32) (places uint64) {
	for k, i := range index {
		c := table.at(i)
		a, b := float64(c.a), float64(c.b)
		places += scale(a + b)
		if a+b == 0 {
			continue
		}
		r, z := t.feature(a, b)
		square, lane := float64(r*r), k%len(lanes{})
		sums[0][lane] += r
		sums[1][lane] += square
		sums[2][lane] += float64(square * r)
		sums[3][lane] += z
	}
	return places
}

// scored returns the Score of evidence and of the mean scale of counts.
func (e *NaiveBayes) scored(all evidence, mean float64) Score {
	s := Score{LogOdds: all.sum, Inputs: [MaxInputs]float64{clip(all.sum)}}
	if e.cfg.Surprise {
		s.Surprise = e.surprise(mean)
	}
	if e.cfg.Inputs > 1 {
		s.Inputs[1] = clip(2 * all.cubes / (all.squares + 1))
	}
	if e.cfg.Inputs > 2 {
		s.Inputs[2] = clip(all.rates)
	}
	return s
}

// weighted is Score of features with values.
func (e *NaiveBayes) weighted(f *View) Score {
	t, n := e.newTerms(), float64(len(f.Index))
	var all evidence
	scales := 0.0
	for k := range f.Index {
		a, b, u := e.counts(f, k)
		u2 := float64(u * u)
		scales += float64(u2 * float64(scale(a+b)))
		if a+b == 0 {
			continue
		}
		r, z := t.feature(a, b)
		square := float64(float64(n*u2) * float64(r*r))
		all.sum += float64(u * r)
		all.squares += square
		all.cubes += float64(square * r)
		all.rates += float64(u * z)
	}
	return e.scored(all, scales)
}

// counts returns the counts of feature k of f, and u = |u_k|.
func (e *NaiveBayes) counts(f *View, k int) (a, b, u float64) {
	i := f.Index[k]
	u = 1 / math.Sqrt(float64(len(f.Index)))
	if f.Value != nil {
		i, u = slot(i, f.Value[k]), math.Abs(f.Value[k])
	}
	c := e.table.at(i)
	return float64(c.a), float64(c.b), u
}

// Terms implements [Expert]. A feature's terms are u·r, its share in c's numerator over c's
// denominator, and u·z.
func (e *NaiveBayes) Terms(dst []Term, f *View) []Term {
	t, n := e.newTerms(), float64(len(f.Index))
	squares, start := 0.0, len(dst)
	for k := range f.Index {
		a, b, u := e.counts(f, k)
		if a+b == 0 {
			dst = append(dst, Term{})
			continue
		}
		r, z := t.feature(a, b)
		square := float64(float64(n*float64(u*u)) * float64(r*r))
		squares += square
		dst = append(dst, Term{u * r, 2 * square * r, u * z})
	}
	for k := range dst[start:] {
		dst[start+k][1] /= squares + 1
	}
	return dst
}

// sumRatios returns Σ of the log-odds and of the scale of counts. It takes the logarithm of
// products of ratios.
func (e *NaiveBayes) sumRatios(index []uint32) (s, scales float64) {
	overall := e.cfg.Shrinkage / (e.ham + e.spam + 1)
	pairs, stride := e.table.pairs, e.table.stride
	product, sum, seen, places := 1.0, 0.0, 0, uint64(0)
	for _, i := range index {
		c := pairs[int(i)*stride]
		a, b := float64(c.a), float64(c.b)
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
	return logistic.Log(e.ham+e.spam+e.cfg.Shrinkage) - float64(math.Ln2*(float64(mean/scaleUnit)-scaleBias))
}

// prior is ln((n0+α)/(n1+α)), which turns counts into rates.
func (e *NaiveBayes) prior() float64 {
	return logistic.Log((e.ham + e.cfg.Shrinkage) / (e.spam + e.cfg.Shrinkage))
}

// slot returns the slot that counts feature i with value v.
func slot(i uint32, v float64) uint32 {
	if v < 0 {
		return i ^ 1
	}
	return i
}

// Learn implements [Expert]. If the margin of was is at most cfg.Margin, it counts f with ω rounded
// to a multiple of 2⁻¹⁰, and returns ω.
func (e *NaiveBayes) Learn(f *View, was Score, spam bool, ω float64) (counted float64) {
	margin := -was.LogOdds
	if spam {
		margin = was.LogOdds
	}
	if len(f.Index) == 0 || margin > e.cfg.Margin {
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

// count adds ω, a multiple of 2⁻¹⁰ in [−2, 2], to the total of a class and to the
// counts of f.
func (e *NaiveBayes) count(f feature.Sparse, spam bool, ω float64) {
	if spam {
		e.spam = max(0, e.spam+ω)
	} else {
		e.ham = max(0, e.ham+ω)
	}
	seed := seedOf(e.ham, e.spam)
	if f.Value == nil {
		addCounts(e.table, spam, f.Index, ω, seed)
		return
	}
	for k, i := range f.Index {
		if f.Value[k] != 0 {
			addCountsGo(e.table, spam, []uint32{slot(i, f.Value[k])}, ω, seed+uint32(k))
		}
	}
}

// addCountsGo adds ω, a multiple of 2⁻¹⁰, to the ham or spam counts of features, to none below 0. Of four in a row that
// share a slot one is added. The draw of the first feature is seed's.
func addCountsGo(table Column, spam bool, index []uint32, ω float64, seed uint32) {
	for ; len(index) > 0; index = index[min(4, len(index)):] {
		var to [4]*float32
		var sums [4]float32
		four := index[:min(4, len(index))]
		for k, i := range four {
			c := table.at(i)
			if to[k] = &c.a; spam {
				to[k] = &c.b
			}
			sums[k] = plus(*to[k], ω, draw(seed))
			seed++
		}
		for k := range four {
			*to[k] = sums[k]
		}
	}
}

// plus returns max(0, c+ω), exact up to 2¹⁴ and stochastically rounded beyond: its
// expectation is exact (Connolly, Higham and Mary, Stochastic rounding and its
// probabilistic error analysis, 2021, §2; for counters Morris, Counting large numbers of
// events in small registers, 1978). Rounding to the nearest would make sums of .97 3 % too
// large at 2²⁰, and counts would stop growing at 2²⁴ while the totals grow. A count of 2ᵏ,
// k ≥ 24, is off by at most √(2ᵏ·2ᵏ⁻²³), 3·10⁻⁴ of itself. It rounds up where draw, of
// 29 bits, is below the bits that a float32 lacks.
func plus(c float32, ω float64, draw uint32) float32 {
	b := math.Float64bits(max(0, float64(c)+ω)) // the sum is exact
	rest := b & (1<<29 - 1)                     // its distance from the float32 below, in 2²⁹ths of a step
	below := math.Float32bits(float32(math.Float64frombits(b - rest)))
	return math.Float32frombits(below + (draw-uint32(rest))>>31)
}

// draw replaces a random number of 29 bits. It depends on totals and on the place in a list only, so that
// equal models stay equal. It is the finalizer of MurmurHash3 (Appleby 2011).
func draw(v uint32) uint32 {
	v = (v ^ v>>16) * 0x85ebca6b
	v = (v ^ v>>13) * 0xc2b2ae35
	return (v ^ v>>16) >> 3
}

// seedOf returns the first draw of an event after which the totals are ham and spam. It is the finalizer of
// SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014).
func seedOf(ham, spam float64) uint32 {
	v := math.Float64bits(ham) ^ bits.RotateLeft64(math.Float64bits(spam), 32)
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return uint32((v ^ v>>31) >> 32)
}

// NaiveBayesSize returns the number of bytes of a NaiveBayes' table and totals:
// 16 + 8·2^tableBits.
func NaiveBayesSize(tableBits int) int { return 16 + pairSize<<tableBits }

// AppendBinary appends, little endian:
//
//	n0, n1 float64 | (a, b float32) of each slot, from slot 0
func (e *NaiveBayes) AppendBinary(dst []byte) ([]byte, error) {
	return e.table.append(e.appendTotals(dst)), nil
}

func (e *NaiveBayes) appendTotals(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(e.ham))
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(e.spam))
}

func (e *NaiveBayes) column() Column { return e.table }

// mostCount is the largest count. A float64 counts exactly up to here.
const mostCount = 1 << 53

// UnmarshalBinary reads what AppendBinary wrote for a table of e's size. After an error e
// must not be used.
func (e *NaiveBayes) UnmarshalBinary(b []byte) error {
	if want := 16 + pairSize*e.table.len(); len(b) != want {
		return fmt.Errorf("naive Bayes expert: %d bytes, want %d", len(b), want)
	}
	pairs, err := e.readTotals(b)
	if err != nil {
		return err
	}
	if bad := e.table.read(pairs, validCount); bad >= 0 {
		return fmt.Errorf("naive Bayes expert: slot %d holds no counts", bad)
	}
	return nil
}

func (e *NaiveBayes) readTotals(b []byte) (rest []byte, err error) {
	e.ham = math.Float64frombits(binary.LittleEndian.Uint64(b))
	e.spam = math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
	if !(e.ham >= 0 && e.ham <= mostCount) || !(e.spam >= 0 && e.spam <= mostCount) {
		return nil, fmt.Errorf("naive Bayes expert: %v ham and %v spam messages", e.ham, e.spam)
	}
	return b[16:], nil
}

func validCount(c pair) bool {
	return c.a >= 0 && c.a <= mostCount && c.b >= 0 && c.b <= mostCount
}
