package trust

import (
	"fmt"
	"math"

	"hamlet/algos/internal/codec"
)

// A Role is what an operator has said about a source.
type Role uint8

const (
	Ordinary Role = iota // weighed by agreement
	Anchor               // believed: its labels count in full, and others are compared with them
	Muted                // its labels teach nothing
)

var roleNames = [...]string{Ordinary: "ordinary", Anchor: "anchor", Muted: "muted"}

// String returns the role's name.
func (r Role) String() string { return roleNames[r] }

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the role's name.
func (r *Role) UnmarshalText(text []byte) error {
	for role, name := range roleNames {
		if name == string(text) {
			*r = Role(role)
			return nil
		}
	}
	return fmt.Errorf("%q is no role of a source: ordinary, anchor or muted", text)
}

// The constants of equations (5) to (8).
const (
	tallyMemory     = 0.99  // of a source's tally, per label of its own; and of the newcomers'
	referenceMemory = 0.999 // of the reference, per label of anybody
	tallyShrinkage  = 10
	firstTallyRate  = 0.1

	newcomerLabels = 50 // of a source that count among the newcomers'

	oneSided      = 1.64 // standard deviations
	leastSpread   = 0.02
	tolerance     = 0.05
	leastStanding = 0.1

	// A source is accused by x, or by a tally that remembers longer.
	accusedAbove  = 0.2
	slowMemory    = 0.998 // of a source's slow tally, per label of its own
	slowDeviation = 3
	slowAbove     = 0.03

	silence = 20 // evidence in the reference below which weights open

	// The drip lets in labels of sources without weight, at 1 each. A label that the model
	// holds plausible costs less, and is let in where its source's weight is below dripBelow.
	dripRate, mostDrip       = 0.02, 2
	plausible, plausibleCost = 0.3, 0.25
	dripBelow                = 0.5

	lateReference   = 200 // evidence in the reference after which a source is late
	anchorsHeard    = 5   // evidence of the anchors from which they are heard
	leastUnanchored = 0.05

	// A label that the experts would learn with less than leastExpert is dropped if its
	// source is unknown: under unknownEvidence of its own and the newcomers', beside
	// more than knownReference.
	leastExpert     = 0.2
	unknownEvidence = 30
	knownReference  = 60
)

// A tally estimates a flip rate as D/N.
type tally struct {
	flips    float64 // D
	evidence float64 // N
}

// evidenceOf is (5): p is the probability of spam, q that of the label.
func evidenceOf(p, q float64) tally {
	unsure := float64(2 * float64(p*(1-p)))
	surplus := 1 - 2*p
	return tally{flips: 1 - q - unsure, evidence: float64(surplus * surplus)}
}

// add lets a tally forget, and adds w times a label's evidence.
func (t *tally) add(memory, w float64, of tally) {
	t.flips = float64(memory*t.flips) + float64(w*of.flips)
	t.evidence = float64(memory*t.evidence) + float64(w*of.evidence)
}

// rate is (6). Without the clip the square root in (7) could be of a negative number.
func (t tally) rate(prior float64) float64 {
	e := (t.flips + float64(tallyShrinkage*prior)) / (t.evidence + tallyShrinkage)
	return min(max(e, 0), 1)
}

// A standing compares the sources of labels with one another.
type standing struct {
	reference, newcomers tally
	weighed              uint64  // labels of sources that were not muted: the clock of what forgets here
	referenceSum         float64 // evidence in reference without forgetting
	newcomersSum         float64 // the same in newcomers
	anchors              float64 // evidence of the anchors, forgotten as reference is
	drip                 float64 // in [0, mostDrip]
}

// heard reports whether anchors speak often enough to be the reference.
func (s *standing) heard() bool { return s.anchors >= anchorsHeard }

// surplus is by how much the rate of a source's tally, less some standard deviations, exceeds
// the reference's: x of (7).
func (s *standing) surplus(own tally, newcomer bool, deviations float64) float64 {
	e, sd := s.rateOf(own, newcomer)
	return e - float64(deviations*sd) - s.reference.rate(firstTallyRate)
}

// rateOf is e_s of a source's tally, and its standard deviation as in (7).
func (s *standing) rateOf(own tally, newcomer bool) (e, sd float64) {
	n := own.evidence + tallyShrinkage
	if newcomer {
		n += s.newcomers.evidence
	}
	e = own.rate(s.newcomers.rate(firstTallyRate))
	return e, math.Sqrt((float64(e*(1-e)) + leastSpread) / n)
}

// newcomer reports whether a source's labels count among the newcomers'. nil is a source
// that has not labelled yet.
func (s *source) newcomer() bool { return s == nil || s.count < newcomerLabels }

// own is the source's tally.
func (s *source) own() tally {
	if s == nil {
		return tally{}
	}
	return s.tally
}

// accuses reports whether a source's labels contradict the reference, before label number now.
// Nobody is accused by a reference that is his own.
func (s *standing) accuses(from *source, now uint64) bool {
	return s.others(from, now) >= silence && (s.surplus(from.tally, from.newcomer(), oneSided) > accusedAbove ||
		s.surplus(from.slow, from.newcomer(), slowDeviation) > slowAbove)
}

// others is the evidence in the reference that label number now finds there from other
// sources than its own.
func (s *standing) others(from *source, now uint64) float64 {
	if from == nil {
		return s.reference.evidence
	}
	return max(0, s.reference.evidence-from.shareAt(now))
}

