// Package trust estimates the probability that a label is true. Labels come from users,
// spam traps and support desks, and some are wrong.
//
// # Trust of a label
//
// q is the probability that the model gives to the label before it learns it. For mail and
// text with the full experts q = σ(±z̄), z̄ = ¾z + ¼·(mean of the experts' opinions), with z
// the head's moderated log-odds: a label is doubted when head and experts agree against it.
// ε is the flip rate: how often labels have been wrong. Then
//
//	φ = (1−ε)q / ((1−ε)q + ε(1−q)),  φ ≥ (2ε)⁸           (1)
//
// is the probability that the label is true. ε is the mean of 1−φ:
//
//	ε ← ε + max(0.01, 1/(t+50))·(1−φ−ε),  0.0003 ≤ ε ≤ ½  (2)
//
// t is the number of labels observed before, but for those of muted sources. ε starts at 0.1. From a start of 0.01 it
// can settle where every label seems right and q saturates.
//
// The package assumes that most labels are true, because reversing all labels gives the
// same likelihood. Without ε ≤ ½, ε = 1 is a second fixed point, where true labels
// count nothing for ever. The floor of φ leads out of it: where half of the labels
// contradict the model, labels count in full. At ε = 0.1 the floor is only 10⁻⁶.
//
// # Sources
//
// Each source s of labels has its own flip rate ε_s. It is pulled towards the common
// rate ε as if by κ = 20 labels:
//
//	d_s ← 0.99·d_s + (1−φ),  n_s ← 0.99·n_s + 1,  at each label of source s    (3)
//	ε_s = (κ·ε + d_s) / (κ + n_s),  ε_s ≥ 0.0003
//
// A label's weight halves after 69 more labels of its source. A new source starts at the
// common rate, and a single source always has it. The table holds 4,096 sources; a new
// one replaces the source that has been silent longest.
//
// # Standing
//
// Each label is also weighted by the standing w of its source: its agreement with the
// others. With p the head's own probability of spam and q that of the given label,
//
//	d = 1 − q − 2p(1−p),  n = (1−2p)²                       (5)
//
// are its evidence: where p is calibrated, Σd/Σn estimates a flip rate without bias,
// also from labels of which the model is unsure. A tally (D, N) sums d and n and forgets:
//
//	e(D, N; e₀) = (D + 10e₀)/(N + 10), within [0, 1]        (6)
//
// There are a tally S of each source (memory .99 per label of its own), a tally P of the
// first 50 labels of every source (.99 per such label), and the reference R, which takes
// d and n times w (.999 per label of anybody). With e_s = e(S; e(P; .1)) and N_s = N + 10,
// and P's N as well while the source has under 50 labels,
//
//	x = e_s − 1.64·√((e_s(1−e_s) + .02)/N_s) − e(R; .1)     (7)
//	w = max(0, 1 − 2·max(0, x − .05))², 0 below .1          (8)
//
// w multiplies the weights of heads and experts, φ in windows, and the steps of (2) and (4).
//
// [Labels.Weigh] lists the exceptions, and what a [Role] changes. A majority that lies from
// the beginning is the reference.
//
// # Rate of spam
//
// π is the recent rate of spam among the labels. It starts at ½:
//
//	π ← π + 0.01·(y − π),  y = 1 for spam and 0 for ham      (4)
//
// [Labels.SpamRateLogit] is an input of a head, for streams whose labels come late.
//
// # Use
//
//	labels := trust.New()
//	w := labels.Weigh(label, policy)
//	head.Update(x, y, w.Head)
//	if w.Expert > 0 {
//		expert.Learn(features, spam, w.Expert)
//	}
//	accused := labels.Observe(label, w)
//
// MEASURED.md has the measurements behind the constants.
package trust

import (
	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/logistic"
)

// The constants of equations (1) and (2).
const (
	FirstFlipRate = 0.1
	leastFlipRate = 0.0003
	mostFlipRate  = 0.5
	slowestRate   = 0.01
	warmUp        = 50

	// The experts learn with (1) at min(max(expertFlipRate, ε), expertFactor·ε).
	expertFactor   = 5
	expertFlipRate = 0.45

	// leastTrust keeps φ above 0 where (1) underflows. The head needs a positive weight.
	leastTrust = 1e-12
)

// Phi is φ of equation (1). ε is the flip rate of the label's source. The floor uses
// common, the flip rate of all labels.
func Phi(q, ε, common float64) float64 {
	right, wrong := float64((1-ε)*q), float64(ε*(1-q))
	return max(leastTrust, floor(common), right/(right+wrong))
}

// expertPhi is the weight with which experts learn a label.
func expertPhi(q, ε, common float64) float64 {
	return Phi(q, min(max(expertFlipRate, ε), expertFactor*ε), common)
}

// floor is (2ε)⁸.
func floor(ε float64) float64 {
	f := 2 * ε
	for range 3 {
		f *= f
	}
	return f
}

