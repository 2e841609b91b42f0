package model

import (
	"errors"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/lastlabel"
	"hamlet/algos/sites"
	"hamlet/algos/text"
	"hamlet/algos/trust"
)

// A Receipt says what a withdrawal removed from a model: the head's site and the experts'
// counts. Stacker and second head remove their sites too. An ensemble keeps the event
// until it is rebuilt from a window without it.
//
// A label that counted little by its source's standing is withdrawn with the weight that it
// had. A Relearn by the same source counts with at most that weight.
//
// The event's effect remains in the AdaGrad experts, the running standardisation, the flip
// rates, the sources' standing, the log evidence, the alarms and the predictions of later
// events. In the AdaGrad experts it can be large: withdrawing six copies of one spam left them at +4.
//
// The receipt of several events (Events > 1) is that of the newest. If the outcome is none of
// Withdrawn and Replaced, nothing was withdrawn, and only Outcome and Spam have a meaning.
type Receipt struct {
	Outcome   Outcome
	Events    int         // how many events were withdrawn
	Site      blr.Receipt // the head's site before the withdrawal, KL before‖after, change of ln|V|
	Trust     float64     // the label trust that the event had
	Spam      bool        // the label that was withdrawn; without a withdrawal the message's last one
	Counted   float64     // the largest weight with which an expert counted it; 0: none did
	Uncounted bool        // the body is a copy of another text: the experts' counts remain
	Since     int         // number of later events of this kind

	Standing   float64 // how much the label counted by its source's standing
	SameSource bool    // the event was learnt from the source that withdraws it
}

// find returns the sub-model, the features and the sites of the event ex.Of. The Of of an
// Unlearn may also be the identity of a message, whose events it returns.
func (m *Model) find(ex *Example) (s *submodel, in *features, slots []int, err error) {
	if s = m.submodel(&ex.Body); s == nil {
		return nil, nil, nil, sites.ErrUnknown
	}
	in = m.own.reader.read(&ex.Body, s)
	key, named := m.seen.Key(ex.Body.Tenant, ex.Source, ex.Of), m.seen.Key(ex.Body.Tenant, ex.Of)
	ownOnly := ex.OwnOnly || m.roles[ex.Source] == trust.Muted // who is muted takes nothing back from others
	slot, err := s.sites.Find(key, named, in.bodyHashes().all, ownOnly)
	if err == nil {
		return s, in, []int{slot}, nil
	}
	if errors.Is(err, sites.ErrUnknown) && ex.Action == Unlearn {
		all := !ownOnly || m.roles[ex.Source] == trust.Anchor
		slots, others := s.eventsOf(m.message(ex.Body.Tenant, ex.Of), m.source(ex.Source), m.assumedSource(), true, all)
		switch {
		case others:
			err = sites.ErrNotOwn
		case len(slots) > 0:
			return s, in, slots, nil
		}
	}
	return nil, nil, nil, err
}

// withdraw withdraws the event ex.Of from its sub-model, or the events of the message ex.Of,
// or returns a *RefusedError.
func (m *Model) withdraw(ex *Example) (*Receipt, error) {
	s, in, slots, err := m.find(ex)
	if err != nil {
		if errors.Is(err, sites.ErrUnknown) && ex.Forgets() {
			m.forget(ex)
		}
		return nil, &RefusedError{err.Error()}
	}
	receipt, err := m.withdrawAll(s, slots, m.source(ex.Source), in)
	if err != nil && receipt.Events == 0 {
		return nil, &RefusedError{err.Error()}
	}
	return &receipt, nil
}

// forget notes that nobody wants the message ex.Of learnt, if nothing is known of it: an answer
// about it may wait to be assumed.
func (m *Model) forget(ex *Example) {
	message := m.message(ex.Body.Tenant, ex.Of)
	if m.labels.Get(message).State == lastlabel.Unknown {
		m.labels.Put(message, lastlabel.Label{Source: m.source(ex.Source), State: lastlabel.Withdrawn})
	}
}

// withdrawAll withdraws the events in slots for a source. in are the features of the last body
// read. After an error those before it are withdrawn.
func (m *Model) withdrawAll(s *submodel, slots []int, source uint64, in *features) (receipt Receipt, err error) {
	for i, slot := range slots {
		r, err := s.withdraw(slot, in, in.bodyHashes())
		if err != nil {
			return receipt, err
		}
		m.relabel(s, s.sites.Message(slot))
		if i == 0 {
			receipt = r
			receipt.SameSource = s.sites.Source(slot) == source
		}
		receipt.Events, receipt.Uncounted = i+1, receipt.Uncounted || r.Uncounted
	}
	return receipt, nil
}

// relabel stores the last label of a message of which an event was withdrawn: that of its
// newest event that stands, if there is one.
func (m *Model) relabel(s *submodel, message uint64) {
	last := m.labels.Get(message)
	if last.State == lastlabel.Unknown { // it has no identity, or the table has dropped it
		return
	}
	last.State = lastlabel.Withdrawn
	for _, left := range s.sites.Of(nil, message) {
		if s.sites.Weight(left) > 0 {
			last = lastlabel.Label{Source: s.sites.Source(left), State: lastlabel.Of(s.sites.Label(left))}
			break
		}
	}
	m.labels.Put(message, last)
}

// withdraw removes the event in slot from the sub-model: its current sites and the experts'
// counts. in are the features of a body with these hashes. An expert whose part of the body
// is not the one that was learnt keeps its counts. After an error nothing has changed.
func (s *submodel) withdraw(slot int, in *features, hashes bodyHashes) (Receipt, error) {
	r := Receipt{Trust: s.sites.Trust(slot), Standing: s.sites.Weight(slot), Since: s.sites.Since(slot)}
	apply := func() {}
	if s.stack != nil {
		stacker, second := s.sites.Stack(slot)
		var err error
		if apply, err = s.stack.Unlearn(stacker, second, r.Since, s.events+1); err != nil {
			return Receipt{}, err
		}
	}
	record := s.sites.Head(slot)
	var err error
	if r.Site, err = s.head.Unlearn(record); err != nil {
		return Receipt{}, err
	}
	apply()
	s.sites.Withdraw(slot)
	r.Spam = record.Y > 0
	counted := s.sites.Counted(slot)
	r.Counted = slices.Max(counted)
	var learnt bodyHashes
	learnt.all, learnt.text = s.sites.Hashes(slot)
	for k, e := range s.experts {
		if !s.entries[k].Counts {
			continue
		}
		switch {
		case counted[0] == 0:
		case learnt == hashes, learnt.text == hashes.text && s.entries[k].Reads.Part == text.OfText:
			e.Withdraw(in.views[k], r.Spam, counted[0])
		default:
			r.Uncounted = true
		}
		counted = counted[1:]
	}
	return r, nil
}

// refresh solves the standing sites again under the current posterior, oldest first. A
// site that cannot be solved stays unchanged.
func (s *submodel) refresh() {
	for slot := range s.sites.Standing() {
		record := s.sites.Head(slot)
		if _, err := s.head.Refresh(&record); err == nil {
			s.sites.SetHead(slot, record)
		}
	}
}
