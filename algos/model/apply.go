package model

import (
	"fmt"
	"slices"

	"hamlet/algos/drift"
	"hamlet/algos/internal/planted"
	"hamlet/algos/lastlabel"
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
	if ex.Action > Assume {
		return Effect{}, &RefusedError{fmt.Sprintf("action %d is unknown", ex.Action)}
	}
	if (ex.Action == Correct || ex.Action == Assume) && ex.Of == "" {
		return Effect{}, &RefusedError{"a correction, or an answer, of no message"}
	}
	if (ex.Action == Correct || ex.Action == Assume) && m.ofAnotherKind(ex) {
		return Effect{}, &RefusedError{"the message was learnt with another kind of body"}
	}
	key := m.seen.Key(ex.Body.Tenant, ex.Source, ex.ID)
	if m.seen.Has(key) {
		return Effect{Duplicate: true}, nil
	}
	if slices.Contains(m.setAside, key) {
		return Effect{}, fmt.Errorf("%w: %s", ErrSetAside, formatKey(key))
	}
	if err := m.Check(&ex.Body); err != nil {
		return Effect{}, err
	}
	defer m.own.reader.defect(&effect, &err)
	if m.LeavesOut(ex.Source) {
		m.leftOut++
		m.events++
		m.seen.Add(key)
		return Effect{LeftOut: true}, nil
	}
	label := trust.Label{Source: ex.Source, Role: m.roles[ex.Source], Event: m.events + 1}
	if ex.Action == Relearn || ex.Action == Unlearn {
		receipt, err := m.withdraw(ex)
		if err != nil {
			return Effect{}, err
		}
		effect.Receipt = receipt
		label.Replaces, label.Given = receipt.SameSource, receipt.Standing
	}
	switch ex.Action {
	case Unlearn:
		effect.Epsilon = m.submodel(&ex.Body).labels.FlipRate()
		m.unlearnt++
	case Correct:
		m.correct(ex, label, key, &effect)
	case Assume:
		m.assume(ex, label, key, &effect)
	default:
		m.learn(ex, teaching{label: label}, key, &effect)
	}
	m.events++
	m.seen.Add(key)
	return effect, nil
}

// learn predicts and learns ex, as how says, and stores its site for a withdrawal.
func (m *Model) learn(ex *Example, how teaching, key uint64, effect *Effect) {
	kind := kindOf(&ex.Body)
	s := m.submodels[kind]
	if s == nil {
		s = newSubmodel(m.specs[kind], m.cfg.Alarms)
	}
	in := m.own.reader.read(&ex.Body, s)
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
	identity := ex.Identity
	if ex.Action == Correct || ex.Action == Assume {
		identity = ex.Of
	}
	at.Key, at.Named = key, m.seen.Key(ex.Body.Tenant, ex.ID)
	at.Message, at.Source = m.message(ex.Body.Tenant, identity), m.source(ex.Source)
	if ex.Action == Assume {
		at.Source = m.assumedSource()
	}
	hashes := in.bodyHashes()
	at.Body, at.Text = hashes.all, hashes.text
	if at.Message != 0 && at.Weight > 0 { // what counts for nothing is no label to correct
		m.labels.Put(at.Message, lastlabel.Label{Source: at.Source, State: lastlabel.Of(ex.Spam)})
	}
	s.sites.Add(at)
	planted.Learn(ex.ID)
	if sweep := s.headSpec.Refresh; sweep > 0 && s.events%uint64(sweep) == 0 {
		s.refresh()
	}
	if ex.Spam {
		m.spam++
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
		Standing: effect.Standing, Accused: effect.Accused, Muted: how.unwatched(), ID: ex.ID, Source: ex.Source, Event: m.events + 1,
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
