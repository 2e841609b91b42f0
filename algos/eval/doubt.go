package eval

import (
	"cmp"
	"math"
	"slices"
)

// SourcesKept is how many sources [Doubts] counts by name.
const SourcesKept = 1024

// A SourceDoubt says how many of a source's labels were learnt, and how many of
// those the model held to be false rather than true.
type SourceDoubt struct {
	Source   string `json:"source"`
	Doubtful int    `json:"doubtful"`
	Learnt   int    `json:"learnt"`
}

// Doubts counts the labels that were learnt with a trust φ, the probability that
// the label is true, below one half, by source. The zero value is ready; it is
// not safe for concurrent use.
//
// Sources are opaque and may be any number; [SourcesKept] are kept. Up to there
// all counts are exact. From then on a source that is not kept gets in with its
// first doubtful label, in place of the one with the fewest, by the rule of
// Space-Saving (Metwally, Agrawal and El Abbadi 2005, "Efficient computation of
// frequent and top-k elements in data streams"): a newcomer takes its
// predecessor's rank over, plus one. So of D doubtful labels a source with more
// than D/1024 is among those kept, and its count, from when it got in, falls
// short by no more than that. What a source that was let go had counted, and
// what came from those not kept, is in [Doubts.Others].
type Doubts struct {
	all, others SourceDoubt
	kept        []keptSource
	at          map[string]int // a source's place in kept
}

type keptSource struct {
	SourceDoubt
	rank int // doubtful labels, and the rank that was found on coming
}

// Add counts a label that was learnt with trust φ, and returns what is known of
// its source; nothing but the name if that is not kept. O(1), but where a source
// is let go O(SourcesKept).
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
	case len(d.kept) < SourcesKept:
		if d.at == nil {
			d.at = map[string]int{}
		}
		i = len(d.kept)
		d.kept = append(d.kept, keptSource{SourceDoubt: SourceDoubt{Source: source}})
		d.at[source] = i
	case doubtful == 0:
		d.others.Learnt++
		return SourceDoubt{Source: source}
	default:
		i = d.fewest()
		old := d.kept[i]
		d.others.Doubtful += old.Doubtful
		d.others.Learnt += old.Learnt
		delete(d.at, old.Source)
		d.kept[i] = keptSource{SourceDoubt{Source: source}, old.rank}
		d.at[source] = i
	}
	s := &d.kept[i]
	s.Learnt++
	s.Doubtful += doubtful
	s.rank += doubtful
	return s.SourceDoubt
}

// fewest returns the place of the lowest rank; of equals the first.
func (d *Doubts) fewest() int {
	least := 0
	for i := range d.kept {
		if d.kept[i].rank < d.kept[least].rank {
			least = i
		}
	}
	return least
}

// Doubtful returns the number of labels with φ below one half, of all sources.
func (d *Doubts) Doubtful() int { return d.all.Doubtful }

// Learnt returns the number of labels of all sources.
func (d *Doubts) Learnt() int { return d.all.Learnt }

// Others returns what is counted of no source by name.
func (d *Doubts) Others() SourceDoubt { return d.others }

// z95 is the normal's 95 % quantile.
const z95 = 1.6448536269514722

// Worst returns at most n of the sources that have doubtful labels, worst first:
// by the lower end of Wilson's 90 % interval for the share of labels that are
// doubtful (Wilson 1927, "Probable inference, the law of succession, and
// statistical inference"), so that one doubtful label of one does not come before
// forty of fifty; of equals the one with more of them, then by name.
func (d *Doubts) Worst(n int) []SourceDoubt {
	worst := []SourceDoubt{} // never nil: JSON says [], not null
	for i := range d.kept {
		if d.kept[i].Doubtful > 0 {
			worst = append(worst, d.kept[i].SourceDoubt)
		}
	}
	slices.SortFunc(worst, func(a, b SourceDoubt) int {
		return cmp.Or(cmp.Compare(b.shareAtLeast(), a.shareAtLeast()), cmp.Compare(b.Doubtful, a.Doubtful),
			cmp.Compare(a.Source, b.Source))
	})
	return worst[:min(n, len(worst))]
}

// shareAtLeast is the lower end of Wilson's interval.
func (s SourceDoubt) shareAtLeast() float64 {
	n, z2 := float64(s.Learnt), z95*z95
	p := float64(s.Doubtful) / n
	return (p + z2/(2*n) - z95*math.Sqrt(p*(1-p)/n+z2/(4*n*n))) / (1 + z2/n)
}
