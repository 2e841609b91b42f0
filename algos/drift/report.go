package drift

import (
	"cmp"
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
)

// MostSuspects is how many events a report names.
const MostSuspects = 20

// A Report is all that the label-noise alarm knows at one event count.
type Report struct {
	Status   Status
	SNR      float64 // of the latest result, 0 before the first
	Grade    float64 // its noise grade: above 0 if VIBoost's noise is labelled spam, which proves no forged side
	FlipRate float64 // ε, the latest

	// The flip rates f₀ and f₁ of the last Recent events: the fraction of true ham that is
	// labelled spam, and of true spam that is labelled ham.
	HamCalledSpam, SpamCalledHam FlipRate

	Suspects []Suspect    // the least trusted recent events, least first, at most MostSuspects
	Sources  []SourceRate // of the recent events, the worst first
}

// A FlipRate is the rate at which the labels of one true class are flipped. Low to High is the
// central 90 % of its posterior, with Jeffreys' prior and the other class's rate as given. If fewer
// than 6 % of the recent labels are of this class, the rate is not known, and Low to High is 0 to 1.
type FlipRate struct {
	Known           bool
	Rate, Low, High float64
}

// A Suspect is an event whose label is probably false.
type Suspect struct {
	ID, Source string
	Label, Phi float64
}

// A SourceRate estimates the rate e at which one source flipped labels in the last Recent
// events. With q the head's probability of a label, the likelihood of e is
//
//	∏ (1−e)·q + e·(1−q).
//
// With Jeffreys' prior Beta(½, ½) the posterior has the mean Rate and the central 90 %
// from Low to High. The interval is wide if there are few labels or the head is unsure.
// Labels that the head gets wrong count as flips.
type SourceRate struct {
	Source          string
	Events          int
	Rate, Low, High float64
}

// Report returns what the alarm knows. It takes some ten milliseconds and changes nothing.
//
// The flip rates by true label, f₀ = ham called spam and f₁ = spam called ham, are those
// of greatest likelihood for the last Recent events. With q the head's probability of the
// label y before it learnt the event, and ȳ the other label,
//
//	φ = q(1−f_y) / (q(1−f_y) + (1−q)f_ȳ)
//
// is the probability that the label is true, and the rates solve
//
//	f₀ = Σ_spam(1−φ) / (Σ_spam(1−φ) + Σ_ham φ + 1)
//
// and f₁ likewise. The sums are over the labels given. The 1 is the prior (1−f)df: one more
// true label of each class. Without it, a class that does not occur could have any rate. The
// posterior is log-concave, so expectation maximisation finds its one maximum. (The online
// φ does not help: its ε has not risen yet.) If the rate of a class is not known, ε takes its
// place. Sources are sorted by Low, the highest first, and equal ones by name.
func (n *LabelNoise) Report() Report {
	r := Report{Status: n.Status(), SNR: n.snr, Grade: n.grade, FlipRate: n.flipRate}
	witnesses := n.recent.oldest()
	known := n.knownClasses()
	f, phi := flipRates(witnesses, known, n.flipRate, reportSteps)
	r.HamCalledSpam, r.SpamCalledHam = flipRateOf(witnesses, known, f, 0), flipRateOf(witnesses, known, f, 1)
	r.Sources = sourceRates(witnesses)

	order := make([]int, len(witnesses))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(phi[a], phi[b]) })
	for _, i := range order[:min(len(order), MostSuspects)] {
		w := witnesses[i]
		r.Suspects = append(r.Suspects, Suspect{ID: w.id, Source: w.source, Label: w.label, Phi: phi[i]})
	}
	return r
}

// reportSteps bounds the steps of a report. So many take some milliseconds.
const reportSteps = 1000

