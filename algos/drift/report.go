package drift

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// MostSuspects is how many events a report names.
const MostSuspects = 20

// A Report is what the label-noise alarm has to say when it changes, and at any
// other time.
type Report struct {
	Status   Status
	SNR      float64 // of the latest result, 0 before the first
	Grade    float64 // noise grade of it: above 0, VIBoost's noise is labelled spam
	FlipRate float64 // ε, the latest

	// Of the last Recent events, by mean 1−φ of the labels given: which share of
	// what truly is ham is called spam, and of what is spam ham.
	HamCalledSpam, SpamCalledHam float64

	Suspects []Suspect    // the least trusted of them, least first, at most MostSuspects
	Sources  []SourceRate // of them, the worst first
}

// A Suspect is an event whose label is probably false.
type Suspect struct {
	ID, Source string
	Label, Phi float64
}

// A SourceRate is how often labels of one source were flipped in the last Recent
// events. Each label counts as 1−φ of a flip, and the rate has the posterior
//
//	Beta(½ + Σ(1−φ), ½ + Σφ)
//
// of Jeffreys' prior, of which Rate is the mean and [Low, High] the central 90 %.
// That treats fractions of flips like whole ones, so that the interval says how
// many labels there were, not how sure each φ is; and as φ leans on one ε for
// all sources, rates lean towards one another.
type SourceRate struct {
	Source          string
	Events          int
	Flips           float64 // Σ(1−φ)
	Rate, Low, High float64
}

// Report returns what is known now. With e₀ and e₁ the mean of 1−φ over the n₀
// labels ham and the n₁ labels spam, the rates by true label are
//
//	ham called spam:  n₁e₁ / (n₁e₁ + n₀(1−e₀))
//	spam called ham:  n₀e₀ / (n₀e₀ + n₁(1−e₁))
//
// and 0 where that is 0/0. Sources are in the order of Low, falling, so that one
// odd label does not lead; equal ones by name. It sorts the recent events, and
// changes nothing.
func (n *LabelNoise) Report() Report {
	r := Report{Status: n.Status(), SNR: n.snr, Grade: n.grade, FlipRate: n.flipRate}
	witnesses := n.recent.oldest()
	var right, wrong [2]float64 // Σφ and Σ(1−φ) of labels ham, spam
	for _, w := range witnesses {
		right[class(w.label)] += w.phi
		wrong[class(w.label)] += 1 - w.phi
	}
	r.HamCalledSpam = share(wrong[1], right[0])
	r.SpamCalledHam = share(wrong[0], right[1])
	r.Sources = sourceRates(witnesses)

	slices.SortStableFunc(witnesses, func(a, b witness) int { return cmp.Compare(a.phi, b.phi) })
	for _, w := range witnesses[:min(len(witnesses), MostSuspects)] {
		r.Suspects = append(r.Suspects, Suspect{ID: w.id, Source: w.source, Label: w.label, Phi: w.phi})
	}
	return r
}

// share returns part/(part+rest), 0 for 0/0.
func share(part, rest float64) float64 {
	if part+rest == 0 {
		return 0
	}
	return part / (part + rest)
}

func sourceRates(witnesses []witness) []SourceRate {
	at := map[string]int{} // where a source is in rates; never ranged over
	var rates []SourceRate
	for _, w := range witnesses {
		i, ok := at[w.source]
		if !ok {
			i = len(rates)
			at[w.source] = i
			rates = append(rates, SourceRate{Source: w.source})
		}
		rates[i].Events++
		rates[i].Flips += 1 - w.phi
	}
	for i := range rates {
		s := &rates[i]
		a, b := 0.5+s.Flips, 0.5+max(0, float64(s.Events)-s.Flips)
		s.Rate = a / (a + b)
		s.Low, s.High = mathext.InvRegIncBeta(a, b, 0.05), mathext.InvRegIncBeta(a, b, 0.95)
	}
	slices.SortFunc(rates, func(a, b SourceRate) int {
		return cmp.Or(cmp.Compare(b.Low, a.Low), cmp.Compare(a.Source, b.Source))
	})
	return rates
}
