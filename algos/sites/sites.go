// Package sites keeps the last events of a sub-model as its heads absorbed them, so that
// each can be withdrawn (unlearnt) or its site solved again. A site is what an event
// added to a head (package blr).
//
//	ring.Add(sites.Site{Key: key, Named: named, Body: body, Head: site, …})
//	slot, err := ring.Find(key, named, body, ownOnly)
//	receipt, err := head.Unlearn(ring.Head(slot))
//	ring.Withdraw(slot)
//
// A [Ring] keeps the last [Window] events: for each the hashes by which a withdrawal finds
// it, the sites of head, stacker and second head, and the weights with which experts
// counted it.
//
// Invariant: the sites in a Ring have no inputs. The ring's slices hold them; Head and
// Stack return sites with inputs.
package sites

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/internal/codec"
)

// Window is how many events a Ring holds.
const Window = 2500

// A Site is one event as a sub-model absorbed it.
type Site struct {
	Key, Named uint64    // hashes of (tenant, source, id) and of (tenant, id)
	Message    uint64    // hash of the identity of the message, of its tenant
	Source     uint64    // hash of the source
	Body       uint64    // hash of the part of the body that was read
	Text       uint64    // hash of the text that was read
	Head       blr.Site  // of the head
	Trust      float64   // probability that the label is true
	Weight     float64   // how much the label counted by its source's standing, 0 to 1
	Counted    []float64 // the weight with which each counting expert counted it, at most 2; 0: not at all
	Withdrawn  bool

	// Sites of the stacker, without X if the stacker did not learn the event, and of the
	// second head. Both have the label and the weight of Head.
	Stacker, Second blr.Site
	stacked         bool // the stacker learnt it
}

// A Shape says how many numbers a site has.
type Shape struct {
	Inputs   int  // of the head and of the second head
	Stacker  int  // inputs of the stacker, 0: there is none
	Second   bool // whether there is a second head
	Counters int  // experts that count, at least 1
}

// size returns the number of bytes of a site.
func (s Shape) size() int {
	n := 8 * (16 + s.Counters + s.Inputs)
	if s.Stacker > 0 {
		n += 8 * (5 + s.Stacker)
	}
	if s.Second {
		n += 8 * 5
	}
	return n
}

// A Ring holds the last sites. The numbers of all slots lie in one slice each.
type Ring struct {
	Shape
	ring          []Site
	next          int       // where the next site goes: len(ring) until the ring is full
	x, z, counted []float64 // by slot: the head's inputs, the stacker's, Counted
}

// New returns an empty Ring. With at most 256 inputs it allocates all its memory at once.
func New(shape Shape) *Ring {
	const small = 256
	r := &Ring{Shape: shape}
	if shape.Inputs <= small {
		r.ring = make([]Site, 0, Window)
		r.x, r.z = make([]float64, 0, Window*shape.Inputs), make([]float64, 0, Window*shape.Stacker)
		r.counted = make([]float64, 0, Window*shape.Counters)
	}
	return r
}

// Len returns the number of sites.
func (r *Ring) Len() int { return len(r.ring) }

// Add adds a site. In a full ring it replaces the oldest. It copies all of s, whose Counted
// has r.Counters numbers.
func (r *Ring) Add(s Site) {
	if len(r.ring) < Window {
		r.ring = append(r.ring, Site{})
		r.x = append(r.x, make([]float64, r.Inputs)...)
		r.z = append(r.z, make([]float64, r.Stacker)...)
		r.counted = append(r.counted, make([]float64, r.Counters)...)
	}
	copy(r.inputs(r.next), s.Head.X)
	s.stacked = len(s.Stacker.X) > 0
	z := r.stackerInputs(r.next)
	clear(z)
	copy(z, s.Stacker.X)
	copy(r.Counted(r.next), s.Counted)
	s.Head.X, s.Stacker.X, s.Second.X, s.Counted = nil, nil, nil, nil // the slices may move when they grow
	r.ring[r.next] = s
	r.next = (r.next + 1) % Window
}

func (r *Ring) inputs(slot int) []float64        { return r.x[slot*r.Inputs : (slot+1)*r.Inputs] }
func (r *Ring) stackerInputs(slot int) []float64 { return r.z[slot*r.Stacker : (slot+1)*r.Stacker] }

// Counted returns the weights with which the experts counted a slot's event.
func (r *Ring) Counted(slot int) []float64 { return r.counted[slot*r.Counters : (slot+1)*r.Counters] }

// Trust returns the label trust of a slot's event.
func (r *Ring) Trust(slot int) float64 { return r.ring[slot].Trust }

// Weight returns how much the label of a slot's event counted by its source's standing.
func (r *Ring) Weight(slot int) float64 { return r.ring[slot].Weight }

