package model

import (
	"fmt"
	"strconv"

	"hamlet/algos/dedup"
	"hamlet/algos/drift"
	"hamlet/algos/feature"
	"hamlet/algos/trust"
)

// A Model is one partition's model. One goroutine owns it; Predictors made by
// NewPredictor may run at once, each in a goroutine of its own, while nobody
// applies, adopts or restores.
type Model struct {
	cfg       Config
	numerics  string
	adoptions []Adoption

	events, spam, unlearnt uint64
	seen                   *dedup.Window
	text, vector           *half // nil before their first event

	own    *Predictor // Apply's
	runner Runner     // nil: work is done where it is waited for
}

// New returns a model that has learnt nothing. It reports every bad field of cfg.
// Tables are allocated with the first event that needs them.
func New(cfg Config) (*Model, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, numerics: numerics()}
	m.seen = dedup.New(cfg.DuplicateWindow)
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
	Relearn               // withdraw the event Of, which had this body, and learn it anew
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
	const most = 64
	if len(name) > most {
		name = name[:most] + "…"
	}
	return strconv.Quote(name)
}

// Apply predicts ex, then learns it; or withdraws the event that ex is about, and
// learns ex in its place if it says so. The result depends on nothing but m's
// bytes and ex. A copy of an event within the duplicate window changes nothing;
// nor does an event that is refused, with a *RefusedError. Whatever is applied
// ticks the event count by one. Apply keeps no memory of ex but its ID and Source; learning allocates
// nothing in the steady state.
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
		effect.Epsilon = m.own.halfOf(&ex.Body).labels.FlipRate()
		m.unlearnt++
	} else {
		m.learn(ex, key, &effect)
	}
	m.events++
	m.seen.Add(key)
	return effect, nil
}

// learn predicts ex and learns it.
func (m *Model) learn(ex *Example, key uint64, effect *Effect) {
	h, policy := m.half(&ex.Body)
	in := m.own.read(&ex.Body)
	if h.columns != nil && h.experts == nil && len(in.features[0].Index) > 0 {
		h.experts = newVectorExperts(m.cfg) // they say 0 to this event, as in has it
	}
	effect.Prediction = m.own.predict(h, in)
	s := h.learn(in, ex, policy)
	effect.Phi, effect.Epsilon = s.trust, h.labels.FlipRate()
	s.key, s.named, s.body = key, m.seen.Key(ex.Tenant, ex.ID), m.own.reader.bodyHash(&ex.Body)
	h.sites.add(s)
	sweep := m.cfg.VectorHead.Refresh
	if h == m.text {
		sweep = m.cfg.TextHead.Refresh
	}
	if sweep > 0 && h.events%uint64(sweep) == 0 {
		h.refresh()
	}
	if ex.Spam {
		m.spam++
	}
	m.tick(h, in, ex, effect)
}

// tick lets what looks back on the stream take an event that h has learnt, the
// model's next.
func (m *Model) tick(h *half, in *reading, ex *Example, effect *Effect) {
	body := BodyText
	if h == m.vector {
		body = BodyVector
	}
	if h.stack != nil {
		effect.Rebuilds = h.stack.tick(nil, h.events, m.runner)
		for i := range effect.Rebuilds {
			effect.Rebuilds[i].Body = body
		}
	}
	if h.monitor == nil {
		return
	}
	o := drift.Observation{
		X: in.x, Inputs: in.inputs, Label: -1, LogOdds: in.head.LogOdds, Leverage: in.head.Variance,
		ID: ex.ID, Source: ex.Source,
	}
	if ex.Spam {
		o.Label = 1
	}
	if h.counter != noCounter {
		o.Surprise = in.scores[h.counter].Surprise
	}
	for _, c := range h.monitor.Observe(nil, &o, h.events, m.runner) {
		effect.Alerts = append(effect.Alerts, Alert{
			Kind: c.Kind, Body: body, Raised: c.Status.Raised, Event: m.events + 1,
			Status: c.Status, Report: c.Report, Diagnosis: h.monitor.Diagnosis(),
		})
	}
}

// withdraw takes the event that ex is about out of its half, or refuses.
func (m *Model) withdraw(ex *Example) (*Receipt, error) {
	h := m.own.halfOf(&ex.Body)
	if h == nil {
		return nil, &RefusedError{errUnknown.Error()}
	}
	in := m.own.read(&ex.Body)
	slot, err := h.sites.find(m.seen.Key(ex.Tenant, ex.Source, ex.Of), m.seen.Key(ex.Tenant, ex.Of), m.own.reader.bodyHash(&ex.Body))
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	receipt, err := h.withdraw(slot, in)
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	if h.stack != nil {
		h.stack.past.withdraw(receipt.Since, h.events+1)
	}
	return &receipt, nil
}

// half returns the half that learns b, which comes into being here, and how it
// takes labels.
func (m *Model) half(b *Body) (h *half, policy trust.Policy) {
	policy.BySource = m.cfg.TrustBy == TrustBySource
	if b.Message != nil {
		if m.text == nil {
			m.text = newTextHalf(m.cfg)
		}
		policy.Heads = m.cfg.LabelTrust != TrustNone
		policy.Experts = policy.Heads
		return m.text, policy
	}
	if m.vector == nil {
		m.vector = newVectorHalf(m.cfg)
	}
	policy.Heads = m.cfg.LabelTrust == TrustAll
	// Beside dense names the experts see what the head does not, and teach it.
	policy.Experts = policy.Heads && len(m.cfg.Dense) == 0
	return m.vector, policy
}

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
	ε, some := 0.0, false
	for _, h := range []*half{m.text, m.vector} {
		if h != nil {
			ε, some = max(ε, h.labels.FlipRate()), true
		}
	}
	if !some {
		return trust.FirstFlipRate
	}
	return ε
}

// SetRunner lets r do the model's slow work beside the stream. It changes when
// that is computed, and no bit of what the model becomes.
func (m *Model) SetRunner(r Runner) {
	m.runner = r
	for _, h := range []*half{m.text, m.vector} {
		if h != nil && h.stack != nil {
			h.stack.resume(h.events, r)
		}
		if h != nil && h.monitor != nil {
			h.monitor.Resume(r)
		}
	}
}

// Alarms returns the alarms as they stand, of the halves that there are, in the
// order text, vector and label noise, covariate, concept.
func (m *Model) Alarms() (all []Alarm) {
	for i, h := range []*half{m.text, m.vector} {
		if h == nil || h.monitor == nil {
			continue
		}
		for _, a := range h.monitor.Alarms() {
			all = append(all, Alarm{a.Kind, []string{BodyText, BodyVector}[i], a.Status})
		}
	}
	return all
}

// An Alarm is how one alarm of one half stands.
type Alarm struct {
	Kind, Body string
	Status     drift.Status
}

// Diagnosis returns in words what the alarms say: of the text half, or if that says
// nothing of the vector half.
func (m *Model) Diagnosis() drift.Diagnosis {
	for _, h := range []*half{m.text, m.vector} {
		if h == nil || h.monitor == nil {
			continue
		}
		if d := h.monitor.Diagnosis(); d != drift.Nothing {
			return d
		}
	}
	return drift.Nothing
}

// WindowBytes returns how many bytes of the model's are its windows of past
// events: those that ensembles are rebuilt from and the alarms look back on.
func (m *Model) WindowBytes() (n int) {
	for _, h := range []*half{m.text, m.vector} {
		if h != nil && h.stack != nil {
			n += h.stack.past.size()
		}
		if h != nil && h.monitor != nil {
			n += h.monitor.WindowSize()
		}
	}
	return n
}
