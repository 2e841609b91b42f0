package model

import (
	"cmp"
	"fmt"
	"strconv"

	"hamlet/algos/dedup"
	"hamlet/algos/drift"
	"hamlet/algos/feature"
	"hamlet/algos/sites"
	"hamlet/algos/trust"
)

// A Model is one partition's model. One goroutine owns it; Predictors made by
// NewPredictor may run at once, each in a goroutine of its own, while nobody
// applies, adopts or restores.
type Model struct {
	cfg       Config
	numerics  string
	adoptions []Adoption

	// Invariant: events = unlearnt + the events of the sub-models. Only Apply and
	// Restore write these.
	events, spam, unlearnt uint64
	seen                   *dedup.Window
	submodels              [kinds]*submodel // nil before their first event

	specs  [kinds]*spec
	own    *Predictor // Apply's
	runner Runner     // nil: slow work is done where it is waited for
}

// New returns a model that has learnt nothing. It reports every bad field of cfg.
// Tables are allocated with the first event that needs them.
func New(cfg Config) (*Model, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, numerics: numerics(), seen: dedup.New(cfg.DuplicateWindow), specs: newSpecs(cfg)}
	m.own = m.NewPredictor()
	return m, nil
}

// A Body is what is learnt or scored: exactly one of its fields is not nil.
type Body struct {
	Message *feature.Message
	Vector  []feature.Number // strictly ascending by name
}

// An Action is what an event asks for.
type Action uint8

const (
	Learn   Action = iota // learn the body
	Relearn               // withdraw the event Of, which had this body, and learn it again
	Unlearn               // withdraw the event Of, which had this body
)

// An Example is a labelled body. Tenant, Source and ID together name it.
type Example struct {
	ID, Source, Tenant string
	Action             Action
	Of                 string // Relearn and Unlearn: the id of the event that they are about, of the same tenant
	Spam               bool
	Body               Body
}

// An Effect is what an event did.
type Effect struct {
	Duplicate  bool       // known already: nothing has changed, and the rest is zero
	Prediction Prediction // Learn and Relearn: before learning, and after what was withdrawn
	Phi        float64    // Learn and Relearn: probability that the label is true, by the flip rate of its source (Config.TrustBy)
	Epsilon    float64    // flip rate of the labels of this kind of body, after the event
	Receipt    *Receipt   // Relearn and Unlearn: what was withdrawn
	Alerts     []Alert    // alarms that the event raised or cleared; mostly none
	Rebuilds   []Rebuild  // ensembles that take effect now, or failed to; mostly none
}

// A RefusedError says why a body can neither be learnt nor scored. The event
// belongs to the dead letters: a model of this configuration will never take it.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Check returns what Apply and Predict would refuse b for, a *RefusedError: not
// exactly one of message and vector, a number that is not finite, names that do
// not ascend strictly, a dense name missing.
func (m *Model) Check(b *Body) error {
	if reason := check(b, m.cfg.Dense); reason != "" {
		return &RefusedError{reason}
	}
	return nil
}

// quote shortens what an error quotes: it may come from anybody.
func quote(name string) string {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	return strconv.Quote(name)
}

// Apply predicts ex and learns it, or withdraws the event that ex is about, or both. The
// result depends on nothing but m's bytes and ex. A copy of an event within the duplicate
// window changes nothing; nor does an event that is refused, with a *RefusedError. Apply
// refers to memory of ex until the next event, and keeps its ID and Source. Learning
// allocates nothing in the steady state.
func (m *Model) Apply(ex *Example) (Effect, error) {
	if ex.Action > Unlearn {
		return Effect{}, &RefusedError{fmt.Sprintf("action %d is unknown", ex.Action)}
	}
	key := m.seen.Key(ex.Tenant, ex.Source, ex.ID)
	if m.seen.Has(key) {
		return Effect{Duplicate: true}, nil
	}
	if err := m.Check(&ex.Body); err != nil {
		return Effect{}, err
	}
	var effect Effect
	if ex.Action != Learn {
		receipt, err := m.withdraw(ex)
		if err != nil {
			return Effect{}, err
		}
		effect.Receipt = receipt
	}
	if ex.Action == Unlearn {
		effect.Epsilon = m.submodel(&ex.Body).labels.FlipRate()
		m.unlearnt++
	} else {
		m.learn(ex, key, &effect)
	}
	m.events++
	m.seen.Add(key)
	return effect, nil
}

// withdraw takes the event that ex is about out of its sub-model, or refuses.
func (m *Model) withdraw(ex *Example) (*Receipt, error) {
	s := m.submodel(&ex.Body)
	if s == nil {
		return nil, &RefusedError{sites.ErrUnknown.Error()}
	}
	in := m.own.reader.read(&ex.Body, s)
	slot, err := s.sites.Find(m.seen.Key(ex.Tenant, ex.Source, ex.Of), m.seen.Key(ex.Tenant, ex.Of), m.own.reader.bodyHash(&ex.Body))
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	receipt, err := s.withdraw(slot, in)
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	return &receipt, nil
}

