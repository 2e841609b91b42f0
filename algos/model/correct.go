package model

import (
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/lastlabel"
	"hamlet/algos/trust"
)

// An Outcome says what a withdrawal or a correction did.
type Outcome uint8

const (
	Withdrawn  Outcome = iota // Unlearn, Relearn: the event was withdrawn
	Replaced                  // the message's events were withdrawn, and the label learnt in their place
	Outweighed                // the message's label is too old to be withdrawn: the other one was learnt twice
	Unchanged                 // the message has this label: nothing was learnt
	NotAllowed                // the message's label is another source's: nothing was learnt
)

// taught reports whether a correction with this outcome learns the label.
func (o Outcome) taught() bool { return o == Replaced || o == Outweighed }

// correct gives the message ex.Of the label of ex. The message's events are those that have
// its identity and can still be withdrawn. The source may correct its own labels. An Anchor
// may correct all, and so may any source in an event without OwnOnly. A Muted source may
// correct none.
//
//   - If some of the events that it may correct have the other label, all of these events are
//     withdrawn and the label is learnt in their place. An expert that keeps a trace of them
//     learns it twice. So it is where a label counted for nothing or was assumed, even the same
//     one: such an event is nobody's, and everybody but a Muted source may correct it.
//   - If there is no event, but the table of last labels has the other label, and it may
//     correct that one, head and experts learn the label twice.
//   - A message that nobody has labelled, or that was forgotten, is learnt as by Learn. Then
//     there is no receipt.
//   - Otherwise nothing is learnt.
//
// In place of withdrawn events with this text the head learns its inputs of the oldest. The present
// inputs come from experts that have been taught the wrong label: by them the head would learn
// to distrust these experts. For the same reason no alarm sees a correction (MEASURED.md).
//
// A correction by a source that may correct all labels is believed, φ = 1, and counts in full.
// So is that of a source that may correct only its own while it is alone, or agrees with the
// others about other labels (trust.Label.Corrects); it counts by its standing. Otherwise it is a
// label like any other: a liar would give each label twice, the first time as the model wants it.
//
// Likelihoods multiply. After σ(−z) of the wrong label, σ(z) of the right one leaves
// σ(z)σ(−z), which is symmetric in the log-odds z and says nothing of their sign. A second
// σ(z) says what the right label alone would have said. The wrong label had at most the power
// 1, so 2 is enough, and it is the bound. Counts are the same: 1 of one class and 2 of the
// other. An AdaGrad expert takes two steps, each with the gradient at its own place.
func (m *Model) correct(ex *Example, label trust.Label, key uint64, effect *Effect) {
	s := m.submodel(&ex.Body)
	message, source := m.message(ex.Body.Tenant, ex.Of), m.source(ex.Source)
	own, all := label.Role != trust.Muted, label.Role == trust.Anchor || label.Role == trust.Ordinary && !ex.OwnOnly

	slots, others := s.eventsOf(message, source, m.assumedSource(), own, all)
	last := m.labels.Get(message)
	how := teaching{label: label}
	how.label.Believed, how.label.Vouched, how.label.Corrects = all, all, true
	receipt := Receipt{Spam: last.State == lastlabel.Spam}
	switch {
	case len(slots) > 0:
		receipt.Outcome = Unchanged
		if s.anyToReplace(slots, m.assumedSource(), !ex.Spam) {
			receipt = m.replace(s, slots, ex, &how)
		}
	case others:
		receipt.Outcome = NotAllowed
	case last.State == lastlabel.Unknown || last.State == lastlabel.Withdrawn:
		m.learn(ex, teaching{label: label}, key, effect)
		return
	case !all && !(own && (last.Source == source || last.Source == m.assumedSource())):
		receipt.Outcome = NotAllowed
	case last.State == lastlabel.Of(ex.Spam):
		receipt.Outcome = Unchanged
	default:
		receipt.Outcome = Outweighed
		how.outweigh(m.specs[kindOf(&ex.Body)])
	}
	effect.Receipt = &receipt
	if receipt.Outcome.taught() {
		m.learn(ex, how, key, effect)
		return
	}
	m.unlearnt++
	effect.Epsilon = m.Epsilon()
}

