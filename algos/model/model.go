package model

import (
	"strconv"

	"hamlet/algos/feature"
)

// A Model is one partition's model. One goroutine owns it; Predictors made by
// NewPredictor may run at once, each in a goroutine of its own, while nobody
// applies, adopts or restores.
type Model struct {
	cfg       Config
	numerics  string
	adoptions []Adoption

	events, spam uint64
	seen         window
	text, vector *half // nil before their first event

	own *Predictor // Apply's
}

// New returns a model that has learnt nothing. It reports every bad field of cfg.
// Tables are allocated with the first event that needs them.
func New(cfg Config) (*Model, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, numerics: numerics()}
	m.seen.limit = cfg.DuplicateWindow
	m.own = m.NewPredictor()
	return m, nil
}

// A Body is what is learnt or scored: exactly one of its fields is not nil.
type Body struct {
	Message *feature.Message
	Vector  []feature.Number // strictly ascending by name
}

// An Example is a labelled body. Tenant, Source and ID together name it.
type Example struct {
	ID, Source, Tenant string
	Spam               bool
	Body               Body
}

// An Effect is what an event did.
type Effect struct {
	Duplicate  bool       // known already: nothing has changed, and the rest is zero
	Prediction Prediction // before learning
	Phi        float64    // probability that the label is true
	Epsilon    float64    // flip rate of the labels of this kind of body, after the event
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

// Apply predicts ex, then learns it. The result depends on nothing but m's bytes
// and ex. A copy of an event within the duplicate window changes nothing; nor
// does an event that is refused, with a *RefusedError. Apply keeps no memory of
// ex and allocates nothing in the steady state.
func (m *Model) Apply(ex *Example) (Effect, error) {
	key := m.seen.key(ex)
	if m.seen.has(key) {
		return Effect{Duplicate: true}, nil
	}
	if err := m.Check(&ex.Body); err != nil {
		return Effect{}, err
	}
	h, trusting := m.half(&ex.Body)
	in := m.own.read(&ex.Body)
	if h.columns != nil && h.experts == nil && len(in.features[0].Index) > 0 {
		h.experts = newVectorExperts(m.cfg) // they say 0 to this event, as in has it
	}
	was := m.own.predict(h, in)
	effect := Effect{Prediction: was, Phi: h.learn(in, was, ex.Spam, trusting)}
	effect.Epsilon = h.epsilon
	m.events++
	if ex.Spam {
		m.spam++
	}
	m.seen.add(key)
	return effect, nil
}

// half returns the half that learns b, which comes into being here, and whether
// it weighs labels by their trust.
func (m *Model) half(b *Body) (h *half, trusting bool) {
	if b.Message != nil {
		if m.text == nil {
			m.text = newTextHalf(m.cfg)
		}
		return m.text, m.cfg.LabelTrust != TrustNone
	}
	if m.vector == nil {
		m.vector = newVectorHalf(m.cfg)
	}
	return m.vector, m.cfg.LabelTrust == TrustAll
}

// Events returns the number of events applied: the model's clock.
func (m *Model) Events() uint64 { return m.events }

// Spam returns how many of them were labelled spam.
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
			ε, some = max(ε, h.epsilon), true
		}
	}
	if !some {
		return firstFlipRate
	}
	return ε
}
