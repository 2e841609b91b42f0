package withdraw

import (
	"errors"

	"hamlet/algos/dedup"
	"hamlet/algos/lastlabel"
	"hamlet/algos/model"
	"hamlet/algos/sites"
	"hamlet/algos/trust"
)

// A clock says which records are events of the model, without learning them. It keeps what
// the model keeps of its last events: their names, messages, sources and labels. It errs where
// a copy follows its original, or a withdrawal its event, from before the first record read.
// Sources have the roles that they have at the end of the log, and the labels of those that
// are not muted count.
type clock struct {
	model  *model.Model
	whole  bool // the first record read is that of the log
	roles  map[string]trust.Role
	seen   *dedup.Window
	labels *lastlabel.Table
	kinds  [2]*sites.Ring // of messages and of vectors
	taught [2]int         // ham and spam that people have taught
}

func newClock(m *model.Model, whole bool) *clock {
	window := m.Config().DuplicateWindow
	c := &clock{model: m, whole: whole, roles: map[string]trust.Role{}, seen: dedup.New(window), labels: lastlabel.New(window)}
	for k := range c.kinds {
		c.kinds[k] = sites.New(sites.Shape{})
	}
	for _, s := range m.Sources() {
		if s.Role != trust.Ordinary {
			c.roles[s.Name] = s.Role
		}
	}
	return c
}

// to reports whether the model applied r.
func (c *clock) to(r *record) bool {
	ex := &r.Example
	if !r.isEvent() || c.model.IsSetAside(ex) || c.model.Check(&ex.Body) != nil {
		return false
	}
	key := c.seen.Key(ex.Body.Tenant, ex.Source, ex.ID)
	if c.seen.Has(key) || !c.model.LeavesOut(ex.Source) && !c.apply(ex, key) {
		return false
	}
	c.seen.Add(key)
	return true
}

// nobody is the source of assumed labels.
const nobody = 4

// apply does what model.Apply does, and reports whether ex was not refused.
func (c *clock) apply(ex *model.Example, key uint64) bool {
	ring, other := c.kinds[0], c.kinds[1]
	if ex.Body.Message == nil {
		ring, other = other, ring
	}
	if (ex.Action == model.Correct || ex.Action == model.Assume) && len(other.Of(nil, c.message(ex, ex.Of))) > 0 {
		return false // it was learnt with another kind of body
	}
	source, identity := lastlabel.Source(c.seen.Key(ex.Source)), ex.Identity
	switch ex.Action {
	case model.Unlearn, model.Relearn:
		if !c.withdraw(ring, ex, source) {
			return false
		}
		if ex.Action == model.Unlearn {
			return true
		}
	case model.Correct:
		if identity = ex.Of; !c.correct(ring, ex, source) {
			return true
		}
	case model.Assume:
		identity = ex.Of
		message := c.message(ex, identity)
		if c.labels.Get(message).State != lastlabel.Unknown || len(ring.Of(nil, message)) > 0 || c.whole && min(c.taught[0], c.taught[1]) < leastTaught {
			return true
		}
		source = nobody
	}
	if source != nobody {
		c.taught[lastlabel.Of(ex.Spam)-lastlabel.Ham]++
	}
	site := sites.Site{Key: key, Named: c.seen.Key(ex.Body.Tenant, ex.ID), Message: c.message(ex, identity), Source: source}
	if c.roles[ex.Source] != trust.Muted {
		site.Weight = 1
	}
	site.Head.Y = -1
	if ex.Spam {
		site.Head.Y = 1
	}
	ring.Add(site)
	if site.Weight > 0 {
		c.labels.Put(site.Message, lastlabel.Label{Source: source, State: lastlabel.Of(ex.Spam)})
	}
	return true
}

// leastTaught is how many labels of each class people must have given before an answer is
// assumed.
const leastTaught = 5

func (c *clock) message(ex *model.Example, identity string) uint64 {
	return c.seen.Key(ex.Body.Tenant, identity)
}

// withdraw withdraws the event ex.Of, or the events of the message ex.Of, and reports whether
// there was one.
func (c *clock) withdraw(ring *sites.Ring, ex *model.Example, source uint64) bool {
	key, named := c.seen.Key(ex.Body.Tenant, ex.Source, ex.Of), c.seen.Key(ex.Body.Tenant, ex.Of)
	role := c.roles[ex.Source]
	ownOnly := ex.OwnOnly || role == trust.Muted
	slot, err := ring.Find(key, named, 0, ownOnly)
	slots := []int{slot}
	if errors.Is(err, sites.ErrUnknown) && ex.Action == model.Unlearn {
		var others bool
		slots, others = c.eventsOf(ring, named, source, true, !ownOnly || role == trust.Anchor)
		if len(slots) > 0 {
			err = nil
		} else if others {
			err = sites.ErrNotOwn
		}
	}
	if message := c.message(ex, ex.Of); errors.Is(err, sites.ErrUnknown) && ex.Forgets() && c.labels.Get(message).State == lastlabel.Unknown {
		c.labels.Put(message, lastlabel.Label{Source: source, State: lastlabel.Withdrawn})
	}
	if errors.Is(err, sites.ErrUnknown) && !c.whole && ring.Len() < sites.Window {
		return true // it may be of an event before the first record
	}
	if err != nil {
		return false
	}
	for _, slot := range slots {
		c.take(ring, slot)
	}
	return true
}

func (c *clock) take(ring *sites.Ring, slot int) {
	ring.Withdraw(slot)
	message := ring.Message(slot)
	last := c.labels.Get(message)
	if last.State == lastlabel.Unknown {
		return
	}
	last.State = lastlabel.Withdrawn
	for _, left := range ring.Of(nil, message) {
		if ring.Weight(left) > 0 {
			last = lastlabel.Label{Source: ring.Source(left), State: lastlabel.Of(ring.Label(left))}
			break
		}
	}
	c.labels.Put(message, last)
}

// eventsOf returns the slots of a message's events that a source may withdraw. others: there
// are events, and it may withdraw none.
func (c *clock) eventsOf(ring *sites.Ring, message, source uint64, own, all bool) (slots []int, others bool) {
	for _, slot := range ring.Of(nil, message) {
		if from := ring.Source(slot); all || own && (from == source || from == nobody || ring.Weight(slot) == 0) {
			slots = append(slots, slot)
		} else {
			others = true
		}
	}
	return slots, others && len(slots) == 0
}

// correct withdraws what a correction replaces, and reports whether its label was learnt.
func (c *clock) correct(ring *sites.Ring, ex *model.Example, source uint64) bool {
	message, role := c.message(ex, ex.Of), c.roles[ex.Source]
	own, all := role != trust.Muted, role == trust.Anchor || role == trust.Ordinary && !ex.OwnOnly
	slots, others := c.eventsOf(ring, message, source, own, all)
	last := c.labels.Get(message)
	switch {
	case len(slots) > 0:
		other := false
		for _, slot := range slots {
			other = other || ring.Label(slot) != ex.Spam || ring.Source(slot) == nobody || ring.Weight(slot) == 0
		}
		for _, slot := range slots {
			if other {
				c.take(ring, slot)
			}
		}
		return other
	case others:
		return false
	case last.State == lastlabel.Unknown || last.State == lastlabel.Withdrawn:
		return true
	case !all && !(own && (last.Source == source || last.Source == nobody)):
		return false
	}
	return last.State != lastlabel.Of(ex.Spam)
}
