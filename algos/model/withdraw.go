package model

import (
	"slices"

	"hamlet/algos/blr"
)

// A Receipt says what a withdrawal took out of a model: the head's site, and what
// experts had counted. Stacker and second head let go of it as the head does. An
// ensemble has it until one is built from a window without it.
//
// A trace stays where learning is not a sum: in the AdaGrad experts (it can be most of
// what was learnt: six copies of one spam withdrawn left its experts at +4), the running
// standardisation, the flip rates, the log evidence, the alarms, and in what later events
// were predicted as when they were learnt.
type Receipt struct {
	Site    blr.Receipt // of the head: the site as it stood, KL before‖after, change of ln|V|
	Trust   float64     // the label trust that the event had
	Spam    bool        // the label that was withdrawn
	Counted float64     // the largest weight with which an expert had counted it; 0: none did
	Since   int         // how many events of this kind came after it
}

// withdraw takes the event in slot out of the sub-model: the head's site as it stands
// now, and what experts counted. It changes nothing if it returns an error.
func (s *submodel) withdraw(slot int, in *features) (Receipt, error) {
	r := Receipt{Trust: s.sites.Trust(slot), Since: s.sites.Since(slot)}
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
	for k, e := range s.experts {
		if !s.entries[k].Counts {
			continue
		}
		if counted[0] > 0 {
			e.Withdraw(in.views[k], r.Spam, counted[0])
		}
		counted = counted[1:]
	}
	return r, nil
}

// refresh solves the sites that stand once more, oldest first, under the belief of
// today. A site that cannot be solved stays as it is.
func (s *submodel) refresh() {
	for slot := range s.sites.Standing() {
		record := s.sites.Head(slot)
		if _, err := s.head.Refresh(&record); err == nil {
			s.sites.SetHead(slot, record)
		}
	}
}
