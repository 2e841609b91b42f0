package drift

import (
	"errors"
	"math"

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

// SurpriseThreshold is the covariate alarm's default threshold if it watches surprises: a mean
// of more events varies less.
const SurpriseThreshold = 0.6

// leastWeight keeps the weight of a label above 0. The head needs that.
const leastWeight = 1e-12

// A MonitorConfig says what a Monitor is made of.
type MonitorConfig struct {
	// Head is the label-noise alarm's own head, before any event. It has the inputs of
	// the monitored head and forgets at MonitorMemory. If nil, the alarm uses the
	// monitored head's answers.
	Head *blr.Posterior

	// Credulous is a second head of the same inputs. It learns every label in full and
	// forgets at CredulousMemory. If nil, no suspicion is named by its labels.
	Credulous *blr.Posterior

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
	Accused            bool      // Source's labels contradict those of the others
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

// An Alarm is the status of one alarm.
type Alarm struct {
	Kind   string
	Status Status
}

// A Monitor watches one head with all alarms, and decides what they mean. Covariate and
// concept use that head's answers. Label noise has its own head, which weights labels by their trust: without
// the weights, a head learns flips of one class as a new concept within 300 events. Only
// one goroutine may use a Monitor. Its clock is the number of events observed.
type Monitor struct {
	head      *blr.Posterior // nil: none
	credulous *blr.Posterior // nil: none
	flipRate  float64        // ε by head. Invariant: trust.IsFlipRate
	surprise  bool

	noise     *LabelNoise
	covariate *Covariate
	concept   *PageHinkley
	incidents *Incidents

	snr *task.Task[Result] // the pending SNR; nil: none, or Resume must start it
}

// NewMonitor returns a Monitor before any event. It reports every bad field.
func NewMonitor(cfg MonitorConfig) (*Monitor, error) {
	m := &Monitor{head: cfg.Head, credulous: cfg.Credulous, flipRate: trust.FirstFlipRate, surprise: cfg.Surprise,
		incidents: new(Incidents)}
	var err1, err2, err3 error
	m.noise, err1 = NewLabelNoise(cfg.Noise)
	m.covariate, err2 = NewCovariate(cfg.Covariate)
	m.concept, err3 = NewPageHinkley(cfg.Concept)
	return m, errors.Join(err1, err2, err3)
}

// Observe takes event number count. It appends the transitions of incidents to dst. r computes
// SNRs in the background; if r is nil, Observe computes them itself.
func (m *Monitor) Observe(dst []Change, o *Observation, count uint64, r task.Runner) []Change {
	if o.Muted {
		m.skip(o)
		if count%Rhythm == 0 {
			m.checkNoise(count, r)
		}
		return dst // what this raises or clears, the next event reports
	}
	e := Evidence{Event: o.Event, Spam: o.Label > 0, Prob: logistic.Sigmoid(o.LogOdds), Source: o.Source,
		Accused: o.Accused}
	m.predict(o, &e, count)
	if m.surprise {
		m.covariate.ObserveLog(count, o.Surprise)
	} else {
		m.covariate.Observe(count, o.Leverage)
	}
	m.concept.Observe(count, -logistic.LogSigmoid(o.Label*o.LogOdds))
	m.noise.Observe(Event{X: o.Inputs, Label: o.Label, Prob: e.Watched, FlipRate: m.flipRate, ID: o.ID, Source: o.Source})
	before := m.noise.Status()
	if count%Rhythm == 0 {
		m.checkNoise(count, r)
	}
	e.Surprise = m.covariate.Status().Level
	e.Noise, e.Covariate, e.Concept = m.noise.raised, m.covariate.raised, m.concept.raised
	e.New = e.Accused && m.noise.recent.of(o.Source) <= fewLabels
	first := len(dst)
	dst = m.incidents.Observe(dst, count, &e)
	for i := range dst[first:] {
		m.describe(&dst[first+i], count, &before)
	}
	return dst
}

// skip counts an event that no alarm takes.
func (m *Monitor) skip(o *Observation) {
	m.noise.Skip()
	for _, head := range []*blr.Posterior{m.head, m.credulous} {
		if head != nil {
			head.Update(o.X, o.Label, leastWeight)
		}
	}
}

// fewLabels is how many of the recent events a source has labelled at most if it is new.
const fewLabels = 5

// predict sets what the heads say about the event, and lets them learn it.
func (m *Monitor) predict(o *Observation, e *Evidence, count uint64) {
	logOdds := o.LogOdds
	if m.head != nil {
		logOdds = blr.Moderate(m.head.Moments(o.X))
	}
	e.Watched = logistic.Sigmoid(o.Label * logOdds)
	φ := trust.Phi(e.Watched, m.flipRate, m.flipRate)
	e.Doubt = 1 - φ
	m.flipRate = trust.NextFlipRate(m.flipRate, φ, 1, count-1)
	if m.head != nil {
		m.head.Update(o.X, o.Label, max(leastWeight, float64(φ*o.Standing)))
	}
	e.Credulous = math.NaN()
	if m.credulous != nil {
		e.Credulous = logistic.Sigmoid(o.Label * blr.Moderate(m.credulous.Moments(o.X)))
		m.credulous.Update(o.X, o.Label, max(leastWeight, o.Standing))
	}
}

// describe sets what the alarms say about a transition. before is the label-noise alarm's
// status before the event.
func (m *Monitor) describe(c *Change, count uint64, before *Status) {
	switch c.Kind {
	case KindLabelNoise, KindSource:
		c.Status = m.noise.Status()
		if !c.Status.Known { // the alarm has dropped the reference: it has settled: report it
			c.Status.Reference = before.Reference
		}
		if c.Kind == KindLabelNoise {
			report := m.noise.Report()
			report.Status = c.Status
			report.Status.Raised, report.Status.Since = c.State == Raised, count
			c.Report = &report
		}
	case KindCovariate:
		c.Status = m.covariate.Status()
	case KindConcept:
		c.Status = m.concept.Status()
	case KindUnknown:
		c.Status = m.incidents.suspected()
	}
	c.Status.Raised, c.Status.Since = c.State == Raised || c.State == Suspected, count
}

// checkNoise lets a pending SNR take effect, checks the label-noise alarm and starts
// the next SNR.
func (m *Monitor) checkNoise(count uint64, r task.Runner) {
	if due, pending := m.noise.Due(); pending && due == count {
		m.Resume(r)
		m.noise.Finish(m.snr.Result())
		m.snr = nil
	}
	m.noise.Check(count)
	if job, ok := m.noise.Start(count); ok {
		m.snr = task.Begin(r, job.Run)
	}
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
	return errors.Join(m.noise.Retune(cfg.Noise), m.covariate.Retune(cfg.Covariate), m.concept.Retune(cfg.Concept))
}

// Alarms returns label noise, covariate, concept, source and unknown, in this order. Each is
// raised while an incident of this kind is open. Source has the numbers of label noise.
func (m *Monitor) Alarms() [5]Alarm {
	all := [5]Alarm{{KindLabelNoise, m.noise.Status()}, {KindCovariate, m.covariate.Status()},
		{KindConcept, m.concept.Status()},
		{KindSource, m.noise.Status()}, {KindUnknown, m.incidents.suspected()}}
	for i := range all {
		s := &all[i].Status
		s.Raised, s.Since = m.incidents.stands(all[i].Kind)
	}
	return all
}

// Diagnosis returns what the open incidents mean together.
func (m *Monitor) Diagnosis() Diagnosis { return m.incidents.Diagnosis() }

// Heads returns m's own heads, to be read and not changed. Each may be nil.
func (m *Monitor) Heads() (own, credulous *blr.Posterior) { return m.head, m.credulous }

// WindowSize returns the size of the label-noise alarm in bytes; most of it is the window.
func (m *Monitor) WindowSize() int { return m.noise.Size() }

// Write appends
//
//	float64 ε | head | credulous head | label noise | covariate | concept | incidents
//
// All but ε follow their length, a uint64. Each head may be missing.
func (m *Monitor) Write(w *codec.Writer) {
	w.Float64(m.flipRate)
	if m.head != nil {
		w.Part64(m.head)
	}
	if m.credulous != nil {
		w.Part64(m.credulous)
	}
	w.Part64(m.noise)
	w.Part64(m.covariate)
	w.Part64(m.concept)
	w.Part64(m.incidents)
}

// Read reads what Write wrote after the given number of events; m is new. r fails if m's
// configuration and that many events cannot have made the bytes.
func (m *Monitor) Read(r *codec.Reader, events uint64) {
	m.flipRate = r.Float64()
	if !trust.IsFlipRate(m.flipRate) {
		r.Fail("flip rate %v", m.flipRate)
	}
	for _, head := range []**blr.Posterior{&m.head, &m.credulous} {
		if *head == nil {
			continue
		}
		*head = blr.Read(r, *head)
		if r.Err() == nil && (*head).Updates() != events {
			r.Fail("a head of %d events after %d", (*head).Updates(), events)
		}
	}
	r.Unmarshal64(m.noise)
	r.Unmarshal64(m.covariate)
	r.Unmarshal64(m.concept)
	r.Unmarshal64(m.incidents)
	if r.Err() != nil {
		return
	}
	m.checkEvents(r, KindCovariate, m.covariate.Events(), m.covariate.Status().Since, events)
	m.checkEvents(r, KindConcept, m.concept.Events(), m.concept.Status().Since, events)
	if m.covariate.Events()+m.noise.Skipped() < events {
		r.Fail("%s: an alarm of %d events after %d", KindCovariate, m.covariate.Events(), events)
	}
	m.incidents.check(r, events)
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
