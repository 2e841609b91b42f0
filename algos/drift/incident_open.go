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