// flipRates returns the flip rates by true label and the trust in each label, after at
// most steps steps. The rate of a class that is not known stays ε.
func flipRates(witnesses []witness, known [2]bool, ε float64, steps int) (f [2]float64, phi []float64) {
	const (
		start = 0.1 // a rate that starts at 0 stays 0
		still = 1e-7
	)
	phi = make([]float64, len(witnesses))
	for c := range f {
		f[c] = ε
		if known[c] {
			f[c] = start
		}
	}
	for range steps {
		var right, wrong [2]float64 // Σφ and Σ(1−φ) of labels ham, spam
		for i, w := range witnesses {
			given := class(w.label)
			unflipped, flipped := float64(w.prob*(1-f[given])), float64((1-w.prob)*f[1-given])
			phi[i] = 1
			if unflipped+flipped > 0 {
				phi[i] = unflipped / (unflipped + flipped)
			}
			right[given] += phi[i]
			wrong[given] += 1 - phi[i]
		}
		next := [2]float64{wrong[1] / (wrong[1] + right[0] + 1), wrong[0] / (wrong[0] + right[1] + 1)}
		for c := range next {
			if !known[c] {
				next[c] = f[c]
			}
		}
		moved := max(math.Abs(next[0]-f[0]), math.Abs(next[1]-f[1]))
		if f = next; moved < still {
			break
		}
	}
	return f, phi
}

// flipRateOf returns the flip rate of a true class.
func flipRateOf(witnesses []witness, known [2]bool, f [2]float64, of int) FlipRate {
	if !known[of] {
		return FlipRate{High: 1}
	}
	probs := make([]alternative, len(witnesses))
	for i, w := range witnesses {
		p := &probs[i]
		if class(w.label) == of {
			p.flipped = float64((1 - w.prob) * f[1-of])
			p.right = w.prob + p.flipped
		} else {
			p.right = float64(w.prob * (1 - f[1-of]))
			p.flipped = p.right + (1 - w.prob)
		}
	}
	_, low, high := flipPosterior(probs)
	return FlipRate{Known: true, Rate: f[of], Low: min(low, f[of]), High: max(high, f[of])}
}

func sourceRates(witnesses []witness) []SourceRate {
	at := map[string]int{} // index of a source in rates; never ranged over
	var rates []SourceRate
	var probs [][]alternative
	for _, w := range witnesses {
		i, ok := at[w.source]
		if !ok {
			i = len(rates)
			at[w.source] = i
			rates = append(rates, SourceRate{Source: w.source})
			probs = append(probs, nil)
		}
		rates[i].Events++
		probs[i] = append(probs[i], alternative{w.prob, 1 - w.prob})
	}
	for i := range rates {
		s := &rates[i]
		s.Rate, s.Low, s.High = flipPosterior(probs[i])
	}
	slices.SortFunc(rates, func(a, b SourceRate) int {
		return cmp.Or(cmp.Compare(b.Low, a.Low), cmp.Compare(a.Source, b.Source))
	})
	return rates
}

// An alternative is the probability of a label if no label is flipped, and if all are.
type alternative struct{ right, flipped float64 }

// flipPosterior returns the mean and the 5 % and 95 % quantiles of the flip rate e, whose
// likelihood is ∏ (1−e)·right + e·flipped. With e = sin²θ, Jeffreys' prior is flat in θ. So
// equidistant θ are a quadrature whose nodes are close at small rates.
func flipPosterior(probs []alternative) (mean, low, high float64) {
	const nodes = 512
	const cos, cosHalf = 0.99998117528260111, 0.99999529380957619 // of π/nodes and π/(2·nodes)
	var rate, density [nodes]float64
	most := math.Inf(-1)
	c, before := cosHalf, cosHalf // cos 2θ at this node and the one before
	for k := range rate {
		rate[k] = (1 - c) / 2
		c, before = float64(2*cos*c)-before, c
		for _, q := range probs {
			density[k] += logistic.Log(float64((1-rate[k])*q.right) + float64(rate[k]*q.flipped))
		}
		most = max(most, density[k])
	}
	total := 0.0
	for k := range density {
		density[k] = logistic.Exp(density[k] - most)
		total += density[k]
		mean += float64(density[k] * rate[k])
	}
	below := 0.0
	low, high = rate[0], rate[nodes-1]
	for k, d := range density {
		if below < float64(0.05*total) {
			low = rate[k]
		}
		if below < float64(0.95*total) {
			high = rate[k]
		}
		below += d
	}
	return mean / total, low, high
}
