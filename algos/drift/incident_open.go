package drift

// An OpenIncident is one that has begun and is not over.
type OpenIncident struct {
	Kind       string // KindUnknown: suspected, else named
	Incident   uint64 // Change.Incident
	Transition int    // the last
	Source     string // who is accused, if somebody is
	Since      uint64 // the event count of the last transition
}

// Open returns the open incidents, a suspicion first.
func (m *Monitor) Open() (all []OpenIncident) {
	for _, i := range m.incidents.incidents() {
		if i.open() {
			all = append(all, OpenIncident{i.kind, i.number, i.transitions, i.source, i.since})
		}
	}
	return all
}

// NoisePast returns the past levels of the label-noise alarm, the oldest first, and the event
// count of the last one. There is one at each Rhythm. Where the alarm was raised, or one class
// was rare, there are none, and those before are older than the count says. The caller must
// not change levels.
func (m *Monitor) NoisePast() (levels []float64, last uint64) {
	n := m.noise
	if last = n.marked; n.raised {
		last = n.since
	}
	return n.history, last
}