// Since returns how many events came after a slot's.
func (r *Ring) Since(slot int) int { return (r.next - 1 - slot + Window) % Window }

// Withdraw marks a slot's event as withdrawn.
func (r *Ring) Withdraw(slot int) { r.ring[slot].Withdrawn = true }

// Head returns the head's site of a slot.
func (r *Ring) Head(slot int) blr.Site {
	site := r.ring[slot].Head
	site.X = r.inputs(slot)
	return site
}

// SetHead replaces the head's site of a slot, but not its inputs.
func (r *Ring) SetHead(slot int, site blr.Site) {
	site.X = nil
	r.ring[slot].Head = site
}

// Stack returns the sites of the stacker, without X if it did not learn the event,
// and of the second head.
func (r *Ring) Stack(slot int) (stacker, second blr.Site) {
	s := &r.ring[slot]
	stacker, second = s.Stacker, s.Second
	if s.stacked {
		stacker.X = r.stackerInputs(slot)
	}
	second.X = r.inputs(slot)
	stacker.Y, stacker.Phi, second.Y, second.Phi = s.Head.Y, s.Head.Phi, s.Head.Y, s.Head.Phi
	return stacker, second
}

// Remaining returns the slots of events that have not been withdrawn, oldest first.
func (r *Ring) Remaining() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range r.ring {
			slot := i
			if len(r.ring) == Window {
				slot = (r.next + i) % Window
			}
			if !r.ring[slot].Withdrawn && !yield(slot) {
				return
			}
		}
	}
}

// Why an event cannot be withdrawn.
var (
	ErrUnknown = errors.New("no event of this id is known: " +
		"it was never learnt, or is older than the window of withdrawals")
	ErrWithdrawn = errors.New("the event has been withdrawn already")
	ErrOtherBody = errors.New("the body is not the one that was learnt")
	ErrNotOwn    = errors.New("the event of this id is another source's, and this source may withdraw its own alone")
)

// Find returns the newest slot of this name and body that has not been withdrawn. Events of
// the same source (key) come before other events of the tenant (named); with ownOnly the
// others are not found.
func (r *Ring) Find(key, named, body uint64, ownOnly bool) (slot int, err error) {
	found, err := -1, ErrUnknown
	for back := 1; back <= len(r.ring); back++ {
		slot := (r.next - back + Window) % Window
		s := &r.ring[slot]
		switch {
		case s.Named != named:
		case ownOnly && s.Key != key:
			if err == ErrUnknown {
				err = ErrNotOwn
			}
		case s.Body != body:
			if err != ErrWithdrawn {
				err = ErrOtherBody
			}
		case s.Withdrawn:
			err = ErrWithdrawn
		case s.Key == key:
			return slot, nil
		case found < 0:
			found = slot
		}
	}
	if found >= 0 {
		return found, nil
	}
	return -1, err
}

// Label reports whether a slot's event was learnt as spam.
func (r *Ring) Label(slot int) (spam bool) { return r.ring[slot].Head.Y > 0 }

// Source returns the hash of the source of a slot's event.
func (r *Ring) Source(slot int) uint64 { return r.ring[slot].Source }

// Message returns the hash of the identity of a slot's message.
func (r *Ring) Message(slot int) uint64 { return r.ring[slot].Message }

// Hashes returns the hashes of what was read of a slot's body, and of its text.
func (r *Ring) Hashes(slot int) (body, text uint64) { return r.ring[slot].Body, r.ring[slot].Text }

// Of appends the slots of a message's events that have not been withdrawn, newest first.
func (r *Ring) Of(dst []int, message uint64) []int {
	for back := 1; back <= len(r.ring); back++ {
		slot := (r.next - back + Window) % Window
		if s := &r.ring[slot]; s.Message == message && !s.Withdrawn {
			dst = append(dst, slot)
		}
	}
	return dst
}

// Write appends the number of the next slot, a uint64, and slot by slot
//
//	uint64 key, named, message, source, body, text | uint64 flags (1: withdrawn, 2: the stacker learnt it)
//	| float64 y, φ, H, Eta, R, ξ, trust, weight | float64 × counters counted | uint64 fades | float64 × inputs
//	| with a stacker its float64 H, Eta, R, ξ | uint64 fades | float64 × its inputs, 0 if it did not learn it
//	| with a second head its float64 H, Eta, R, ξ | uint64 fades
func (r *Ring) Write(w *codec.Writer) {
	w.Uint64(uint64(r.next))
	before := w.Len()
	for slot := range r.ring {
		if slot == 1 { // all are as long as the first
			w.Grow((len(r.ring) - 1) * (w.Len() - before))
		}
		s := &r.ring[slot]
		flags := uint64(0)
		if s.Withdrawn {
			flags = 1
		}
		if s.stacked {
			flags |= 2
		}
		w.Uint64(s.Key, s.Named, s.Message, s.Source, s.Body, s.Text, flags)
		w.Float64(s.Head.Y, s.Head.Phi, s.Head.H, s.Head.Eta, s.Head.R, s.Head.Xi, s.Trust, s.Weight)
		w.Float64(r.Counted(slot)...)
		w.Uint64(s.Head.Fades)
		w.Float64(r.inputs(slot)...)
		if r.Stacker > 0 {
			writeSite(w, &s.Stacker)
			w.Float64(r.stackerInputs(slot)...)
		}
		if r.Second {
			writeSite(w, &s.Second)
		}
	}
}

