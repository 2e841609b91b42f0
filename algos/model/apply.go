package model

import (
	"hamlet/algos/drift"
	"hamlet/algos/internal/planted"
	"hamlet/algos/trust"
)

// Attempt is Apply, but a panic is a *PanicError. After one m may be half changed: all that can
// be done with it is to drop it. Its AppendBinary and Attempt return errors.
func (m *Model) Attempt(ex *Example) (effect Effect, err error) {
	if m.broken != nil {
		return Effect{}, m.broken
	}
	defer func() {
		if value := recover(); value != nil {
			m.broken = &PanicError{Defect: Recovered("learn this event", value), Key: ex.Key()}
			effect, err = Effect{}, m.broken
		}
	}()
	return m.Apply(ex)
}

// Apply withdraws the event ex.Of, or predicts and learns ex, or both, as ex.Action says.
// The result depends only on m's bytes and ex. A copy of an event within the duplicate
// window changes nothing. A refused event returns a *RefusedError and changes nothing, but one
// that forgets a message of which nothing is known keeps answers about it from being assumed. An
// event that Config.SetAside names is ErrSetAside, and one whose body cannot be read for a defect
// of ours is a *Defect: both change nothing. m refers to ex's body until the next one of its
// kind, and retains its ID and Source. Learning allocates nothing in the steady state.
func (m *Model) Apply(ex *Example) (effect Effect, err error) {
	key, admitted, err := m.admit(ex)
	if err != nil || admitted == aCopy {
		return Effect{Duplicate: admitted == aCopy}, err
	}
	if admitted == leftOut {
		return Effect{LeftOut: true}, nil
	}
	defer m.own.vectorizer.defect(&effect, &err)
	s := m.submodel(&ex.Body)
	if s != nil {
		s.ownTables()
	}
	var in *features
	body := uint64(0)
	if (ex.Action == Relearn || ex.Action == Unlearn) && s != nil {
		in = m.own.vectorizer.read(&ex.Body, s)
		body = in.bodyHashes().all
	}
	does, err := m.decide(ex, body)
	if err != nil {
		return Effect{}, &RefusedError{err.Error()}
	}
	sampled := m.samples(ex) // before a withdrawal changes the last label
	how := teaching{label: trust.Label{
		Source: ex.Source, Role: m.roles[ex.Source], Event: m.events + 1, Assumed: ex.Action == Assume,
	}}
	switch ex.Action {
	case Relearn, Unlearn:
		receipt, err := m.withdrawAll(s, does.withdraws, m.source(ex.Source), in)
		if err != nil && receipt.Events == 0 {
			return Effect{}, &RefusedError{err.Error()}
		}
		effect.Receipt = &receipt
		how.label.Replaces, how.label.Given = receipt.SameSource, receipt.Standing
	case Correct:
		effect.Receipt = m.correct(s, ex, does, &how)
	}
	if does.learns {
		m.learn(ex, how, key, &effect)
		if sampled && effect.Standing > 0 && !(ex.Action == Relearn && !effect.Receipt.Spam) {
			m.judged.observe(ex.Body.Tenant, effect.Prediction.LogOdds, ex.SampleWeight, m.events+1)
		}
	} else {
		m.unlearnt++
		effect.Unassumed = ex.Action == Assume
		effect.Epsilon = m.Epsilon()
		if ex.Action == Unlearn {
			effect.Epsilon = s.labels.FlipRate()
		}
	}
	m.count(key)
	return effect, nil
}

// learn predicts and learns ex, as how says, and stores its site for a withdrawal.
func (m *Model) learn(ex *Example, how teaching, key uint64, effect *Effect) {
	kind := kindOf(&ex.Body)
	s := m.submodels[kind]
	if s == nil {
		s = newSubmodel(m.specs[kind], m.cfg.Alarms)
	}
	in := m.own.vectorizer.read(&ex.Body, s)
	m.submodels[kind] = s // not before: nothing has changed if the body cannot be read
	if s.experts == nil && len(in.views[0].Index) > 0 {
		s.newExperts() // they score this event 0, as in already says
	}
	if how.x != nil {
		copy(in.x, how.x)
	}
	effect.Prediction = predict(s, in)
	at := s.learn(in, ex, &how, m.policy(kind))
	effect.Phi, effect.Standing, effect.Accused, effect.Epsilon = at.Trust, at.Weight, in.accused, s.labels.FlipRate()
	hashes := in.bodyHashes()
	at.Body, at.Text = hashes.all, hashes.text
	m.note(s.sites, ex, key, at)
	planted.Learn(ex.ID)
	if sweep := s.headSpec.Refresh; sweep > 0 && s.events%uint64(sweep) == 0 {
		s.refresh()
	}
	m.tick(s, in, ex, &how, effect)
}

// policy returns how a kind of body weights its labels.
func (m *Model) policy(k kind) trust.Policy {
	weighed := m.cfg.LabelTrust == TrustAll || k == ofText && m.cfg.LabelTrust == TrustText
	return trust.Policy{
		Heads: weighed,
		// With dense names the experts see names that the head does not, and correct it.
		Experts:   weighed && (k == ofText || len(m.cfg.Dense) == 0),
		BySource:  m.cfg.TrustBy == TrustBySource,
		Agreement: m.cfg.Standing == StandingAgreement,
	}
}

// tick passes an event that s has learnt to its ensembles and alarms.
func (m *Model) tick(s *submodel, in *features, ex *Example, how *teaching, effect *Effect) {
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
		Standing: effect.Standing, Accused: effect.Accused, Muted: how.unwatched(), ID: ex.ID, Source: ex.Source,
		Event: m.events + 1,
	}
	if s.surprise != noExpert {
		o.Surprise = in.scores[s.surprise].Surprise
	}
	for _, c := range s.monitor.Observe(nil, &o, s.events, m.runner) {
		effect.Alerts = append(effect.Alerts, Alert{
			Kind: c.Kind, Body: body, State: c.State, Event: m.events + 1,
			Incident: c.Incident, Transition: c.Transition, Source: c.Source,
			Status: c.Status, Report: c.Report, Diagnosis: s.monitor.Diagnosis(),
		})
	}
}
