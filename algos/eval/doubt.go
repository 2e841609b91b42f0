package eval

import (
	"cmp"
	"math"
	"slices"
)

// SourcesKept is the number of sources that [Doubts] counts by name.
const SourcesKept = 1024

// A SourceDoubt counts a source's labels that were learnt, and those of them that the
// model believed to be false.
type SourceDoubt struct {
	Source   string `json:"source"`
	Doubtful int    `json:"doubtful"`
	Learnt   int    `json:"learnt"`
}

// Doubts counts, by source, the labels that were learnt with a trust φ (the probability
// that the label is true) below one half. The zero value is ready; it is not safe for
// concurrent use.
//
// Counts are exact up to [SourcesKept] sources. Then a new source replaces the one of
// the lowest rank with its first doubtful label, by Space-Saving (Metwally, Agrawal and
// El Abbadi 2005, "Efficient computation of frequent and top-k elements in data
// streams"): it inherits the rank, plus one. So of D doubtful labels every source with
// more than D/1024 has a name, and its count is short by no more than that. All other
// labels are in [Doubts.Others].
type Doubts struct {
	all, others SourceDoubt
	named       []namedSource
	at          map[string]int // a source's index in named
}

type namedSource struct {
	SourceDoubt
	rank int // doubtful labels, and the rank that was inherited
}

// Add counts a label that was learnt with trust φ, and returns the counts of its source:
// zeros if it is not counted by name. O(1), or O(SourcesKept) where a source is replaced.
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

// fewest returns the place of the lowest rank; of equals the first.
func (d *Doubts) fewest() int {
	least := 0
	for i := range d.named {
		if d.named[i].rank < d.named[least].rank {
			least = i
		}
	}
	return least
}

// Doubtful returns the number of labels with φ below one half, of all sources.
func (d *Doubts) Doubtful() int { return d.all.Doubtful }

// Learnt returns the number of labels of all sources.
func (d *Doubts) Learnt() int { return d.all.Learnt }

// Others returns the counts of sources without a name.
func (d *Doubts) Others() SourceDoubt { return d.others }

// z95 is the normal's 95 % quantile.
const z95 = 1.6448536269514722

// Worst returns at most n of the sources that have doubtful labels, worst first: by the
// lower end of Wilson's 90 % interval for the fraction of doubtful labels (Wilson 1927,
// "Probable inference, the law of succession, and statistical inference"), by their
// number, by name.
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
