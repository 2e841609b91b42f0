package boost

import (
	"fmt"
	"math"
)

// A Stump is the weak hypothesis
//
//	h(x) = polarity if x_feature > threshold, else −polarity,
//
// polarity ±1. A NaN is not above a threshold.
type Stump struct {
	Feature   int
	Threshold float64
	Polarity  int
}

// Value returns h(x), ±1.
func (h Stump) Value(x []float64) float64 {
	if x[h.Feature] > h.Threshold {
		return float64(h.Polarity)
	}
	return float64(-h.Polarity)
}

// A Candidate is cut number Cut of Feature; its threshold is
// Data.Cuts(Feature)[Cut].
type Candidate struct {
	Feature, Cut int
	// Edge is Σ wᵢyᵢh(xᵢ) of the stump with polarity +1, in units of Fix. With
	// weights that sum to 1, the weighted error of that stump is (1−edge)/2.
	Edge int64
}

// Stump returns the candidate's stump with the polarity whose edge is not negative.
func (d *Data) Stump(c Candidate) Stump {
	h := Stump{Feature: c.Feature, Threshold: d.Cuts(c.Feature)[c.Cut], Polarity: 1}
	if c.Edge < 0 {
		h.Polarity = -1
	}
	return h
}

// size returns |Edge|.
func (c Candidate) size() int64 { return max(c.Edge, -c.Edge) }

// NoEdge reports whether the edge counts as 0. Under the weights that a round leaves, its own
// stump has ε = ½ in theory and ½ ± 1e−16 in floating point.
func (c Candidate) NoEdge() bool { return c.size() <= tie }

// SignsTo writes +1 to dst for each row above the candidate's threshold, else −1:
// the stump with polarity +1 on the data. dst has length N.
func (d *Data) SignsTo(dst []float64, c Candidate) {
	d.check(len(dst))
	threshold := d.Cuts(c.Feature)[c.Cut]
	for i, v := range d.Column(c.Feature) {
		dst[i] = -1
		if v > threshold {
			dst[i] = 1
		}
	}
}

// MarginsTo returns the candidate's stump h and the sums of w over the rows that it
// gets right and wrong. It writes yᵢh(xᵢ) to dst.
func (d *Data) MarginsTo(dst []float64, c Candidate, y, w []float64) (h Stump, right, wrong float64) {
	h = d.Stump(c)
	d.SignsTo(dst, c)
	for i, v := range dst {
		m := v * float64(h.Polarity) * y[i]
		dst[i] = m
		// Multiplied by 0 and 1: the processor could not predict a branch.
		is := (1 + m) / 2
		right += float64(w[i] * is)
		wrong += float64(w[i] * (1 - is))
	}
	return h, right, wrong
}

// A Search finds candidates in one Data. It owns its scratch, so searches allocate
// nothing. One goroutine may use it at a time.
type Search struct {
	data    *Data
	below   []int64     // one column's sums by cut
	leaders []Candidate // the best candidate of each feature
	hist    [group]histogram
}

// none stands for no candidate.
var none = Candidate{Cut: -1}

// NewSearch returns a search over d.
func (d *Data) NewSearch() *Search {
	longest := 0
	for j := range d.dim {
		longest = max(longest, len(d.Cuts(j)))
	}
	return &Search{data: d, below: make([]int64, longest), leaders: make([]Candidate, d.dim)}
}

