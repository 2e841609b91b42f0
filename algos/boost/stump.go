package boost

import "fmt"

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

// A Candidate is a place where a search may cut: cut number Cut of Feature, whose
// threshold is Data.Cuts(Feature)[Cut].
type Candidate struct {
	Feature, Cut int
	// Edge is Σ wᵢyᵢh(xᵢ) of the stump with polarity +1, in units of Fix. With
	// weights that sum to 1, the weighted error of that stump is (1−edge)/2.
	Edge int64
}

// Stump returns the hypothesis of the candidate whose edge is not negative.
func (d *Data) Stump(c Candidate) Stump {
	h := Stump{Feature: c.Feature, Threshold: d.Cuts(c.Feature)[c.Cut], Polarity: 1}
	if c.Edge < 0 {
		h.Polarity = -1
	}
	return h
}

// SignsTo writes +1 to dst for each row above the candidate's threshold, else −1:
// the stump with polarity +1 on the data. dst has length N.
func (d *Data) SignsTo(dst []float64, c Candidate) {
	d.check(len(dst))
	if d.bins != nil {
		cut := byte(c.Cut)
		for i, b := range d.bins[c.Feature*d.rows : (c.Feature+1)*d.rows] {
			dst[i] = -1
			if b > cut {
				dst[i] = 1
			}
		}
		return
	}
	threshold := d.Cuts(c.Feature)[c.Cut]
	for i, v := range d.Column(c.Feature) {
		dst[i] = -1
		if v > threshold {
			dst[i] = 1
		}
	}
}

// A Search finds candidates over one Data. It owns the scratch, so that a search
// allocates nothing, and serves one goroutine.
type Search struct {
	data    *Data
	below   []int64  // one column's sums, a number per cut
	leaders []leader // the best candidate of each feature

	// For quantised data: the columns that are summed group by group, those
	// summed by their few rows outside the dominant bin, and the histograms.
	dense, sparse []int
	hist          [group]histogram
}

// NewSearch returns a search over d.
func (d *Data) NewSearch() *Search {
	longest := 0
	for j := range d.dim {
		longest = max(longest, d.first[j+1]-d.first[j])
	}
	s := &Search{data: d, below: make([]int64, longest), leaders: make([]leader, d.dim)}
	if d.bins != nil {
		s.dense, s.sparse = d.denseColumns(), d.sparseColumns()
	}
	return s
}

// Best returns the candidate whose stump, in the better of its polarities, has
// the least weighted error, that is the largest |Edge|. w are signed weights as
// Fix leaves them. Of equal candidates (within 2⁻⁴⁰ of the total weight) the
// first feature's first threshold wins. It is false if there is no candidate:
// every feature is constant. One pass over the data: N·D additions, fewer where
// one bin dominates a column; nothing is allocated.
func (s *Search) Best(w []int64) (Candidate, bool) {
	d := s.data
	d.check(len(w))
	total := sum(w)
	if d.bins == nil {
		for j := range d.dim {
			s.leaders[j] = leaderOf(j, s.Below(j, w), total)
		}
	} else {
		s.histograms(w, total)
	}
	best := leader{edge: -1 - tie}
	for _, l := range s.leaders {
		if l.edge > best.edge+tie {
			best = l
		}
	}
	return best.candidate, best.edge >= 0
}

// histograms finds the leader of each column of quantised data.
func (s *Search) histograms(w []int64, total int64) {
	d := s.data
	for j := range s.leaders {
		s.leaders[j] = leader{edge: -1 - tie}
	}
	lead := func(j int, h *histogram) {
		s.leaders[j] = leaderOf(j, h.accumulate(d.first[j+1]-d.first[j]), total)
	}
	dense := s.dense
	for ; len(dense) >= group; dense = dense[group:] {
		fillGroup(&s.hist, d.binsOf(dense[0]), d.binsOf(dense[1]), d.binsOf(dense[2]), d.binsOf(dense[3]), w)
		for k, j := range dense[:group] {
			lead(j, &s.hist[k])
		}
	}
	h := &s.hist[0]
	for _, j := range dense {
		h.fill(d.binsOf(j), w)
		lead(j, h)
	}
	for _, j := range s.sparse {
		h.fillSparse(&d.sparse[j], w, total)
		lead(j, h)
	}
}

// Below returns, for each cut of a feature, Σ w over the rows at or below it. The
// edge of a candidate with polarity +1 is then Σw − 2·below. The answer holds
// until the search is used again. It costs N additions.
func (s *Search) Below(feature int, w []int64) []int64 {
	d := s.data
	d.check(len(w))
	below := s.below[:d.first[feature+1]-d.first[feature]]
	if d.bins != nil {
		h := &s.hist[0]
		if d.sparse[feature].rows != nil {
			h.fillSparse(&d.sparse[feature], w, sum(w))
		} else {
			h.fill(d.binsOf(feature), w)
		}
		copy(below, h.accumulate(len(below)))
		return below
	}
	order := d.order[feature*d.rows : (feature+1)*d.rows]
	k, at := 0, int64(0)
	for c, end := range d.ends[d.first[feature]:d.first[feature+1]] {
		for ; k < int(end); k++ {
			at += w[order[k]]
		}
		below[c] = at
	}
	return below
}

// accumulate turns the weights of the bins into those at or below each cut.
func (h *histogram) accumulate(cuts int) []int64 {
	at := int64(0)
	below := h[:cuts]
	for c, v := range below {
		at += v
		below[c] = at
	}
	return below
}

// A leader is the best candidate of some.
type leader struct {
	candidate Candidate
	edge      int64 // its |Edge|; below −tie if there is no candidate
}

// leaderOf returns the best candidate of one feature.
func leaderOf(feature int, below []int64, total int64) leader {
	l := leader{edge: -1 - tie}
	for c, b := range below {
		edge := total - 2*b
		size := edge
		if size < 0 {
			size = -size
		}
		if size > l.edge+tie {
			l = leader{candidate: Candidate{Feature: feature, Cut: c, Edge: edge}, edge: size}
		}
	}
	return l
}

func sum(w []int64) int64 {
	total := int64(0)
	for _, v := range w {
		total += v
	}
	return total
}

// String returns the hypothesis as a formula, such as "x3 > 0.25".
func (h Stump) String() string {
	if h.Polarity < 0 {
		return fmt.Sprintf("x%d ≤ %v", h.Feature, h.Threshold)
	}
	return fmt.Sprintf("x%d > %v", h.Feature, h.Threshold)
}
