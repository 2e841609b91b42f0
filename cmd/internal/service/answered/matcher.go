// Package answered compares what scorers answered with the labels that came later: the
// figures of a filter on the mail that it really filters. The learner's own prediction is
// of another moment: it is made when the label arrives, by a newer model.
//
// A [Matcher] joins the decisions of the journal with labels by the identity of a message. A
// [Service] does so while a learner runs, shows figures as metrics, and writes the labels
// into the journal, where hamlet history finds them.
//
// People label what they see wrong. So the labelled messages are no random sample of the
// answers, and an error among them is no error rate of the filter.
package answered

import (
	"encoding/hex"
	"math"
	"time"
	"unique"

	"hamlet/stream"
)

// Skew is by how much a label may seem to be older than the answer: the clocks of two
// machines differ.
const Skew = 2 * time.Second

// A Match is a decision and the label that its message got.
type Match struct {
	Door, Tenant string
	Model        string // that answered, as the journal names it
	Verdict      stream.Decision
	P            float64      // of spam, as it was answered
	Spam         bool         // the label
	Source       string       // of the label
	Labelled     time.Time    // when
	Before       stream.Label // the label that this one replaces; Unlabelled: it is the first
	Delay        time.Duration
	Nth          int64 // what Matcher.Decisions was before the decision
}

// Corrected reports whether the label contradicts the verdict.
func (m *Match) Corrected() bool {
	return m.Verdict == stream.DecideSpam && !m.Spam || m.Verdict == stream.DecideHam && m.Spam
}

func (m *Match) label() stream.Label {
	if m.Spam {
		return stream.Spam
	}
	return stream.Ham
}

// Decided returns when the decision was made, by the label's clock.
func (m *Match) Decided() time.Time { return m.Labelled.Add(-m.Delay) }

// LogOdds returns logit p, within ±37.
func (m *Match) LogOdds() float64 {
	const most = 37 // beyond, 1−p is not a float64 of its own
	return max(-most, min(most, math.Log(m.P/(1-m.P))))
}

// A Matcher joins decisions and labels. It remembers the newest messages, some 100 bytes each;
// an older one that gets its label is not matched. Only one goroutine may use it.
type Matcher struct {
	at   map[identity]int32 // in ring
	ring []message
	next int // in ring: the oldest, once it is full
	most int

	decisions int64 // that count
}

type identity [16]byte

type message struct {
	id      identity
	from    unique.Handle[answer] // zero: no decision yet
	p       float64
	decided int64 // microseconds since 1970
	nth     int64

	label    stream.Label // Unlabelled: none yet
	source   unique.Handle[string]
	labelled int64
}

// An answer is what many decisions have in common.
type answer struct {
	group
	model   string
	verdict stream.Decision
}

// A group is a door and a tenant.
type group struct{ door, tenant string }

// NewMatcher returns a Matcher that remembers at most so many messages.
func NewMatcher(most int) *Matcher { return &Matcher{at: map[identity]int32{}, most: most} }

// Add takes a line of the journal. It returns a match if the line is the first decision on a
// message that has a label, or a label that a decided message did not have. The first
// decision on a message counts: it is the one that its reader saw. A label that is older
// than the decision says nothing about it: the model had learnt it.
func (m *Matcher) Add(e *stream.JournalEntry) (Match, bool) {
	id, ok := parse(e.ID)
	if !ok { // a text or a vector: it has no identity
		if e.Label == stream.Unlabelled && e.Verdict != "" {
			m.decisions++
		}
		return Match{}, false
	}
	at, now := m.remembered(id), e.Time.UnixMicro()
	if e.Label == stream.Unlabelled {
		if at.decidedYet() || e.Verdict == "" {
			return Match{}, false
		}
		at.p, at.decided, at.nth = e.P, now, m.decisions
		at.from = unique.Make(answer{group{e.Door, e.Tenant}, e.Model, e.Verdict})
		m.decisions++
		if older(at.labelled, now) {
			at.label = stream.Unlabelled
		}
		return at.match(stream.Unlabelled)
	}
	if at.label == e.Label || at.decidedYet() && older(now, at.decided) {
		return Match{}, false
	}
	before := at.label
	at.label, at.labelled, at.source = e.Label, now, unique.Make(e.Source)
	return at.match(before)
}

// Decisions returns how many decisions count: all but those on a message that had one. If Add makes it more,
// its line was one of them.
func (m *Matcher) Decisions() int64 { return m.decisions }

// labelledAfter returns the last label of a message whose label is e, if it was given later than e.
func (m *Matcher) labelledAfter(e *stream.JournalEntry) (later stream.JournalEntry, ok bool) {
	id, ok := parse(e.ID)
	if !ok {
		return later, false
	}
	i, ok := m.at[id]
	if !ok || m.ring[i].label == stream.Unlabelled || m.ring[i].labelled <= e.Time.UnixMicro() {
		return later, false
	}
	at := &m.ring[i]
	return stream.JournalEntry{Time: time.UnixMicro(at.labelled).UTC(), ID: e.ID, Label: at.label, Source: at.source.Value()},
		true
}

// older reports whether a label's time is before that of a decision.
func older(label, decided int64) bool { return label < decided-Skew.Microseconds() }

func parse(id string) (parsed identity, ok bool) {
	if len(id) != 2*len(parsed) {
		return parsed, false
	}
	_, err := hex.Decode(parsed[:], []byte(id))
	return parsed, err == nil
}

func (at *message) decidedYet() bool { return at.from != unique.Handle[answer]{} }

// Oldest returns the time of the oldest decision that is remembered, in the order of the
// lines; zero as long as nothing was forgotten.
func (m *Matcher) Oldest() time.Time {
	if len(m.ring) < m.most {
		return time.Time{}
	}
	for i := range m.ring {
		if at := &m.ring[(m.next+i)%m.most]; at.decidedYet() {
			return time.UnixMicro(at.decided).UTC()
		}
	}
	return time.Time{}
}

func (at *message) match(before stream.Label) (Match, bool) {
	if !at.decidedYet() || at.label == stream.Unlabelled {
		return Match{}, false
	}
	from := at.from.Value()
	return Match{
		Door: from.door, Tenant: from.tenant, Model: from.model, Verdict: from.verdict, P: at.p,
		Spam: at.label == stream.Spam, Source: at.source.Value(), Labelled: time.UnixMicro(at.labelled).UTC(), Before: before,
		Nth: at.nth, Delay: time.Duration(max(0, at.labelled-at.decided)) * time.Microsecond,
	}, true
}

// remembered returns what is remembered of a message. It forgets the one that came first, if too many are.
func (m *Matcher) remembered(id identity) *message {
	if i, ok := m.at[id]; ok {
		return &m.ring[i]
	}
	i := int32(len(m.ring))
	if len(m.ring) < m.most {
		if len(m.ring) == cap(m.ring) { // append takes up to a quarter more than it needs
			m.ring = append(make([]message, 0, min(m.most, 64+len(m.ring)*9/8)), m.ring...)
		}
		m.ring = append(m.ring, message{})
	} else {
		i = int32(m.next)
		m.next = (m.next + 1) % m.most
		delete(m.at, m.ring[i].id)
	}
	m.ring[i], m.at[id] = message{id: id}, i
	return &m.ring[i]
}
