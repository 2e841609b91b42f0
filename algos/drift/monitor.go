package drift

import (
	"errors"

	"hamlet/algos/blr"
	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/task"
	"hamlet/algos/trust"
)

// The kinds of alarms, as users see them.
const (
	KindLabelNoise = "label-noise"
	KindCovariate  = "covariate"
	KindConcept    = "concept"
	KindSource     = "source"  // the labels of one source, or of new names that take turns
	KindUnknown    = "unknown" // of a suspicion: something changed, and it is not known yet what
)

// MonitorMemory is ρ per event of the label-noise alarm's own head. With ρ = 1 a change
// of concept looks like noise: the head continues to contradict the new labels.
const MonitorMemory = 0.998

// SurpriseWindow is the covariate alarm's window in events if it watches surprises. It is
// longer because only some of the mail belongs to a campaign.
const SurpriseWindow = 60

// leastWeight keeps the weight of a label above 0. The head needs that.
const leastWeight = 1e-12

// A MonitorConfig says what a Monitor is made of.
type MonitorConfig struct {
	// Head is the label-noise alarm's own head, before any event. It has the inputs of
	// the monitored head and forgets at MonitorMemory. If nil, the alarm uses the
	// monitored head's answers.
	Head *blr.Posterior

	// Surprise makes the covariate alarm watch an expert's surprise instead of the
	// head's leverage. A head over experts does not see new words: the experts'
	// log-odds are then near 0, and so is the leverage.
	Surprise bool

	Noise     LabelNoiseConfig
	Covariate CovariateConfig
	Concept   PageHinkleyConfig
}

// An Observation is an event as a model predicted it, before it learnt it.
type Observation struct {
	X                  []float64 // the head's inputs
	Inputs             []float64 // what the label-noise alarm sees, LabelNoiseConfig.Dim numbers
	Label              float64   // ±1
	LogOdds            float64   // what the head answered, in nats
	Leverage, Surprise float64   // the variance of its answer; the expert's surprise in nats
	Standing           float64   // how much the label counts by its source's standing, 0 to 1
	Muted              bool      // the label is of a source that an operator has muted: no alarm takes it
	ID, Source         string
	Event              uint64 // the model's count of this event, over all kinds of bodies, from 1
}

// A State is what an incident became. An incident begins as Suspected or Raised.
//
//	Suspected ──> Raised ──> Cleared
//	    └───────> Withdrawn
type State uint8

const (
	Suspected State = iota + 1 // its kind is KindUnknown
	Raised                     // it has a name: its kind is any other
	Cleared                    // what was raised is over
	Withdrawn                  // what was suspected came to nothing
)

var states = [...]string{Suspected: "suspected", Raised: "raised", Cleared: "cleared", Withdrawn: "withdrawn"}

// String returns the state in lower case, such as "suspected".
func (s State) String() string {
	if s >= Suspected && int(s) < len(states) {
		return states[s]
	}
	return "unknown state"
}

// A Change is a transition of an incident, made by an event. Two incidents of one Monitor
// have different numbers.
type Change struct {
	Kind       string
	State      State
	Incident   uint64 // its number: Observation.Event of the event that opened it
	Transition int    // of this incident, from 1
	Source     string // who is accused, if Kind is KindSource
	Status     Status
	Report     *Report // of label noise, else nil
}

// alarmChange returns the change of an alarm that was raised or cleared by event number
// count. Each time that it is raised it opens an incident.
func alarmChange(kind string, before, after Status, count uint64) Change {
	if after.Raised {
		return Change{Kind: kind, State: Raised, Incident: count, Transition: 1, Status: after}
	}
	return Change{Kind: kind, State: Cleared, Incident: before.Since, Transition: 2, Status: after}
}

// An Alarm is the status of one alarm.
type Alarm struct {
	Kind   string
	Status Status
}

