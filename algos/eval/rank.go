package eval

import (
	"iter"
	"math"
	"slices"
)

// A tie is the events with one score, or in one bin of the histogram.
type tie struct {
	ham, spam int
	p         float64 // sum of the probabilities
}

// calibrationBins is the number of bins of equal count of ECE.
const calibrationBins = 15

// rank computes 1-ROCA%, sm% at 0.1 % hm and ECE in one pass. ties come in ascending order
// of the score.
func rank(ties iter.Seq[tie], ham, spam int) (roca, sm, ece Measure) {
	var (
		spamBelow, hamBelow int
		wrong               float64 // pairs in the wrong order
		missed              = spam  // the threshold is above all scores
		found               bool
		cal                 = calibration{width: ham + spam}
	)
	for t := range ties {
		// A threshold at this score calls everything from here on spam.
		if !found && (ham-hamBelow)*1000 <= ham {
			missed, found = spamBelow, true
		}
		wrong += float64(t.ham) * (float64(spamBelow) + float64(t.spam)/2)
		spamBelow += t.spam
		hamBelow += t.ham
		cal.add(t)
	}
	ece = Measure(cal.gaps / float64(calibrationBins*cal.width)) // 0/0 without an event
	if ham == 0 || spam == 0 {
		return Measure(math.NaN()), Measure(math.NaN()), ece
	}
	return Measure(100 * wrong / (float64(ham) * float64(spam))),
		Measure(100 * float64(missed) / float64(spam)), ece
}

// Rank computes 1-ROCA%, sm% at 0.1 % hm and ECE of points whose counts are whole. They come in
// ascending order of the log-odds, always the same one.
func Rank(points iter.Seq[Point]) (roca, sm, ece Measure) {
	var ham, spam float64
	for p := range points {
		ham += p.Ham
		spam += p.Spam
	}
	return rank(func(yield func(tie) bool) {
		var t tie
		at := math.NaN() // of t
		for p := range points {
			if p.LogOdds != at && t.ham+t.spam > 0 {
				if !yield(t) {
					return
				}
				t = tie{}
			}
			at = p.LogOdds
			t.ham += int(p.Ham)
			t.spam += int(p.Spam)
			t.p += float64((p.Ham + p.Spam) * sigmoid(p.LogOdds))
		}
		if t.ham+t.spam > 0 {
			yield(t)
		}
	}, int(ham), int(spam))
}

// calibration sums n_b·|mean p − fraction of spam| over bins of equal count. An event is
// 15 crumbs; a bin holds one crumb for each event. A tie across an edge is divided in
// proportion, so the order of events does not matter.
type calibration struct {
	width   int     // crumbs in a full bin
	crumbs  int     // in the bin being filled
	p, spam float64 // sums over it
	gaps    float64 // Σ |p − spam| of the full bins
}

func (c *calibration) add(t tie) {
	n := t.ham + t.spam
	for crumbs := n * calibrationBins; crumbs > 0; {
		k := min(crumbs, c.width-c.crumbs)
		part := float64(k) / float64(n)
		c.p += part * t.p
		c.spam += part * float64(t.spam)
		c.crumbs += k
		crumbs -= k
		if c.crumbs == c.width {
			c.gaps += math.Abs(c.p - c.spam)
			c.crumbs, c.p, c.spam = 0, 0, 0
		}
	}
}

// A ranking holds every score.
type ranking struct{ ham, spam []float64 }

func (r *ranking) add(spam bool, z float64) {
	if spam {
		r.spam = append(r.spam, z)
	} else {
		r.ham = append(r.ham, z)
	}
}

// ties sorts the scores and yields equal ones together, in ascending order.
func (r *ranking) ties(yield func(tie) bool) {
	slices.Sort(r.ham)
	slices.Sort(r.spam)
	for i, j := 0, 0; i < len(r.ham) || j < len(r.spam); {
		z := math.Inf(1)
		if i < len(r.ham) {
			z = r.ham[i]
		}
		if j < len(r.spam) {
			z = min(z, r.spam[j])
		}
		var t tie
		for ; i < len(r.ham) && r.ham[i] == z; i++ {
			t.ham++
		}
		for ; j < len(r.spam) && r.spam[j] == z; j++ {
			t.spam++
		}
		t.p = float64(t.ham+t.spam) * sigmoid(z)
		if !yield(t) {
			return
		}
	}
}

const (
	binsPerUnit = 1 << 10
	binnedLimit = 64 // one bin holds all z beyond it on each side
	binCount    = 2*binnedLimit*binsPerUnit + 2
)

// A histogram counts scores in bins of log-odds. Bin 0 holds z < −64, the last bin z ≥ 64,
// and bin i between them [−64 + (i−1)/1024, −64 + i/1024). 0, the threshold p ≥ ½, is an
// edge.
type histogram struct{ bins []tie }

func (h *histogram) add(spam bool, z float64) {
	i := 0
	switch {
	case z >= binnedLimit:
		i = binCount - 1
	case z >= -binnedLimit:
		i = 1 + int(math.Floor((z+binnedLimit)*binsPerUnit))
		// z + 64 may round up to an edge that z lies below.
		i = min(i, binCount-2)
	}
	b := &h.bins[i]
	b.p += sigmoid(z)
	if spam {
		b.spam++
	} else {
		b.ham++
	}
}

// ties yields the bins that are not empty, in ascending order.
func (h *histogram) ties(yield func(tie) bool) {
	for _, b := range h.bins {
		if b.ham+b.spam > 0 && !yield(b) {
			return
		}
	}
}
