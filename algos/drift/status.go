package drift

import (
	"errors"

	"hamlet/algos/internal/codec"
)

// A Status is how an alarm stands. Each alarm documents what its numbers mean and their
// units.
type Status struct {
	Raised    bool
	Since     uint64 // the event count of the last change of Raised, 0 if there was none
	Known     bool   // whether there is a level and a reference yet
	Level     float64
	Reference float64
	Threshold float64 // each alarm says what it compares with this
}

// A Diagnosis says in words what the open incidents together mean. The most urgent comes first.
type Diagnosis uint8

const (
	Nothing          Diagnosis = iota // no incident is open
	SourceIsWrong                     // a source is accused, whatever else is named
	LabelsWentBad                     // label noise, and no source is accused
	MailChanged                       // covariate, and nothing about labels
	MeaningChanged                    // concept alone
	SomethingChanged                  // a suspicion
)

var diagnoses = [...]string{
	"nothing", "a source gives wrong labels", "labels went bad", "the mail changed", "the world changed",
	"something changed, not yet known what",
}

// String returns the diagnosis in words, such as "labels went bad".
func (d Diagnosis) String() string {
	if int(d) < len(diagnoses) {
		return diagnoses[d]
	}
	return "unknown diagnosis"
}

// errRetuned says that more than thresholds would change.
var errRetuned = errors.New("drift: an alarm can take other thresholds, but nothing else: its state depends on that")

// Retune gives n the thresholds of cfg. They apply from the next Check on. Dim must be that
// of n.
func (n *LabelNoise) Retune(cfg LabelNoiseConfig) error {
	if err := cfg.Fill(); err != nil {
		return err
	}
	if cfg.Dim != n.cfg.Dim {
		return errRetuned
	}
	n.cfg = cfg
	return nil
}

// Retune gives c the Threshold of cfg, from the next event on. Window must be that of c.
func (c *Covariate) Retune(cfg CovariateConfig) error {
	if err := cfg.Fill(); err != nil {
		return err
	}
	if cfg.Window != c.cfg.Window {
		return errRetuned
	}
	c.cfg = cfg
	return nil
}

// Retune gives p the Threshold of cfg, from the next event on. Clip must be that of p. If U
// is greater, it becomes the threshold.
func (p *PageHinkley) Retune(cfg PageHinkleyConfig) error {
	if err := cfg.Fill(); err != nil {
		return err
	}
	if cfg.Clip != p.cfg.Clip {
		return errRetuned
	}
	p.cfg = cfg
	p.excess = min(p.excess, p.cfg.Threshold)
	return nil
}

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
