package model

import (
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/text"
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

// withdrawAll withdraws the events in slots for a source. in are the features of the last body
// read. After an error those before it are withdrawn.
func (m *Model) withdrawAll(s *submodel, slots []int, source uint64, in *features) (receipt Receipt, err error) {
	for i, slot := range slots {
		r, err := s.withdraw(slot, in, in.bodyHashes())
		if err != nil {
			return receipt, err
		}
		m.take(s.sites, slot)
		if i == 0 {
			receipt = r
			receipt.SameSource = s.sites.Source(slot) == source
		}
		receipt.Events, receipt.Uncounted = i+1, receipt.Uncounted || r.Uncounted
	}
	return receipt, nil
}

// withdraw removes the event in slot from the sub-model: its current sites and the experts'
// counts. The caller marks it as withdrawn. in are the features of a body with these hashes.
// An expert whose part of the body is not the one that was learnt keeps its counts. After an
// error nothing has changed.
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
	site := s.sites.Head(slot)
	var err error
	if r.Site, err = s.head.Unlearn(site); err != nil {
		return Receipt{}, err
	}
	apply()
	r.Spam = site.Y > 0
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
	for slot := range s.sites.Remaining() {
		site := s.sites.Head(slot)
		if _, err := s.head.Refresh(&site); err == nil {
			s.sites.SetHead(slot, site)
		}
	}
}
