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
// t is the number of labels observed before. ε starts at 0.1. From a start of 0.01 it
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
//	w := labels.Weigh(q, source, policy)
//	head.Update(x, y, w.Head)
//	expert.Learn(features, spam, w.Expert)
//	labels.Observe(source, w.Phi, spam)
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

// floor is (2ε)⁸.
func floor(ε float64) float64 {
	f := 2 * ε
	for range 3 {
		f *= f
	}
	return f
}

// NextFlipRate is ε of equation (2) after a label of trust φ. labels is t, the number of
// labels before it.
func NextFlipRate(ε, φ float64, labels uint64) float64 {
	rate := max(slowestRate, 1/(float64(labels)+warmUp))
	return min(max(leastFlipRate, ε+float64(rate*(1-φ-ε))), mostFlipRate)
}

// IsFlipRate reports whether NextFlipRate can have returned ε.
func IsFlipRate(ε float64) bool { return ε >= leastFlipRate && ε <= mostFlipRate }

// A Policy says which learners weight a label by its trust, and which flip rate they use.
type Policy struct {
	Heads    bool // the heads weight labels; false: they learn every label in full
	Experts  bool // the same for the experts
	BySource bool // φ and the experts' weight use the source's flip rate; false: the common rate
}

// Weights say how much a label counts.
type Weights struct {
	Phi    float64 // probability that the label is true
	Head   float64 // for the heads: the exponent of its likelihood
	Expert float64 // for the experts
}

// Labels holds the statistics of the labels of one kind of body.
type Labels struct {
	observed uint64  // number of labels; only Observe and Read write these fields
	flipRate float64 // ε. Invariant: IsFlipRate
	spamRate float64 // π, in (0, 1)
	sources  sources
}

// New returns Labels before the first label.
func New() *Labels { return &Labels{flipRate: FirstFlipRate, spamRate: firstSpamRate} }

// FlipRate is ε.
func (l *Labels) FlipRate() float64 { return l.flipRate }

// Weigh returns the weights of a label of a source, and changes nothing. q is the
// probability that the model gave the label before learning it: see the package doc. The
// head always uses the common rate: see MEASURED.md, sources that each bring one kind of
// mail.
func (l *Labels) Weigh(q float64, source string, p Policy) Weights {
	common, ε := l.flipRate, l.flipRate
	if p.BySource {
		ε = l.sources.rate(source, common)
	}
	w := Weights{Phi: Phi(q, ε, common), Head: 1, Expert: 1}
	if p.Heads {
		w.Head = Phi(q, common, common)
	}
	if p.Experts {
		w.Expert = Phi(q, min(max(expertFlipRate, ε), expertFactor*ε), common)
	}
	return w
}

// Observe counts a label that was learnt with trust φ.
func (l *Labels) Observe(source string, φ float64, spam bool) {
	l.flipRate = NextFlipRate(l.flipRate, φ, l.observed)
	l.sources.observe(source, φ, l.observed)
	y := 0.0
	if spam {
		y = 1
	}
	l.spamRate += float64(spamRateStep * (y - l.spamRate)) // (4)
	l.observed++
}

// Write appends
//
//	float64 ε, π | sources, as drawn in sources.go
//
// The number of labels is not among the bytes.
func (l *Labels) Write(w *codec.Writer) {
	w.Float64(l.flipRate, l.spamRate)
	l.sources.write(w)
}

// Read reads what Write wrote after the given number of labels.
func (l *Labels) Read(r *codec.Reader, labels uint64) {
	*l = Labels{observed: labels, flipRate: r.Float64(), spamRate: r.Float64()}
	if !IsFlipRate(l.flipRate) {
		r.Fail("flip rate %v", l.flipRate)
	}
	if !(l.spamRate > 0 && l.spamRate < 1) {
		r.Fail("rate of spam %v", l.spamRate)
	}
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