// learn reads ex, predicts it, learns it, and keeps its site for a withdrawal.
func (m *Model) learn(ex *Example, key uint64, effect *Effect) {
	kind := kindOf(&ex.Body)
	s := m.submodels[kind]
	if s == nil {
		s = newSubmodel(m.specs[kind], m.cfg.Alarms)
		m.submodels[kind] = s
	}
	in := m.own.reader.read(&ex.Body, s)
	if s.experts == nil && len(in.views[0].Index) > 0 {
		s.experts = s.newExperts() // they say 0 to this event, as in has it
	}
	effect.Prediction = predict(s, in)
	at := s.learn(in, ex, m.policy(kind))
	effect.Phi, effect.Epsilon = at.Trust, s.labels.FlipRate()
	at.Key, at.Named, at.Body = key, m.seen.Key(ex.Tenant, ex.ID), m.own.reader.bodyHash(&ex.Body)
	s.sites.Add(at)
	if sweep := s.headSpec.Refresh; sweep > 0 && s.events%uint64(sweep) == 0 {
		s.refresh()
	}
	if ex.Spam {
		m.spam++
	}
	m.tick(s, in, ex, effect)
}

// policy says how a kind of body takes its labels.
func (m *Model) policy(k kind) trust.Policy {
	weighed := m.cfg.LabelTrust == TrustAll || k == ofText && m.cfg.LabelTrust == TrustText
	return trust.Policy{
		Heads: weighed,
		// With dense names the experts see what the head of vectors does not, and teach it.
		Experts:  weighed && (k == ofText || len(m.cfg.Dense) == 0),
		BySource: m.cfg.TrustBy == TrustBySource,
	}
}

// tick shows an event that s has learnt to its ensembles and alarms.
func (m *Model) tick(s *submodel, in *features, ex *Example, effect *Effect) {
	body := bodies[s.kind]
	if s.stack != nil {
		for _, r := range s.stack.Tick(nil, s.events, m.runner) {
			effect.Rebuilds = append(effect.Rebuilds, Rebuild{body, r})
		}
	}
	if s.monitor == nil {
		return
	}
	o := drift.Observation{
		X: in.x, Inputs: in.inputs, Label: sign(ex.Spam), LogOdds: in.head.LogOdds, Leverage: in.head.Variance,
		ID: ex.ID, Source: ex.Source,
	}
	if s.surprise != noExpert {
		o.Surprise = in.scores[s.surprise].Surprise
	}
	for _, c := range s.monitor.Observe(nil, &o, s.events, m.runner) {
		effect.Alerts = append(effect.Alerts, Alert{
			Kind: c.Kind, Body: body, Raised: c.Status.Raised, Event: m.events + 1,
			Status: c.Status, Report: c.Report, Diagnosis: s.monitor.Diagnosis(),
		})
	}
}

// submodel returns what knows bodies like b; nil before its first event.
func (m *Model) submodel(b *Body) *submodel { return m.submodels[kindOf(b)] }

// Events returns the number of events applied: the model's clock.
func (m *Model) Events() uint64 { return m.events }

// Unlearnt returns how many of them withdrew an event and learnt none.
func (m *Model) Unlearnt() uint64 { return m.unlearnt }

// Spam returns how many of them were labelled spam; withdrawn ones count still.
func (m *Model) Spam() uint64 { return m.spam }

// Config returns the configuration with its defaults filled in.
func (m *Model) Config() Config { return m.cfg.filled() }

// Numerics returns the version of the mathematics and the architecture that made
// the model, such as "1 amd64". A restored model keeps that of its bytes until
// it adopts this program's.
func (m *Model) Numerics() string { return m.numerics }

// CurrentNumerics returns the numerics with which this program makes models.
func CurrentNumerics() string { return numerics() }

// Epsilon returns the flip rate of the labels: that of mail and text or that of
// vectors, whichever is higher. Before the first event it is 0.1, where it starts.
func (m *Model) Epsilon() float64 {
	ε := 0.0 // no flip rate is 0
	for _, s := range m.submodels {
		if s != nil {
			ε = max(ε, s.labels.FlipRate())
		}
	}
	return cmp.Or(ε, trust.FirstFlipRate)
}

// SetRunner lets r do the model's slow work in the background. It changes no bit of what
// the model becomes.
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

// An Alarm is how one alarm stands.
type Alarm struct {
	Kind, Body string
	Status     drift.Status
}

// Alarms returns the alarms as they stand, of the kinds of bodies that were learnt, in
// the order text, vector and label noise, covariate, concept.
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

// Diagnosis returns what the alarms mean: those of mail and text, or if these say
// nothing those of vectors.
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

// WindowBytes returns how many of the model's bytes are the windows of events that
// ensembles are rebuilt from and the alarms use.
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
