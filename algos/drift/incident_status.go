package drift

import "hamlet/algos/internal/codec"

// suspected is the status of the signs of change: the walk nearest to its threshold, in units
// of it.
func (n *Incidents) suspected() Status {
	s := Status{Known: true, Level: n.excess(), Threshold: 1}
	s.Raised, s.Since = n.stands(KindUnknown)
	return s
}

// stands reports whether an incident of a kind is open, and the count of its last transition.
func (n *Incidents) stands(kind string) (open bool, since uint64) {
	for _, i := range n.incidents() {
		if i.open() && i.kind == kind {
			return true, i.since
		}
	}
	return false, 0
}

// Diagnosis returns the most specific name of the open incidents. Bad labels come first,
// because the other alarms depend on them.
func (n *Incidents) Diagnosis() Diagnosis {
	switch labels := &n.named[aboutLabels]; {
	case labels.accused:
		return SourceIsWrong
	case labels.open():
		return LabelsWentBad
	case n.named[aboutMail].open():
		return MailChanged
	case n.named[aboutWorld].open():
		return MeaningChanged
	case n.suspicion.open():
		return SomethingChanged
	}
	return Nothing
}

// check fails if so many events cannot have made n.
func (n *Incidents) check(r *codec.Reader, events uint64) {
	for _, i := range n.incidents() {
		if i.since > events {
			r.Fail("a %s incident changed at %d, after %d events", i.kind, i.since, events)
		}
	}
	for i := range n.walks {
		if n.walks[i].events > events {
			r.Fail("a walk of %d events after %d", n.walks[i].events, events)
		}
	}
	if n.accused > events || uint64(len(n.recent)) > events {
		r.Fail("an accusation at %d and %d events since a change, after %d events", n.accused, len(n.recent), events)
	}
}