// shareAt is the source's part of the evidence in the reference that label number now finds.
func (s *source) shareAt(now uint64) float64 {
	if s.share == 0 {
		return 0
	}
	return float64(s.share * power(referenceMemory, now-s.last-1))
}

// power is xᵏ, exact for k of 0 and 1.
func power(x float64, k uint64) float64 {
	y := 1.0
	for ; k > 0; k >>= 1 {
		if k&1 > 0 {
			y *= x
		}
		x *= x
	}
	return y
}

// dripCost is what a label of a source of weight w takes from the drip to be learnt in full; 0: it
// cannot be let in so.
func dripCost(x Label, w float64) float64 {
	q := x.Prob
	if !x.Spam {
		q = 1 - q
	}
	switch {
	case q >= plausible && w < dripBelow:
		return plausibleCost
	case w == 0:
		return 1
	}
	return 0
}

// weight is the weight of an ordinary source.
func (s *standing) weight(from *source, now uint64) float64 {
	x := s.surplus(from.own(), from.newcomer(), oneSided)
	w := max(0, 1-float64(2*max(0, x-tolerance)))
	if w *= w; w < leastStanding { // (8)
		w = 0
	}
	if !s.heard() {
		w = max(w, 1-s.others(from, now)/silence)
	}
	return w
}

// believes reports whether a source's corrections of its own labels are believed: nobody else is
// known well enough to compare it with, or it is known and contradicts the others no more than
// they do one another.
func (s *standing) believes(from *source) bool {
	return s.others(from, s.weighed) < silence || !from.newcomer() && s.surplus(from.own(), false, oneSided) <= 0
}

// excess is by how much a source's flip rate exceeds that of the others by more than one
// standard deviation; 0 where the others are not known well enough.
func (s *standing) excess(from *source, now uint64) float64 {
	if s.others(from, now) < knownReference {
		return 0
	}
	return max(0, s.surplus(from.own(), from.newcomer(), 1))
}

// leastRate is the least flip rate by which a label's trust is computed; 0: none.
func (s *standing) leastRate(from *source) float64 {
	sum, late := s.newcomersSum, s.referenceSum >= lateReference
	if from != nil {
		sum, late = sum+from.evidenceSum, from.late
	}
	least := 0.0
	if late || s.heard() {
		least = 1 / (tallyShrinkage + sum)
	}
	if s.heard() {
		least = max(least, leastUnanchored)
	}
	return least
}

// drops reports whether a label is dropped that the experts would learn with weight ω.
func (s *standing) drops(from *source, now uint64, ω float64) bool {
	if ω >= leastExpert {
		return false
	}
	if s.heard() {
		return true
	}
	if !from.newcomer() {
		return false
	}
	known := s.newcomers.evidence + from.own().evidence
	return known < unknownEvidence && s.others(from, now) > knownReference
}

// observe counts a label of a source with the weight w that it has by agreement. A label of a
// muted source changes the source's own tallies alone.
func (s *standing) observe(from *source, role Role, of tally, w float64) {
	if from.count == 0 {
		from.late = s.referenceSum >= lateReference
	}
	if role != Muted {
		s.compare(from, role, of, w)
	}
	from.tally.add(tallyMemory, 1, of)
	from.slow.add(slowMemory, 1, of)
	from.evidenceSum += of.evidence
	from.count++
}

// compare counts a label in what sources are compared with.
func (s *standing) compare(from *source, role Role, of tally, w float64) {
	now := s.weighed
	s.weighed++
	s.anchors = float64(referenceMemory * s.anchors)
	count := w
	switch {
	case role == Anchor:
		count = 1
		s.anchors += of.evidence
	case s.heard():
		count = 0
	}
	s.reference.add(referenceMemory, count, of)
	from.share = float64(referenceMemory*from.shareAt(now)) + float64(count*of.evidence)
	from.last = now
	s.referenceSum += float64(count * of.evidence)
	if from.newcomer() {
		s.newcomers.add(tallyMemory, 1, of)
		s.newcomersSum += of.evidence
	}
	s.drip = min(mostDrip, s.drip+float64(dripRate*w))
}

// The bytes of a standing:
//
//	uint64 labels that were weighed
//	| float64 reference D, N, ΣN | newcomers D, N, ΣN | anchors' N | drip
func (s *standing) write(w *codec.Writer) {
	w.Uint64(s.weighed)
	w.Float64(s.reference.flips, s.reference.evidence, s.referenceSum, s.newcomers.flips, s.newcomers.evidence,
		s.newcomersSum, s.anchors, s.drip)
}

// read reads what write wrote after the given number of labels.
func (s *standing) read(r *codec.Reader, labels uint64) {
	s.weighed = r.Uint64()
	r.FiniteTo(&s.reference.flips, &s.reference.evidence, &s.referenceSum, &s.newcomers.flips, &s.newcomers.evidence,
		&s.newcomersSum, &s.anchors, &s.drip)
	if s.weighed > labels || !s.reference.of(s.referenceSum, labels) || !s.newcomers.of(s.newcomersSum, labels) ||
		!(s.anchors >= 0 && s.anchors <= float64(labels)) || !(s.drip >= 0 && s.drip <= mostDrip) {
		r.Fail("standing of the sources of %d labels: %+v", labels, *s)
	}
}

// of reports whether at most so many labels, of this evidence in all, can have made t.
func (t tally) of(sum float64, labels uint64) bool {
	return t.evidence >= 0 && t.evidence <= sum && sum <= float64(labels) &&
		math.Abs(t.flips) <= float64(labels) && !math.Signbit(t.evidence)
}