// NextFlipRate is ε of equation (2) after a label of trust φ that counts w. labels is t, the
// number of labels before it.
func NextFlipRate(ε, φ, w float64, labels uint64) float64 {
	rate := max(slowestRate, 1/(float64(labels)+warmUp))
	return min(max(leastFlipRate, ε+float64(float64(w*rate)*(1-φ-ε))), mostFlipRate)
}

// IsFlipRate reports whether NextFlipRate can have returned ε.
func IsFlipRate(ε float64) bool { return ε >= leastFlipRate && ε <= mostFlipRate }

// A Policy says which learners weight a label by its trust, and which flip rate they use.
type Policy struct {
	Heads     bool // the heads weight labels; false: they learn every label in full
	Experts   bool // the same for the experts
	BySource  bool // φ and the experts' weight use the source's flip rate; false: the common rate
	Agreement bool // labels are weighted by their source's standing; false: all sources but muted ones have w = 1
}

// A Label is a label before it is learnt.
type Label struct {
	Source string
	Role   Role // of the source
	Spam   bool
	Q      float64 // probability that the model gives the label: see the package doc
	Prob   float64 // p of equation (5): the head's own moderated probability of spam
	Event  uint64  // its number among all events of the model, from 1

	Replaces bool    // it replaces a label of its source that was withdrawn
	Given    float64 // Replaces: Weights.Standing of that one

	Believed bool // φ = 1: it is the word of somebody who may correct it
	// it takes the place of a label of its source. φ = 1 where its source is alone, or agrees with the others
	Corrects bool
	Assumed  bool // it is an answer that nobody has contradicted: φ = 1, w = AssumedWeight
	Vouched  bool // w = 1, whatever the standing of its source; of a Muted one w = 0
}

// Weights say how much a label counts. Head and Expert have the factor Standing.
type Weights struct {
	Phi      float64 // probability that the label is true
	Head     float64 // for the heads: the exponent of its likelihood, above 0
	Expert   float64 // for the experts; 0: they do not learn it
	Standing float64 // w of equation (8)

	believed bool    // Phi is 1 because somebody's word is believed
	dripped  float64 // what it took from the drip to be learnt in full; 0: nothing
}

// AssumedWeight is how much an answer counts that is learnt as a label. hamlet-lab bench selective
// measures it.
const AssumedWeight = 0.3

// Sample is the weight of the label among others in a window: φ·w, above 0.
func (w Weights) Sample() float64 { return max(leastTrust, float64(w.Phi*w.Standing)) }

// Labels holds the statistics of the labels of one kind of body.
type Labels struct {
	flipRate float64 // ε. Invariant: IsFlipRate. Only Observe and Read write these fields
	spamRate float64 // π, in (0, 1)
	standing standing
	sources  sources
}

// New returns Labels before the first label.
func New() *Labels { return &Labels{flipRate: FirstFlipRate, spamRate: firstSpamRate} }

// FlipRate is ε.
func (l *Labels) FlipRate() float64 { return l.flipRate }

