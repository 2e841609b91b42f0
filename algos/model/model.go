package model

import (
	"cmp"
	"strconv"

	"hamlet/algos/dedup"
	"hamlet/algos/drift"
	"hamlet/algos/feature"
	"hamlet/algos/lastlabel"
	"hamlet/algos/stack"
	"hamlet/algos/trust"
)

// A Model is the model of one log. It is not safe for concurrent use. Between calls
// of Apply, Adopt and SetRunner, Predictors may run concurrently, one in each goroutine.
type Model struct {
	cfg       Config
	numerics  string
	adoptions []Adoption

	// Invariant: events = unlearnt + leftOut + the events of the sub-models. assumed are
	// some of these. Only Apply and Restore write these.
	events, spam, unlearnt, leftOut uint64
	assumed                         Assumed
	seen                            *dedup.Window
	labels                          *lastlabel.Table      // of the last messages, as many as seen has keys
	roles                           map[string]trust.Role // of sources that are not Ordinary, at most MostRoles
	submodels                       [kindCount]*submodel  // nil before its first event
	judged                          judged                // for promises

	specs    [kindCount]*spec
	setAside []uint64    // the keys of cfg.SetAside
	own      *Predictor  // Apply's
	runner   Runner      // nil: slow work runs when its result is needed
	broken   *PanicError // what Attempt met; nil: nothing, and the model is whole
}

// New returns a model that has learnt nothing. It reports every bad field of cfg.
// Tables are allocated with the first event that needs them.
func New(cfg Config) (*Model, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, numerics: numerics(), specs: newSpecs(cfg), setAside: keysOf(&cfg)}
	m.seen, m.labels = dedup.New(cfg.DuplicateWindow), lastlabel.New(cfg.DuplicateWindow)
	m.own = m.NewPredictor()
	return m, nil
}

// A Body is a message or a vector, exactly one of which is not nil, and whose it is. Only
// personal experts ([Config.PersonalExperts]) read Tenant.
type Body struct {
	Tenant  string // of whoever labels it; "" is a tenant like any other
	Message *feature.Message
	Vector  []feature.Number // strictly ascending by name

	// Extract is what an Extractor of the model has read of the rest. If it is nil, or of another
	// body or model, the body is read when the model needs it: with the same result.
	Extract *Extract
}

// An Action is the kind of an event.
type Action uint8

const (
	Learn   Action = iota // learn the body
	Relearn               // withdraw the event Of, which has this body, and learn it again
	Unlearn               // withdraw the event Of, which has this body, or all events of the message Of
	Correct               // give the message Of, which has this body, the label
	Assume                // learn the label, with which the model answered about the message Of, which has this body
)

// An Example is a labelled body. Body.Tenant, Source and ID together name it.
type Example struct {
	ID, Source string
	Action     Action
	Of         string // of the same tenant: the ID of the event to withdraw, or the identity of a message
	OwnOnly    bool   // Of must be of the same Source; else one of it comes before others

	// Identity names the message of the body among those of its tenant: Correct finds the label
	// by it. "": the event cannot be corrected. Correct and Assume have it in Of. An Unlearn
	// whose Of it is forgets that message.
	Identity string

	// SampleWeight says that somebody asked for the label, and how its ham counts for promises: least/probability, as in
	// [promise.Table.Observe], from promise.LeastWeight to promise.MostWeight. 0: it was volunteered, and
	// counts for none. It changes nothing else. An Unlearn and a spam have no use for it.
	SampleWeight float64

	Spam bool
	Body Body
}

// Forgets reports whether ex withdraws all events of its own message.
func (ex *Example) Forgets() bool {
	return ex.Action == Unlearn && ex.Of != "" && ex.Of == ex.Identity
}

// An Effect is the result of an event.
type Effect struct {
	Duplicate  bool       // a copy: it changed nothing, and all other fields are zero
	Unassumed  bool       // Assume: the message has a label, or people have hardly taught: nothing was learnt
	LeftOut    bool       // of Config.WithoutSources: it moved the clock alone, and all other fields are zero
	Prediction Prediction // Learn and Relearn: after withdrawing, before learning
	// Learn and Relearn: probability that the label is true, by the flip rate of its source (Config.TrustBy)
	Phi      float64
	Standing float64   // Learn and Relearn: how much the label counts by its source's standing, 0 to 1
	Accused  bool      // the labels of its source contradict those of the other sources
	Epsilon  float64   // flip rate of the labels of this kind of body, after the event
	Receipt  *Receipt  // Relearn, Unlearn and Correct: what was withdrawn; nil if a correction found no label
	Alerts   []Alert   // alarms that the event raised or cleared
	Rebuilds []Rebuild // ensembles that take effect now, or could not be rebuilt
}