// ofAnotherKind reports whether the message ex.Of has events with another kind of body than ex.
func (m *Model) ofAnotherKind(ex *Example) bool {
	for k, s := range m.submodels {
		if s == nil || kind(k) == kindOf(&ex.Body) {
			continue
		}
		if message := m.message(ex.Body.Tenant, ex.Of); message != 0 && len(s.sites.Of(nil, message)) > 0 {
			return true
		}
	}
	return false
}

// eventsOf returns the slots of a message's events that a source may withdraw, newest first:
// its own and nobody's, or all. others: there are events, and it may withdraw none. s may be nil,
// and message 0: then there are none.
func (s *submodel) eventsOf(message, source, nobody uint64, own, all bool) (slots []int, others bool) {
	if s == nil || message == 0 {
		return nil, false
	}
	for _, slot := range s.sites.Of(nil, message) {
		if from := s.sites.Source(slot); all || own && (from == source || from == nobody || s.sites.Weight(slot) == 0) {
			slots = append(slots, slot)
		} else {
			others = true
		}
	}
	return slots, others && len(slots) == 0
}

// anyToReplace reports whether one of the events was learnt with this label, or not in full by
// somebody's word.
func (s *submodel) anyToReplace(slots []int, nobody uint64, spam bool) bool {
	for _, slot := range slots {
		if s.sites.Label(slot) == spam || s.sites.Source(slot) == nobody || s.sites.Weight(slot) == 0 {
			return true
		}
	}
	return false
}

// replace withdraws the events in slots and says how the label is learnt in their place. An
// event that cannot be withdrawn is outweighed.
func (m *Model) replace(s *submodel, slots []int, ex *Example, how *teaching) Receipt {
	in, oldest := m.own.reader.read(&ex.Body, s), slots[len(slots)-1]
	if _, text := s.sites.Hashes(oldest); text == in.bodyHashes().text {
		how.x = slices.Clone(s.sites.Head(oldest).X)
	}
	receipt, err := m.withdrawAll(s, slots, m.source(ex.Source), in)
	if err != nil {
		how.outweigh(s.spec)
		receipt.Outcome, receipt.Spam = Outweighed, !ex.Spam
		return receipt
	}
	receipt.Outcome = Replaced
	how.label.Replaces, how.label.Given = receipt.SameSource && !how.label.Vouched, receipt.Standing
	how.again = make([]bool, len(s.entries))
	for k, e := range s.entries {
		how.again[k] = !e.Counts || receipt.Uncounted
	}
	return receipt
}

// A teaching says how a label is learnt. That of Learn has only a label.
type teaching struct {
	label trust.Label // its source, role and event, and what is known of it
	power uint8       // of the head's likelihood: 0 is 1
	x     []float64   // what the head is taught: its inputs when the message was first learnt; nil: the present ones
	again []bool      // by expert: it learns the label twice; nil: none does
}

// outweigh makes head and experts learn the label twice.
func (t *teaching) outweigh(s *spec) {
	t.power, t.again = blr.MostPower, make([]bool, len(s.entries))
	for k := range t.again {
		t.again[k] = true
	}
}

// unwatched reports whether the alarms leave the label out.
func (t *teaching) unwatched() bool {
	return t.label.Role == trust.Muted || t.label.Corrects || t.label.Assumed
}

// isAgain reports whether expert k learns the label twice.
func (t *teaching) isAgain(k int) bool { return t.again != nil && t.again[k] }

// source returns the hash of a source's name that sites and last labels have.
func (m *Model) source(name string) uint64 { return lastlabel.Source(m.seen.Key(name)) }

// message returns the hash of a message's identity. 0: it has none.
func (m *Model) message(tenant, identity string) uint64 {
	if identity == "" {
		return 0
	}
	return m.seen.Key(tenant, identity)
}
