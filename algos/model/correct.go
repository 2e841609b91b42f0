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
//
// correct does all of it but to learn the label. It completes how, and returns the receipt.
func (m *Model) correct(s *submodel, ex *Example, does decision, how *teaching) *Receipt {
	receipt := does.receipt
	if receipt == nil {
		return nil
	}
	_, all := m.mayCorrect(ex)
	how.label.Believed, how.label.Vouched, how.label.Corrects = all, all, true
	switch receipt.Outcome {
	case Replaced:
		*receipt = m.replace(s, does.withdraws, ex, how)
	case Outweighed:
		how.outweigh(m.specs[kindOf(&ex.Body)])
	}
	return receipt
}

// decideCorrection decides which of these cases ex is.
func (m *Model) decideCorrection(ex *Example) decision {
	s := m.submodel(&ex.Body)
	message, source := m.message(ex.Body.Tenant, ex.Of), m.source(ex.Source)
	own, all := m.mayCorrect(ex)
	slots, others := s.eventsOf(message, source, m.assumedSource(), own, all)
	last := m.labels.Get(message)
	receipt := &Receipt{Spam: last.State == lastlabel.Spam}
	switch {
	case len(slots) > 0 && s.anyToReplace(slots, m.assumedSource(), !ex.Spam):
		receipt.Outcome = Replaced
		return decision{withdraws: slots, learns: true, receipt: receipt}
	case len(slots) > 0:
		receipt.Outcome = Unchanged
	case others:
		receipt.Outcome = NotAllowed
	case last.State == lastlabel.Unknown || last.State == lastlabel.Withdrawn:
		return decision{learns: true}
	case !all && !(own && (last.Source == source || last.Source == m.assumedSource())):
		receipt.Outcome = NotAllowed
	case last.State == lastlabel.Of(ex.Spam):
		receipt.Outcome = Unchanged
	default:
		receipt.Outcome = Outweighed
	}
	return decision{learns: receipt.Outcome.taught(), receipt: receipt}
}

// mayCorrect reports whether the source of ex may correct labels of its own, and all.
func (m *Model) mayCorrect(ex *Example) (own, all bool) {
	role := m.roles[ex.Source]
	return role != trust.Muted, role == trust.Anchor || role == trust.Ordinary && !ex.OwnOnly
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
	in, oldest := m.own.vectorizer.read(&ex.Body, s), slots[len(slots)-1]
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