// A RefusedError says why a body can neither be learnt nor scored. The event is a dead
// letter: a model of this configuration will always refuse it.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Check returns a *RefusedError if Apply and Predict would refuse b: not exactly one of
// message and vector, a number that is not finite, names not strictly ascending, or a
// missing dense name.
func (m *Model) Check(b *Body) error {
	if reason := check(b, m.cfg.Dense); reason != "" {
		return &RefusedError{reason}
	}
	return nil
}

// quote quotes a name for an error, shortened: it is untrusted input.
func quote(name string) string {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	return strconv.Quote(name)
}

// submodel returns the sub-model of b's kind, nil before its first event.
func (m *Model) submodel(b *Body) *submodel { return m.submodels[kindOf(b)] }

// Events returns the number of events applied: the model's clock.
func (m *Model) Events() uint64 { return m.events }

// Unlearnt returns the number of events that were applied and not learnt: those of Unlearn,
// and corrections that changed nothing.
func (m *Model) Unlearnt() uint64 { return m.unlearnt }

// Spam returns the number of events labelled spam, including withdrawn ones.
func (m *Model) Spam() uint64 { return m.spam }

// Config returns the configuration with its defaults filled in.
func (m *Model) Config() Config { return m.cfg.filled() }

// Numerics returns the version of the mathematics that made the model, for example "15".
// Restore reads it from the bytes; Adopt changes it.
func (m *Model) Numerics() string { return m.numerics }

// CurrentNumerics returns the numerics of this program.
func CurrentNumerics() string { return numerics() }

// Epsilon returns the higher of the labels' flip rates for mail and text and for vectors.
// Before the first event it is 0.1.
func (m *Model) Epsilon() float64 {
	ε := 0.0 // no flip rate is 0
	for _, s := range m.submodels {
		if s != nil {
			ε = max(ε, s.labels.FlipRate())
		}
	}
	return cmp.Or(ε, trust.FirstFlipRate)
}

// SetRunner lets r do the model's slow work in the background. It does not change the
// model's future bytes.
func (m *Model) SetRunner(r Runner) {
	m.runner = r
	for _, s := range m.submodels {
		if s != nil && s.stack != nil {
			s.stack.Resume(s.events, r)
		}
		if s != nil && s.monitor != nil {
			s.monitor.Resume(r)
		}
	}
}

// An Alarm is the state of one alarm.
type Alarm struct {
	Kind, Body string
	Status     drift.Status
}

// Alarms returns the alarms of each sub-model, text first, in the order of
// [drift.Monitor.Alarms].
func (m *Model) Alarms() (all []Alarm) {
	for k, s := range m.submodels {
		if s == nil || s.monitor == nil {
			continue
		}
		for _, a := range s.monitor.Alarms() {
			all = append(all, Alarm{a.Kind, bodies[k], a.Status})
		}
	}
	return all
}

// A Gate is the state of a sub-model's gate: whether its stack answers in place of the head.
type Gate struct {
	Body   string
	Events uint64 // that the sub-model has learnt
	stack.Gate
}

// Gates returns the gates of the sub-models that have one: that of mail and text if there
// is an ensemble or a second head beside its head.
func (m *Model) Gates() (all []Gate) {
	for k, s := range m.submodels {
		if s == nil || s.stack == nil {
			continue
		}
		if g, ok := s.stack.Gate(); ok {
			all = append(all, Gate{bodies[k], s.events, g})
		}
	}
	return all
}

// Diagnosis returns the diagnosis of mail and text, or if that is drift.Nothing the
// diagnosis of vectors.
func (m *Model) Diagnosis() drift.Diagnosis {
	for _, s := range m.submodels {
		if s == nil || s.monitor == nil {
			continue
		}
		if d := s.monitor.Diagnosis(); d != drift.Nothing {
			return d
		}
	}
	return drift.Nothing
}

// WindowBytes returns how many of the model's bytes are the ensembles' and alarms' windows
// of events.
func (m *Model) WindowBytes() (n int) {
	for _, s := range m.submodels {
		if s != nil && s.stack != nil {
			n += s.stack.WindowSize()
		}
		if s != nil && s.monitor != nil {
			n += s.monitor.WindowSize()
		}
	}
	return n
}
