package eval

import (
	"cmp"
	"math"
	"slices"
)

// SourcesKept is the number of sources that [Doubts] counts by name.
const SourcesKept = 1024

// A SourceDoubt counts a source's learnt labels, and how many of them the model doubted.
type SourceDoubt struct {
	Source   string `json:"source"`
	Doubtful int    `json:"doubtful"`
	Learnt   int    `json:"learnt"`
}

// Doubts counts, by source, the doubtful labels: those learnt with a trust φ (the
// probability that the label is true) below ½. The zero value is ready to use. Doubts is
// not safe for concurrent use.
//
// Counts are exact up to [SourcesKept] sources. Beyond, it uses Space-Saving (Metwally,
// Agrawal and El Abbadi 2005, "Efficient computation of frequent and top-k elements in
// data streams"): a new source's first doubtful label replaces the source of lowest rank
// and inherits that rank, plus one. So every source with more than D/1024 of all D
// doubtful labels is listed, and its count is at most D/1024 too low. [Doubts.Others]
// counts all other labels.
type Doubts struct {
	all, others SourceDoubt
	named       []namedSource
	at          map[string]int // a source's index in named
}

type namedSource struct {
	SourceDoubt
	rank int // doubtful labels plus the inherited rank
}

// Add counts a label learnt with trust φ. It returns the counts of its source, or zeros if
// the source is not listed. O(1), or O(SourcesKept) if it replaces a source.
func (d *Doubts) Add(source string, φ float64) SourceDoubt {
	doubtful := 0
	if φ < 0.5 {
		doubtful = 1
	}
	d.all.Learnt++
	d.all.Doubtful += doubtful
	i, ok := d.at[source]
	switch {
	case ok:
	case len(d.named) < SourcesKept:
		if d.at == nil {
			d.at = map[string]int{}
		}
		i = len(d.named)
		d.named = append(d.named, namedSource{SourceDoubt: SourceDoubt{Source: source}})
		d.at[source] = i
	case doubtful == 0:
		d.others.Learnt++
		return SourceDoubt{Source: source}
	default:
		i = d.fewest()
		old := d.named[i]
		d.others.Doubtful += old.Doubtful
		d.others.Learnt += old.Learnt
		delete(d.at, old.Source)
		d.named[i] = namedSource{SourceDoubt{Source: source}, old.rank}
		d.at[source] = i
	}
	s := &d.named[i]
	s.Learnt++
	s.Doubtful += doubtful
	s.rank += doubtful
	return s.SourceDoubt
}

// fewest returns the index of the lowest rank, the first of equals.
func (d *Doubts) fewest() int {
	least := 0
	for i := range d.named {
		if d.named[i].rank < d.named[least].rank {
			least = i
		}
	}
	return least
}

// Doubtful returns the number of doubtful labels of all sources.
func (d *Doubts) Doubtful() int { return d.all.Doubtful }

// Learnt returns the number of labels of all sources.
func (d *Doubts) Learnt() int { return d.all.Learnt }

// z95 is the normal's 95 % quantile.
const z95 = 1.6448536269514722

// Worst returns at most n sources with doubtful labels, worst first. It sorts by the lower
// end of Wilson's 90 % interval for the fraction of doubtful labels (Wilson 1927,
// "Probable inference, the law of succession, and statistical inference"), then by their
// number, then by name.
func (d *Doubts) Worst(n int) []SourceDoubt {
	worst := []SourceDoubt{} // never nil: JSON says [], not null
	for i := range d.named {
		if d.named[i].Doubtful > 0 {
			worst = append(worst, d.named[i].SourceDoubt)
		}
	}
	slices.SortFunc(worst, func(a, b SourceDoubt) int {
		return cmp.Or(cmp.Compare(b.leastFraction(), a.leastFraction()), cmp.Compare(b.Doubtful, a.Doubtful),
			cmp.Compare(a.Source, b.Source))
	})
	return worst[:min(n, len(worst))]
}

// leastFraction is the lower end of Wilson's interval.
func (s SourceDoubt) leastFraction() float64 {
	n, z2 := float64(s.Learnt), z95*z95
	p := float64(s.Doubtful) / n
	return (p + z2/(2*n) - z95*math.Sqrt(p*(1-p)/n+z2/(4*n*n))) / (1 + z2/n)
}
