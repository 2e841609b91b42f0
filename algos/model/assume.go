package model

import (
	"cmp"

	"hamlet/algos/lastlabel"
	"hamlet/algos/trust"
)

// What people must have labelled before an answer is assumed to be right. Without their
// labels a model teaches itself its first mistakes: see hamlet bench selective.
const leastTaught = 5

// Assumed counts the answers that were learnt as labels, by Assume.
type Assumed struct {
	Ham  uint64 `json:"ham,omitempty"`
	Spam uint64 `json:"spam,omitempty"`
}

// Assumed returns how many answers were learnt as labels.
func (m *Model) Assumed() Assumed { return m.assumed }

// taught reports whether people have given leastTaught labels of each class, whatever these
// counted for.
func (m *Model) taught() bool {
	spam := m.spam - m.assumed.Spam
	ham := m.events - m.unlearnt - m.leftOut - m.spam - m.assumed.Ham
	return min(spam, ham) >= leastTaught
}

// assume learns the label of ex, which is what the model answered about the message ex.Of and
// nobody has contradicted since: self-training, with a pseudo-label (Lee 2013, "Pseudo-label:
// the simple and efficient semi-supervised learning method for deep neural networks"). People
// correct what they see wrong. A model that learns these labels alone believes that the world is
// made of its mistakes.
//
// The label counts trust.AssumedWeight. It is no evidence about labels or their sources, and no alarm
// takes it. Everybody who may correct his own labels may correct it.
//
// If the message has a label, had one, was forgotten, or is assumed to have one already, nothing is
// learnt: so what a person says wins, whichever comes first. Nothing is learnt either before people
// have given 5 labels of each class.
func (m *Model) assume(ex *Example, label trust.Label, key uint64, effect *Effect) {
	message := m.message(ex.Body.Tenant, ex.Of)
	last := m.labels.Get(message)
	if last.State != lastlabel.Unknown || !m.taught() || m.anyEvent(ex, message) {
		effect.Unassumed = true
		m.unlearnt++
		effect.Epsilon = m.Epsilon()
		return
	}
	label.Assumed = true
	m.learn(ex, teaching{label: label}, key, effect)
	if ex.Spam {
		m.assumed.Spam++
	} else {
		m.assumed.Ham++
	}
}

// anyEvent reports whether a message has an event that can be withdrawn.
func (m *Model) anyEvent(ex *Example, message uint64) bool {
	s := m.submodel(&ex.Body)
	return s != nil && len(s.sites.Of(nil, message)) > 0
}

// assumedSource is the source of assumed labels in sites and last labels.
func (m *Model) assumedSource() uint64 {
	return cmp.Or(lastlabel.Source(m.seen.Key("assumed", "answer")), 4)
}