// A Monitor watches one head with all three alarms. Covariate and concept use that head's
// answers. Label noise has its own head, which weights labels by their trust: without
// the weights, a head learns flips of one class as a new concept within 300 events. Only
// one goroutine may use a Monitor. Its clock is the number of events observed.
type Monitor struct {
	head     *blr.Posterior // nil: none
	flipRate float64        // ε by that head. Invariant: trust.IsFlipRate
	surprise bool

	noise     *LabelNoise
	covariate *Covariate
	concept   *PageHinkley

	snr *task.Task[Result] // the pending SNR; nil: none, or Resume must start it
}

// NewMonitor returns a Monitor before any event. It reports every bad field.
func NewMonitor(cfg MonitorConfig) (*Monitor, error) {
	m := &Monitor{head: cfg.Head, flipRate: trust.FirstFlipRate, surprise: cfg.Surprise}
	var err1, err2, err3 error
	m.noise, err1 = NewLabelNoise(cfg.Noise)
	m.covariate, err2 = NewCovariate(cfg.Covariate)
	m.concept, err3 = NewPageHinkley(cfg.Concept)
	return m, errors.Join(err1, err2, err3)
}

// Observe takes event number count. It appends the alarms that changed to dst. r computes
// SNRs in the background; if r is nil, Observe computes them itself.
func (m *Monitor) Observe(dst []Change, o *Observation, count uint64, r task.Runner) []Change {
	if !o.Muted {
		dst = m.observe(dst, o, count)
	} else if m.noise.Skip(); m.head != nil {
		m.head.Update(o.X, o.Label, leastWeight) // it counts events
	}
	if count%Rhythm != 0 {
		return dst
	}
	return m.checkNoise(dst, count, r)
}

// observe lets the alarms take event number count.
func (m *Monitor) observe(dst []Change, o *Observation, count uint64) []Change {
	logOdds := o.LogOdds
	if m.head != nil {
		logOdds = blr.Moderate(m.head.Moments(o.X))
	}
	q := logistic.Sigmoid(o.Label * logOdds)
	φ := trust.Phi(q, m.flipRate, m.flipRate)
	m.flipRate = trust.NextFlipRate(m.flipRate, φ, 1, count-1)
	if m.head != nil {
		m.head.Update(o.X, o.Label, max(leastWeight, float64(φ*o.Standing)))
	}

	var changed bool
	before := m.covariate.Status()
	if m.surprise {
		changed = m.covariate.ObserveLog(count, o.Surprise)
	} else {
		changed = m.covariate.Observe(count, o.Leverage)
	}
	if changed {
		dst = append(dst, alarmChange(KindCovariate, before, m.covariate.Status(), count))
	}
	before = m.concept.Status()
	if m.concept.Observe(count, -logistic.LogSigmoid(o.Label*o.LogOdds)) {
		dst = append(dst, alarmChange(KindConcept, before, m.concept.Status(), count))
	}
	m.noise.Observe(Event{X: o.Inputs, Label: o.Label, Prob: q, FlipRate: m.flipRate, ID: o.ID, Source: o.Source})
	return dst
}

// checkNoise lets a pending SNR take effect, checks the label-noise alarm and starts
// the next SNR.
func (m *Monitor) checkNoise(dst []Change, count uint64, r task.Runner) []Change {
	if due, pending := m.noise.Due(); pending && due == count {
		m.Resume(r)
		m.noise.Finish(m.snr.Result())
		m.snr = nil
	}
	before := m.noise.Status()
	if m.noise.Check(count) {
		report := m.noise.Report()
		if !report.Status.Known { // Check has dropped the reference after Settle events: report it
			report.Status.Reference = before.Reference
		}
		c := alarmChange(KindLabelNoise, before, report.Status, count)
		c.Report = &report
		dst = append(dst, c)
	}
	if job, ok := m.noise.Start(count); ok {
		m.snr = task.Begin(r, job.Run)
	}
	return dst
}