func writeSite(w *codec.Writer, r *blr.Site) {
	w.Float64(r.H, r.Eta, r.R, r.Xi)
	w.Uint64(r.Fades)
}

const (
	// mostInput bounds a head's inputs: experts ±10, and ±30 in the first events of a model
	// (text.Entry.EarlyGain), dense ±3, facts 30, ln(1+v) of a count 44, the logit of the
	// rate of spam ±4.7.
	mostInput = 64
	// mostAnswer bounds a stacker's inputs, log-odds of heads: package blr reads their
	// squares.
	mostAnswer = 1e15
	// mostFades is how often blr's heads, which fade at every 50th event, may have faded
	// since the oldest site of a ring.
	mostFades = Window / 50
)

// Read returns the Ring that Write wrote. It allocates no more than the bytes need.
func Read(from *codec.Reader, shape Shape) *Ring {
	r := &Ring{Shape: shape}
	size := shape.size()
	next := from.Uint64()
	n := from.Len() / size
	switch {
	case from.Len()%size != 0:
		from.Fail("%d bytes of sites, want %d a site", from.Len(), size)
		return r
	case n > Window || n < Window && next != uint64(n) || next >= Window:
		from.Fail("%d sites of at most %d go on at %d", n, Window, next)
		return r
	}
	r.next, r.ring = int(next), make([]Site, n)
	r.x, r.z, r.counted = make([]float64, n*shape.Inputs), make([]float64, n*shape.Stacker),
		make([]float64, n*shape.Counters)
	for slot := range r.ring {
		r.readSite(from, slot)
	}
	return r
}

func (r *Ring) readSite(from *codec.Reader, slot int) {
	s := &r.ring[slot]
	var flags uint64
	from.Uint64To(&s.Key, &s.Named, &s.Message, &s.Source, &s.Body, &s.Text, &flags)
	s.Withdrawn, s.stacked = flags&1 != 0, flags&2 != 0
	from.FiniteTo(&s.Head.Y, &s.Head.Phi, &s.Head.H, &s.Head.Eta, &s.Head.R, &s.Head.Xi, &s.Trust, &s.Weight)
	from.Fill(r.Counted(slot))
	s.Head.Fades = from.Uint64()
	from.Fill(r.inputs(slot))
	if r.Stacker > 0 {
		readSite(from, &s.Stacker)
		from.Fill(r.stackerInputs(slot))
	}
	if r.Second {
		readSite(from, &s.Second)
	}
	h := &s.Head
	if ok := flags <= 3 && !(s.stacked && r.Stacker == 0) && (h.Y == 1 || h.Y == -1) &&
		h.Phi > 0 && h.Phi <= blr.MostPower &&
		h.H >= 0 && s.Stacker.H >= 0 && s.Second.H >= 0 && s.Trust >= 0 && s.Trust <= 1 && s.Weight >= 0 && s.Weight <= 1 &&
		within(r.Counted(slot), 0, blr.MostPower) && within(r.inputs(slot), -mostInput, mostInput) &&
		within(r.stackerInputs(slot), -mostAnswer, mostAnswer); !ok {
		from.Fail("slot %d is not a site", slot)
	}
}

func readSite(from *codec.Reader, r *blr.Site) {
	from.FiniteTo(&r.H, &r.Eta, &r.R, &r.Xi)
	r.Fades = from.Uint64()
}

func within(x []float64, low, high float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v < low || v > high }) // Fill has refused NaN
}

// Check returns an error if a site was made after more fadings than its head has had, or
// too long ago for the ring. stacker and second are nil if there is none.
func (r *Ring) Check(head, stacker, second *blr.Posterior) error {
	fits := func(site *blr.Site, p *blr.Posterior) bool {
		return site.Fades <= p.Fades() && p.Fades()-site.Fades <= mostFades
	}
	for slot := range r.ring {
		s := &r.ring[slot]
		if !fits(&s.Head, head) || s.stacked && !fits(&s.Stacker, stacker) || r.Second && !fits(&s.Second, second) {
			return fmt.Errorf("slot %d was made after %d, %d and %d fadings",
				slot, s.Head.Fades, s.Stacker.Fades, s.Second.Fades)
		}
	}
	return nil
}