// Weigh returns the weights of a label, and changes nothing. The head always uses the common
// rate: see MEASURED.md, sources that each bring one kind of mail. With Policy.Agreement:
//
//   - Where the others fall silent, w opens: w ≥ 1 − n/20, with n what others have added to
//     R's N. A single source always has w = 1.
//   - Of a source with w = 0, one label for 50 of the others counts in full, but not in R.
//     It lets an honest newcomer back in. Labels that the model gives at least .3 cost a
//     quarter of that, and are let in where w < ½: so a source that corrects the model's
//     mistakes, and therefore always contradicts it, is heard.
//   - A source first heard when R has seen evidence of 200 is late: its labels are trusted
//     by an ε of at least 1/(10 + what S and P have seen).
//   - A label that the experts would learn with less than .2 is dropped if its source and
//     the newcomers are hardly known, and others are. The AdaGrad experts know no scale: to
//     them a small weight teaches nearly as much as a large one.
//   - Where labels are learnt in full (vectors, by default), those of a source whose
//     e_s − 1 standard deviation exceeds e(R; .1) are weighted by (1) with that excess as ε,
//     and dropped below .2 if the source has under 50 labels.
//   - An Anchor has w = 1. While anchors are heard (R's memory holds evidence of 5 from
//     them), R takes their labels alone, w does not open and nothing is let in. The labels
//     of others are trusted by an ε of at least .05, and dropped below .2.
//   - A Muted source has w = 0. Its labels change nothing but its own tallies.
//   - A label that replaces another of its source ([Label].Replaces) has at most the w that
//     the other was given. Without that, a source that has become better would teach what it
//     could not teach then. It has at most its present w as well: a liar would otherwise
//     replace the honest labels with which it began.
func (l *Labels) Weigh(x Label, p Policy) Weights {
	common, ε := l.flipRate, l.flipRate
	from := l.sources.find(x.Source)
	if p.BySource {
		ε = l.sources.rate(from, common)
	}
	w := Weights{Phi: Phi(x.Q, ε, common), Head: 1, Expert: 1, Standing: 1}
	least := 0.0
	if x.Role == Ordinary && p.Agreement {
		least = l.standing.leastRate(from)
	}
	ω := expertPhi(x.Q, max(ε, least), common)
	if p.Heads {
		w.Head = Phi(x.Q, max(common, least), common)
	}
	if p.Experts {
		w.Expert = ω
	}
	if w.believed = x.Believed || x.Corrects && (!p.Agreement || l.standing.believes(from)); w.believed {
		w.Phi, w.Head, w.Expert, ω = 1, 1, 1, 1
	}
	if x.Assumed && x.Role != Muted {
		return Weights{Phi: 1, Head: AssumedWeight, Expert: AssumedWeight, Standing: AssumedWeight}
	}
	drop := false
	if x.Role == Ordinary && p.Agreement && !(p.Heads && p.Experts) && !w.believed {
		if excess := l.standing.excess(from, l.standing.weighed); excess > 0 {
			if !p.Heads {
				w.Head = Phi(x.Q, excess, common)
			}
			if !p.Experts {
				w.Expert = expertPhi(x.Q, excess, common)
				drop = w.Expert < leastExpert && from.newcomer()
			}
		}
	}
	switch {
	case x.Role == Muted:
		w.Standing = 0
	case x.Vouched:
	case x.Role == Ordinary && p.Agreement:
		w.Standing = l.standing.weight(from, l.standing.weighed)
		if cost := dripCost(x, w.Standing); cost > 0 && l.standing.drip >= cost && !l.standing.heard() {
			w.Standing, w.dripped = 1, cost
		}
		if drop || l.standing.drops(from, l.standing.weighed, ω) {
			w.Standing, w.dripped = 0, 0
		}
	}
	if x.Replaces && x.Given < w.Standing {
		w.Standing = x.Given
		if w.Standing == 0 {
			w.dripped = 0
		}
	}
	w.Head = max(leastTrust, float64(w.Head*w.Standing))
	w.Expert = float64(w.Expert * w.Standing)
	return w
}

// Observe counts a label that was learnt with the weights that Weigh returned. It reports
// whether the source's labels contradict those of the others.
//
// A label that is assumed or Believed is no evidence about labels, and counts among the classes
// alone. Of one that corrects and is believed, φ was not inferred: the flip rates do not take it.
func (l *Labels) Observe(x Label, w Weights) (accused bool) {
	y := 0.0
	if x.Spam {
		y = 1
	}
	l.spamRate += float64(float64(spamRateStep*w.Standing) * (y - l.spamRate)) // (4)
	if x.Assumed || x.Believed {
		return false
	}
	from := l.sources.entry(x.Source, l.standing.weighed)
	if !w.believed {
		l.flipRate = NextFlipRate(l.flipRate, w.Phi, w.Standing, l.standing.weighed)
	}
	if !w.believed || from.count == 0 { // each source has a label
		from.observe(w.Phi)
	}
	q := x.Prob
	if !x.Spam {
		q = 1 - x.Prob
	}
	by := w.Standing
	if w.dripped > 0 {
		by = 0
		l.standing.drip -= w.dripped
	}
	l.standing.observe(from, x.Role, evidenceOf(x.Prob, q), by)
	if x.Role != Ordinary || !l.standing.accuses(from, l.standing.weighed) {
		return false
	}
	from.accused = x.Event
	return true
}

// Write appends
//
//	float64 ε, π | standing, as drawn in standing.go | sources, as drawn in sources.go
//
// The number of labels is not among the bytes.
func (l *Labels) Write(w *codec.Writer) {
	w.Float64(l.flipRate, l.spamRate)
	l.standing.write(w)
	l.sources.write(w)
}

// Read reads what Write wrote after the given number of labels.
func (l *Labels) Read(r *codec.Reader, labels uint64) {
	*l = Labels{flipRate: r.Float64(), spamRate: r.Float64()}
	if !IsFlipRate(l.flipRate) {
		r.Fail("flip rate %v", l.flipRate)
	}
	if !(l.spamRate > 0 && l.spamRate < 1) {
		r.Fail("rate of spam %v", l.spamRate)
	}
	l.standing.read(r, labels)
	l.sources.read(r, labels)
}

// The constants of equation (4).
const (
	spamRateStep  = 0.01
	firstSpamRate = 0.5
	spamRateFloor = 0.01 // bounds the input at ±4.6
)

// SpamRateLogit returns ln((π+.01)/(1−π+.01)), within ±4.62; 0 before the first label.
func (l *Labels) SpamRateLogit() float64 {
	return logistic.Log((l.spamRate + spamRateFloor) / (1 - l.spamRate + spamRateFloor))
}
