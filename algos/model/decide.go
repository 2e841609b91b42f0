package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"hamlet/algos/dedup"
	"hamlet/algos/lastlabel"
	"hamlet/algos/sites"
	"hamlet/algos/trust"
)

// What becomes of an event depends on the sites, names and labels of the events before it, and not
// on what they taught. So a [DryRun] can tell it without learning. Apply asks admit and decide, learns,
// and writes down the event with take, note and count. A DryRun does the same and learns nothing.

// An admission says whether an event is carried out.
type admission uint8

const (
	admitted admission = iota
	aCopy              // of an event within the duplicate window: it changes nothing
	leftOut            // of Config.WithoutSources: it has moved the clock, and changes nothing else
)

// admit returns the key of ex in the duplicate window. The error is a *RefusedError, or wraps ErrSetAside.
func (m *Model) admit(ex *Example) (key uint64, a admission, err error) {
	switch {
	case ex.Action > Assume:
		return 0, admitted, &RefusedError{fmt.Sprintf("action %d is unknown", ex.Action)}
	case (ex.Action == Correct || ex.Action == Assume) && ex.Of == "":
		return 0, admitted, &RefusedError{"a correction, or an answer, of no message"}
	case (ex.Action == Correct || ex.Action == Assume) && m.ofAnotherKind(ex):
		return 0, admitted, &RefusedError{"the message was learnt with another kind of body"}
	}
	if reason := checkSampleWeight(ex.SampleWeight); reason != "" {
		return 0, admitted, &RefusedError{reason}
	}
	key = m.seen.Key(ex.Body.Tenant, ex.Source, ex.ID)
	if m.seen.Has(key) {
		return key, aCopy, nil
	}
	if slices.Contains(m.setAside, key) {
		return key, admitted, fmt.Errorf("%w: %s", ErrSetAside, formatKey(key))
	}
	if err := m.Check(&ex.Body); err != nil {
		return key, admitted, err
	}
	if m.LeavesOut(ex.Source) {
		m.leftOut++
		m.count(key)
		return key, leftOut, nil
	}
	return key, admitted, nil
}

// A decision says what an event that was admitted does.
type decision struct {
	withdraws []int    // slots of the sub-model's sites, newest first
	learns    bool     // the label is learnt
	receipt   *Receipt // of a correction: its Outcome and Spam; nil: the label is learnt as by Learn
}

// decide decides what ex does. body is the hash of its body, by which a withdrawal finds the event.
// The error is one of package sites. It changes nothing, but forgets a message of which nothing is
// known, if ex asks for that.
func (m *Model) decide(ex *Example, body uint64) (d decision, err error) {
	switch ex.Action {
	case Relearn, Unlearn:
		slots, err := m.find(ex, body)
		if errors.Is(err, sites.ErrUnknown) && ex.Forgets() {
			m.forget(ex)
		}
		return decision{withdraws: slots, learns: ex.Action == Relearn}, err
	case Correct:
		return m.decideCorrection(ex), nil
	case Assume:
		return decision{learns: m.assumes(ex)}, nil
	default:
		return decision{learns: true}, nil
	}
}

// find returns the sites of the event ex.Of, which has a body with this hash. The Of of an Unlearn may
// also be the identity of a message, whose events it returns.
func (m *Model) find(ex *Example, body uint64) (slots []int, err error) {
	s := m.submodel(&ex.Body)
	if s == nil {
		return nil, sites.ErrUnknown
	}
	role := m.roles[ex.Source]
	key, named := m.seen.Key(ex.Body.Tenant, ex.Source, ex.Of), m.seen.Key(ex.Body.Tenant, ex.Of)
	ownOnly := ex.OwnOnly || role == trust.Muted // who is muted takes nothing back from others
	slot, err := s.sites.Find(key, named, body, ownOnly)
	if err == nil {
		return []int{slot}, nil
	}
	if errors.Is(err, sites.ErrUnknown) && ex.Action == Unlearn {
		message := m.message(ex.Body.Tenant, ex.Of)
		slots, others := s.eventsOf(message, m.source(ex.Source), m.assumedSource(), true, !ownOnly || role == trust.Anchor)
		switch {
		case others:
			return nil, sites.ErrNotOwn
		case len(slots) > 0:
			return slots, nil
		}
	}
	return nil, err
}

// ofAnotherKind reports whether the message ex.Of has events with another kind of body than ex.
func (m *Model) ofAnotherKind(ex *Example) bool {
	for k, s := range m.submodels {
		if s == nil || kind(k) == kindOf(&ex.Body) {
			continue
		}
		if message := m.message(ex.Body.Tenant, ex.Of); message != 0 && len(s.sites.Of(nil, message)) > 0 {
			return true
		}
	}
	return false
}

