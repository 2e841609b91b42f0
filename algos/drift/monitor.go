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
)

// MonitorMemory is ρ an event of the head that the label-noise alarm should ask.
// With ρ = 1 a change of concept looks like noise: a head that does not forget goes
// on contradicting the new labels.
const MonitorMemory = 0.998

// SurpriseWindow is the covariate alarm's window in events where it looks at
// surprises. A campaign is a part of the mail, while inputs that are rescaled are
// so in every event.
const SurpriseWindow = 60

// A MonitorConfig says what a Monitor is made of.
type MonitorConfig struct {
	// Head is the label-noise alarm's own head, before any event: it has the inputs
	// of the head that is monitored, and forgets at MonitorMemory. Nil takes the
	// answers of the head that is monitored.
	Head *blr.Posterior

	// Surprise makes the covariate alarm look at an expert's surprise instead of the
	// head's leverage. A head over experts does not see new words: the experts'
	// log-odds lie near 0 then, and so does the leverage.
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
	ID, Source         string
}

// A Change is an alarm that an event raised or cleared.
type Change struct {
	Kind   string
	Status Status
	Report *Report // of label noise, else nil
}

// An Alarm is how one alarm stands.
type Alarm struct {
	Kind   string
	Status Status
}

// A Monitor watches one head with all three alarms. Covariate and concept look at
// what that head said. Label noise asks a head of its own, which weighs labels by
// their trust: one that learns them in full takes flips of one class for the new
// concept within 300 events. One goroutine uses a Monitor. Its clock is the number
// of events observed.
type Monitor struct {
	head     *blr.Posterior // nil: none
	flipRate float64        // ε by that head. Invariant: trust.IsFlipRate
	surprise bool

	noise     *LabelNoise
	covariate *Covariate
	concept   *PageHinkley

	snr *task.Task[Result] // the pending SNR; nil: none, or nobody has taken it up
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

// Observe takes an event that makes the event count count. It appends the alarms
// that changed to dst. r computes SNRs beside the stream; nil computes them here.
func (m *Monitor) Observe(dst []Change, o *Observation, count uint64, r task.Runner) []Change {
	logOdds := o.LogOdds
	if m.head != nil {
		logOdds = blr.Moderate(m.head.Moments(o.X))
	}
	q := logistic.Sigmoid(o.Label * logOdds)
	φ := trust.Phi(q, m.flipRate, m.flipRate)
	m.flipRate = trust.NextFlipRate(m.flipRate, φ, count-1)
	if m.head != nil {
		m.head.Update(o.X, o.Label, φ)
	}

	var changed bool
	if m.surprise {
		changed = m.covariate.ObserveLog(count, o.Surprise)
	} else {
		changed = m.covariate.Observe(count, o.Leverage)
	}
	if changed {
		dst = append(dst, Change{Kind: KindCovariate, Status: m.covariate.Status()})
	}
	if m.concept.Observe(count, -logistic.LogSigmoid(o.Label*o.LogOdds)) {
		dst = append(dst, Change{Kind: KindConcept, Status: m.concept.Status()})
	}
	m.noise.Observe(Event{X: o.Inputs, Label: o.Label, Prob: q, FlipRate: m.flipRate, ID: o.ID, Source: o.Source})
	if count%Rhythm != 0 {
		return dst
	}
	return m.checkNoise(dst, count, r)
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
		if !report.Status.Known { // it has lasted: the reference is given up, and this was it
			report.Status.Reference = before.Reference
		}
		dst = append(dst, Change{Kind: KindLabelNoise, Status: report.Status, Report: &report})
	}
	if job, ok := m.noise.Start(count); ok {
		m.snr = task.Begin(r, job.Run)
	}
	return dst
}

// Resume starts the SNR that is pending in a Monitor that has been read, if nobody
// has started it.
func (m *Monitor) Resume(r task.Runner) {
	if m.snr != nil {
		return
	}
	if job, pending := m.noise.Pending(); pending {
		m.snr = task.Begin(r, job.Run)
	}
}

// Retune gives the alarms the thresholds of cfg, whose other fields must be those
// that m was made with.
func (m *Monitor) Retune(cfg MonitorConfig) error {
	fresh, err := NewMonitor(cfg)
	if err != nil {
		return err
	}
	return errors.Join(m.noise.Retune(fresh.noise.Config()), m.covariate.Retune(fresh.covariate.Config()),
		m.concept.Retune(fresh.concept.Config()))
}

// Alarms returns how the alarms stand: label noise, covariate, concept.
func (m *Monitor) Alarms() [3]Alarm {
	return [3]Alarm{{KindLabelNoise, m.noise.Status()}, {KindCovariate, m.covariate.Status()}, {KindConcept, m.concept.Status()}}
}

// Diagnosis returns what the alarms mean together.
func (m *Monitor) Diagnosis() Diagnosis {
	return Diagnose(m.noise.Status(), m.covariate.Status(), m.concept.Status())
}

// WindowSize returns how many of the bytes are the label-noise alarm's window.
func (m *Monitor) WindowSize() int { return m.noise.Size() }

// Write appends
//
//	float64 ε | head | label noise | covariate | concept
//
// where each of the last four is behind its length, a uint64. The head is missing
// where there is none.
func (m *Monitor) Write(w *codec.Writer) {
	w.Float64(m.flipRate)
	if m.head != nil {
		w.Part64(m.head)
	}
	w.Part64(m.noise)
	w.Part64(m.covariate)
	w.Part64(m.concept)
}

// Read reads what Write wrote after so many events into a Monitor before any event.
// It refuses what its configuration and so many events cannot have made.
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
	if m.covariate.Events() < events {
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

// configs returns what the alarms have been made with.
func (m *Monitor) configs() (c struct {
	noise     LabelNoiseConfig
	covariate CovariateConfig
	concept   PageHinkleyConfig
}) {
	c.noise, c.covariate, c.concept = m.noise.Config(), m.covariate.Config(), m.concept.Config()
	return c
}