// Best returns the candidate with the largest |Edge|: in the better polarity, its
// stump has the least weighted error. w are signed weights from Fix. Of equal
// candidates (within 2⁻⁴⁶ of the total weight) the first feature's first threshold
// wins. It returns false if every feature is constant. It costs N·D additions,
// fewer if one bin dominates a column, and allocates nothing.
func (s *Search) Best(w []int64) (Candidate, bool) {
	d := s.data
	d.check(len(w))
	total := sum(w)
	if d.binned == nil {
		for j := range d.dim {
			s.leaders[j] = leaderOf(j, s.Below(j, w), total)
		}
	} else {
		for j := range s.leaders {
			s.leaders[j] = none // constant columns are not visited
		}
		d.binned.each(&s.hist, w, func(j int, h *histogram) {
			s.leaders[j] = leaderOf(j, h.accumulate(len(d.Cuts(j))), total)
		})
	}
	best := none
	for _, c := range s.leaders {
		if c.Cut >= 0 && (best.Cut < 0 || c.size() > best.size()+tie) {
			best = c
		}
	}
	return best, best.Cut >= 0
}

// Below returns, for each cut of a feature, Σ w over the rows at or below it. The
// edge of a candidate with polarity +1 is then Σw − 2·below. The result is valid
// until the next use of the search. It costs N additions.
func (s *Search) Below(feature int, w []int64) []int64 {
	d := s.data
	d.check(len(w))
	below := s.below[:len(d.Cuts(feature))]
	if d.binned != nil {
		h := &s.hist[0]
		h.fill(d.binned.column(feature), w)
		copy(below, h.accumulate(len(below)))
		return below
	}
	d.sorted.belowTo(below, feature, w)
	return below
}

// leaderOf returns the best candidate of one feature.
func leaderOf(feature int, below []int64, total int64) Candidate {
	best, most := none, int64(-1-tie)
	for c, b := range below {
		edge := total - 2*b
		if size := max(edge, -edge); size > most+tie {
			best, most = Candidate{Feature: feature, Cut: c, Edge: edge}, size
		}
	}
	return best
}

// String returns the hypothesis as a formula, such as "x3 > 0.25".
func (h Stump) String() string {
	if h.Polarity < 0 {
		return fmt.Sprintf("x%d ≤ %v", h.Feature, h.Threshold)
	}
	return fmt.Sprintf("x%d > %v", h.Feature, h.Threshold)
}

const (
	// The absolute weights of a vector in fixed point sum to less than 2^fixedBits
	// units. So any sum of them, and twice that, fits an int64. A unit is less than
	// 1.8e−18 of the total.
	fixedBits = 60

	// Two candidates whose edges differ by less than 2^tieBits units, 2⁻⁴⁶
	// (1.4e−14) of the total weight, are equal, and the first wins. Sums that are equal
	// in theory seldom are in float64 or in units, if their weights are products that
	// were multiplied in another order.
	tieBits = fixedBits - 46
	tie     = 1 << tieBits
)

// Fix writes the signed weights wᵢ·yᵢ to dst in fixed point, rounded towards zero.
// It returns the unit, a power of two below 2⁻⁵⁹ of their total. Sums in fixed
// point are exact in any order, so the exact search and the histograms find the
// same candidates.
//
// w are weights ≥ 0 with a total up to 2⁹⁰⁰; y are ±1. If the total is below 2⁻⁹⁰⁰,
// the unit and dst are 0. Fix panics if a weight is NaN or negative, the total too
// large, or the lengths differ.
func Fix(dst []int64, w, y []float64) (unit float64) {
	if len(w) != len(dst) || len(y) != len(dst) {
		panic(fmt.Sprintf("boost: %d weights and %d labels for %d rows", len(w), len(y), len(dst)))
	}
	sum := 0.0
	for i, v := range w {
		if !(v >= 0) {
			panic(fmt.Sprintf("boost: weight %d is %v", i, v))
		}
		sum += v
	}
	if sum > 0x1p900 {
		panic(fmt.Sprintf("boost: weights add up to %v: scale them down", sum))
	}
	if sum < 0x1p-900 {
		clear(dst)
		return 0
	}
	_, exp := math.Frexp(sum) // sum < 2^exp
	scale := math.Ldexp(1, fixedBits-exp)
	for i, v := range w {
		dst[i] = int64(v * y[i] * scale)
	}
	return math.Ldexp(1, exp-fixedBits)
}
