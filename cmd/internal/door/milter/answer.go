package milter

import (
	"maps"
	"slices"
	"strings"

	"github.com/emersion/go-milter"

	"hamlet/stream"
)

// An action is what the mail server does with a message, from the most lenient on.
type action int

const (
	deliver action = iota
	quarantine
	reject
)

// What the mail server tells its client, or its operator.
const (
	rejectText     = "550 5.7.1 This message looks like spam. If it is not, please reach the recipient in another way."
	quarantineText = "hamlet: probably spam"
)

// action returns the most lenient of what the verdicts ask for. Without one it is to
// deliver.
func (s *session) action(verdicts []stream.Verdict) action {
	if len(verdicts) == 0 || s.tooManyTenants {
		return deliver
	}
	lenient := reject
	for i := range verdicts {
		lenient = min(lenient, s.cfg.action(&verdicts[i]))
	}
	if lenient == quarantine && s.actions&milter.OptQuarantine == 0 {
		return deliver // marked: this mail server cannot hold it
	}
	return lenient
}

func (c Config) action(v *stream.Verdict) action {
	switch {
	case v.Decision != stream.DecideSpam:
		return deliver
	case c.RejectAt > 0 && v.P >= c.RejectAt:
		return reject
	case c.QuarantineAt > 0 && v.P >= c.QuarantineAt:
		return quarantine
	}
	return deliver
}

// removeForged removes the fields that could be taken for ours. A mail server counts the
// fields of a name from 1, and counts again after each removal; so the last goes first.
func (s *session) removeForged(m *milter.Modifier) {
	if s.actions&milter.OptChangeHeader == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.forged)) {
		for i := s.forged[name]; i > 0; i-- {
			_ = m.ChangeHeader(i, name, "")
		}
	}
}

// mark adds the fields of v at the top and tags the subject. The wire keeps account of
// errors.
func (s *session) mark(m *milter.Modifier, v *stream.Verdict) {
	marks, tagged := s.door.Marks, false
	switch {
	case s.subject != nil:
		var value string
		if value, tagged = marks.Subject(v, s.subject.value); tagged {
			_ = m.ChangeHeader(1, s.subject.name, s.value(value))
		}
	case !s.untagged:
		var value string
		if value, tagged = marks.Subject(v, ""); tagged {
			_ = m.AddHeader("Subject", s.value(strings.TrimRight(value, " ")))
		}
	}
	added := marks.Added(v, tagged)
	for _, f := range slices.Backward(added) { // each goes above the one before
		_ = m.InsertHeader(0, f.Name, s.value(" "+f.Value))
	}
}

// value returns a value that begins behind the colon as the mail server wants it: without
// the first blank, unless it was agreed that values have theirs.
func (s *session) value(v string) string {
	if s.protocol&milter.OptHeaderLeadingSpace != 0 {
		return v
	}
	return strings.TrimPrefix(v, " ")
}