// eventsOf returns the slots of a message's events that a source may withdraw, newest first:
// its own and nobody's, or all. others: there are events, and it may withdraw none. s may be nil,
// and message 0: then there are none.
func (s *submodel) eventsOf(message, source, nobody uint64, own, all bool) (slots []int, others bool) {
	if s == nil || message == 0 {
		return nil, false
	}
	for _, slot := range s.sites.Of(nil, message) {
		if from := s.sites.Source(slot); all || own && (from == source || from == nobody || s.sites.Weight(slot) == 0) {
			slots = append(slots, slot)
		} else {
			others = true
		}
	}
	return slots, others && len(slots) == 0
}

// forget notes that nobody wants the message ex.Of learnt, if nothing is known of it: an answer
// about it may wait to be assumed.
func (m *Model) forget(ex *Example) {
	message := m.message(ex.Body.Tenant, ex.Of)
	if m.labels.Get(message).State == lastlabel.Unknown {
		m.labels.Put(message, lastlabel.Label{Source: m.source(ex.Source), State: lastlabel.Withdrawn})
	}
}

// take notes that the event in a slot is withdrawn. The last label of its message is then that of
// the message's newest event that stands, if there is one.
func (m *Model) take(ring *sites.Ring, slot int) {
	ring.Withdraw(slot)
	message := ring.Message(slot)
	last := m.labels.Get(message)
	if last.State == lastlabel.Unknown { // it has no identity, or the table has dropped it
		return
	}
	last.State = lastlabel.Withdrawn
	for _, left := range ring.Of(nil, message) {
		if ring.Weight(left) > 0 {
			last = lastlabel.Label{Source: ring.Source(left), State: lastlabel.Of(ring.Label(left))}
			break
		}
	}
	m.labels.Put(message, last)
}

// note notes an event that was learnt: its site, to which it adds the names, and the last label of its
// message.
func (m *Model) note(ring *sites.Ring, ex *Example, key uint64, at sites.Site) {
	identity := ex.Identity
	at.Source = m.source(ex.Source)
	if ex.Action == Correct || ex.Action == Assume {
		identity = ex.Of
	}
	if ex.Action == Assume {
		at.Source = m.assumedSource()
	}
	at.Key, at.Named, at.Message = key, m.seen.Key(ex.Body.Tenant, ex.ID), m.message(ex.Body.Tenant, identity)
	if at.Message != 0 && at.Weight > 0 { // what counts for nothing is no label to correct
		m.labels.Put(at.Message, lastlabel.Label{Source: at.Source, State: lastlabel.Of(ex.Spam)})
	}
	ring.Add(at)
	if ex.Spam {
		m.spam++
	}
	switch {
	case ex.Action == Assume && ex.Spam:
		m.assumed.Spam++
	case ex.Action == Assume:
		m.assumed.Ham++
	}
}

// count counts an event that was carried out.
func (m *Model) count(key uint64) {
	m.events++
	m.seen.Add(key)
}

// source returns the hash of a source's name that sites and last labels have.
func (m *Model) source(name string) uint64 { return lastlabel.Source(m.seen.Key(name)) }

// message returns the hash of a message's identity. 0: it has none.
func (m *Model) message(tenant, identity string) uint64 {
	if identity == "" {
		return 0
	}
	return m.seen.Key(tenant, identity)
}

// A DryRun tells which events of a log a model counts, without learning them. It errs where a copy
// follows its original, or a withdrawal its event, from before the first event that it is shown; where
// a withdrawal has another body than its event; and where the roles of sources have changed since. A
// label counts in full, but that of a source that is muted.
type DryRun struct {
	book  *Model // without what events teach: its sub-models have sites alone
	whole bool
}

// NewDryRun returns a DryRun of an empty model with the configuration of m and the roles of its sources.
// whole: the first event that it is shown is the log's. If not, what is not known may have been before,
// and people are taken to have taught enough for an answer to be assumed.
func (m *Model) NewDryRun(whole bool) *DryRun {
	book := &Model{cfg: m.cfg, setAside: m.setAside, roles: maps.Clone(m.roles)}
	book.seen, book.labels = dedup.New(m.cfg.DuplicateWindow), lastlabel.New(m.cfg.DuplicateWindow)
	for k := range book.submodels {
		book.submodels[k] = &submodel{sites: sites.New(sites.Shape{})}
	}
	if !whole {
		book.events, book.spam = 2*leastTaught, leastTaught
	}
	return &DryRun{book, whole}
}

// Counts reports whether ex is an event of the model, and takes it for learnt.
func (d *DryRun) Counts(ex *Example) bool {
	m := d.book
	key, admission, err := m.admit(ex)
	if err != nil || admission != admitted {
		return admission == leftOut
	}
	ring := m.submodel(&ex.Body).sites
	does, err := m.decide(ex, 0)
	before := errors.Is(err, sites.ErrUnknown) && !d.whole && ring.Len() < sites.Window
	if err != nil && !before {
		return false
	}
	for _, slot := range does.withdraws {
		m.take(ring, slot)
	}
	if does.learns {
		at := sites.Site{}
		at.Head.Y = sign(ex.Spam)
		if m.roles[ex.Source] != trust.Muted {
			at.Weight = 1
		}
		m.note(ring, ex, key, at)
	} else {
		m.unlearnt++
	}
	m.count(key)
	return true
}
