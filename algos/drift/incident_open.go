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
// count of the last one. There is one at each Rhythm. While the alarm was raised there are none.
// So once it has cleared, those from before are left out, and right after it no level is left.
// While it is raised again, those from before an earlier clearing are older than the count
// says. So are those from before one class was rare. The caller must not change levels.
func (m *Monitor) NoisePast() (levels []float64, last uint64) {
	n := m.noise
	if n.raised {
		return n.history, n.since
	}
	levels = n.history
	if n.since > 0 { // it cleared then
		after := min(uint64(len(levels)), (n.marked-n.since)/Rhythm)
		levels = levels[uint64(len(levels))-after:]
	}
	return levels, n.marked
}