// Resume starts the pending SNR, if there is one, unless it runs already. Call it after Read.
func (m *Monitor) Resume(r task.Runner) {
	if m.snr != nil {
		return
	}
	if job, pending := m.noise.Pending(); pending {
		m.snr = task.Begin(r, job.Run)
	}
}

// Retune gives the alarms the thresholds of cfg. Its other fields must be those of m.
func (m *Monitor) Retune(cfg MonitorConfig) error {
	fresh, err := NewMonitor(cfg)
	if err != nil {
		return err
	}
	return errors.Join(m.noise.Retune(fresh.noise.Config()), m.covariate.Retune(fresh.covariate.Config()),
		m.concept.Retune(fresh.concept.Config()))
}

// Alarms returns the status of label noise, covariate and concept, in this order.
func (m *Monitor) Alarms() [3]Alarm {
	return [3]Alarm{{KindLabelNoise, m.noise.Status()}, {KindCovariate, m.covariate.Status()}, {KindConcept, m.concept.Status()}}
}

// Diagnosis returns what the alarms mean together.
func (m *Monitor) Diagnosis() Diagnosis {
	return Diagnose(m.noise.Status(), m.covariate.Status(), m.concept.Status())
}

// WindowSize returns the size of the label-noise alarm in bytes; most of it is the window.
func (m *Monitor) WindowSize() int { return m.noise.Size() }

// Write appends
//
//	float64 ε | head | label noise | covariate | concept
//
// The last four each follow their length, a uint64. The head may be missing.
func (m *Monitor) Write(w *codec.Writer) {
	w.Float64(m.flipRate)
	if m.head != nil {
		w.Part64(m.head)
	}
	w.Part64(m.noise)
	w.Part64(m.covariate)
	w.Part64(m.concept)
}

// Read reads what Write wrote after the given number of events; m is new. r fails if m's
// configuration and that many events cannot have made the bytes.
func (m *Monitor) Read(r *codec.Reader, events uint64) {
	m.flipRate = r.Float64()
	if !trust.IsFlipRate(m.flipRate) {
		r.Fail("flip rate %v", m.flipRate)
	}
	if m.head != nil {
		m.head = blr.Read(r, m.head)
		if r.Err() == nil && m.head.Updates() != events {
			r.Fail("a head of %d events after %d", m.head.Updates(), events)
		}
	}
	fresh := m.configs()
	r.Unmarshal64(m.noise)
	r.Unmarshal64(m.covariate)
	r.Unmarshal64(m.concept)
	if r.Err() != nil {
		return
	}
	if m.configs() != fresh {
		r.Fail("alarms with %+v, their configuration says %+v", m.configs(), fresh)
	}
	m.checkEvents(r, KindCovariate, m.covariate.Events(), m.covariate.Status().Since, events)
	m.checkEvents(r, KindConcept, m.concept.Events(), m.concept.Status().Since, events)
	if m.covariate.Events()+m.noise.Skipped() < events {
		r.Fail("%s: an alarm of %d events after %d", KindCovariate, m.covariate.Events(), events)
	}
	seen, checked := m.noise.Clock()
	due, pending := m.noise.Due()
	if seen != events || checked != events-events%Rhythm || pending && due != checked+Rhythm {
		r.Fail("a label-noise alarm of %d events, checked at %d, with a result due at %d (%v), after %d events",
			seen, checked, due, pending, events)
	}
}

// checkEvents refuses an alarm that has seen or changed more than events.
func (m *Monitor) checkEvents(r *codec.Reader, kind string, seen, changed, events uint64) {
	if seen > events || changed > events {
		r.Fail("%s: an alarm of %d events, changed at %d, after %d events", kind, seen, changed, events)
	}
}

// configs returns the alarms' configurations.
func (m *Monitor) configs() (c struct {
	noise     LabelNoiseConfig
	covariate CovariateConfig
	concept   PageHinkleyConfig
}) {
	c.noise, c.covariate, c.concept = m.noise.Config(), m.covariate.Config(), m.concept.Config()
	return c
}
