package model

import (
	"cmp"

	"hamlet/algos/lastlabel"
)

// What people must have labelled before an answer is assumed to be right. Without their
// labels a model teaches itself its first mistakes: see hamlet-lab bench selective.
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

// assumes reports whether the label of ex is learnt, which is what the model answered about the message
// ex.Of. Nobody has contradicted it since: self-training, with a pseudo-label (Lee 2013, "Pseudo-label:
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
func (m *Model) assumes(ex *Example) bool {
	message, s := m.message(ex.Body.Tenant, ex.Of), m.submodel(&ex.Body)
	return m.labels.Get(message).State == lastlabel.Unknown && m.taught() &&
		(s == nil || len(s.sites.Of(nil, message)) == 0)
}

// assumedSource is the source of assumed labels in sites and last labels.
func (m *Model) assumedSource() uint64 {
	return cmp.Or(lastlabel.Source(m.seen.Key("assumed", "answer")), 4)
}
