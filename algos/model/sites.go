package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/stack"
)

// SiteWindow is how many of the last events of each kind of body can be
// withdrawn: their sites are kept.
const SiteWindow = 2500

// A site is one event as a half absorbed it: what the head added, and what naive
// Bayes counted.
type site struct {
	key, named uint64  // hashes of (tenant, source, id) and of (tenant, id)
	body       uint64  // hash of what the experts read
	blr.Record         // x, label, trust, curvature, shift, fades
	trust      float64 // probability that the label is true
	counted    float64 // the weight with which naive Bayes counted it; 0: it did not
	withdrawn  bool

	joined  bool       // the stacker learnt it, too
	stacker blr.Record // what the stacker added, and the second head; without X,
	second  blr.Record // label and trust
}

// sites is a ring of a half's last SiteWindow sites. The inputs lie in one slice.
type sites struct {
	dim  int
	zdim int  // inputs of the stacker, 0: there is none
	two  bool // there is a second head
	ring []site
	next int
	x, z []float64
}

// emptySites returns a ring without sites, which allocates while it fills.
func emptySites(dim, zdim int, two bool) sites { return sites{dim: dim, zdim: zdim, two: two} }

// newSites returns a ring that does not allocate while it fills, unless a site
// is so large that one should not pay for 2,500 of them before they come.
func newSites(dim, zdim int, two bool) sites {
	const small = 256
	w := emptySites(dim, zdim, two)
	if dim <= small {
		w.ring = make([]site, 0, SiteWindow)
		w.x, w.z = make([]float64, 0, SiteWindow*dim), make([]float64, 0, SiteWindow*zdim)
	}
	return w
}

// add keeps a site, in place of the oldest if the ring is full. It copies s.X.
func (w *sites) add(s site) {
	if len(w.ring) < SiteWindow {
		w.ring = append(w.ring, site{})
		w.x = append(w.x, make([]float64, w.dim)...)
		w.z = append(w.z, make([]float64, w.zdim)...)
	}
	x := w.inputs(w.next)
	copy(x, s.X)
	s.joined = len(s.stacker.X) > 0
	z := w.z[w.next*w.zdim : (w.next+1)*w.zdim]
	clear(z)
	copy(z, s.stacker.X)
	s.X, s.stacker.X, s.second.X = nil, nil, nil // x and z have them: the slice may move when it grows
	w.ring[w.next] = s
	w.next = (w.next + 1) % SiteWindow
}

func (w *sites) inputs(slot int) []float64 { return w.x[slot*w.dim : (slot+1)*w.dim] }

// record returns the head's record of a slot.
func (w *sites) record(slot int) blr.Record {
	r := w.ring[slot].Record
	r.X = w.inputs(slot)
	return r
}

// stackRecords returns the records of the stacker, with an X of no inputs where it did
// not learn the event, and of the second head.
func (w *sites) stackRecords(slot int) (joint, second blr.Record) {
	s := &w.ring[slot]
	joint, second = s.stacker, s.second
	if s.joined {
		joint.X = w.z[slot*w.zdim : (slot+1)*w.zdim]
	}
	second.X = w.inputs(slot)
	joint.Y, joint.Phi, second.Y, second.Phi = s.Y, s.Phi, s.Y, s.Phi
	return joint, second
}

// find returns the slot that a withdrawal is about: the newest of this name, with
// this body, that stands; of its own source rather than of another of its tenant.
// Failing that, the error says what is in the way.
func (w *sites) find(key, named, body uint64) (slot int, err error) {
	found, err := -1, errUnknown
	for back := 1; back <= len(w.ring); back++ {
		slot := (w.next - back + SiteWindow) % SiteWindow
		s := &w.ring[slot]
		switch {
		case s.named != named:
		case s.body != body:
			if err == errUnknown {
				err = errOtherBody
			}
		case s.withdrawn:
			err = errWithdrawn
		case s.key == key:
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

// A Receipt says what a withdrawal took out of a model: the head's site, and what
// naive Bayes had counted. A trace stays where learning is no sum: in the weights
// and step sizes of the AdaGrad experts (where it can be most of what had been
// learnt: six copies of one spam withdrawn still left its experts at +4), in the
// running standardisation, in the flip rates, in the log evidence, in the head
// of the noise watch, which forgets it, in the alarms and their window, and in what
// later events were predicted as when they were learnt. Stacker and second head let
// go of it as the head does; an ensemble has it until one is built from a window
// without it, at the next rebuild that starts.
type Receipt struct {
	Site    blr.Receipt // of the head: the site as it stood, KL before‖after, change of ln|V|
	Trust   float64     // the label trust that the event had
	Spam    bool        // the label that was withdrawn
	Counted float64     // the weight that naive Bayes had counted it with; 0: not at all
	Since   int         // how many events of this kind came after it
}

// errors of a withdrawal; each is the reason of a *RefusedError.
var (
	errUnknown   = errors.New("no event of this id is known: it was never learnt, or is older than the window of withdrawals")
	errWithdrawn = errors.New("the event has been withdrawn already")
	errOtherBody = errors.New("the body is not the one that was learnt")
)

// withdraw takes the event in slot out of the sub-model: the head's site as it stands
// now, and what experts counted. It changes nothing if it returns an error.
func (s *submodel) withdraw(slot int, in *features) (Receipt, error) {
	at := &s.sites.ring[slot]
	since := (s.sites.next - 1 - slot + SiteWindow) % SiteWindow
	apply := func() {}
	if s.stack != nil {
		stacker, second := s.sites.stackRecords(slot)
		var err error
		if apply, err = s.stack.Unlearn(stacker, second, since, s.events+1); err != nil {
			return Receipt{}, err
		}
	}
	taken, err := s.head.Unlearn(s.sites.record(slot))
	if err != nil {
		return Receipt{}, err
	}
	apply()
	at.withdrawn = true
	r := Receipt{
		Site: taken, Trust: at.trust, Spam: at.Y > 0, Counted: at.counted,
		Since: since,
	}
	if at.counted > 0 {
		for k, e := range s.experts {
			e.Withdraw(in.views[k], r.Spam, at.counted)
		}
	}
	return r, nil
}

// refresh solves the sites that stand once more, oldest first, under the belief of
// today.
func (s *submodel) refresh() {
	w := &s.sites
	for i := range w.ring {
		slot := i
		if len(w.ring) == SiteWindow {
			slot = (w.next + i) % SiteWindow
		}
		if w.ring[slot].withdrawn {
			continue
		}
		rec := w.record(slot)
		if _, err := s.head.Refresh(&rec); err != nil {
			continue // what cannot be refreshed stays as it is
		}
		rec.X = nil
		w.ring[slot].Record = rec
	}
}

// A slot's bytes, little endian:
//
//	uint64 key | uint64 named | uint64 body | uint64 flags (1: withdrawn, 2: the stacker learnt it)
//	| float64 y, φ, H, Eta, R, ξ, trust, counted | uint64 fades | float64 × dim inputs
//	| with a stack the stacker's float64 H, Eta, R, ξ | uint64 fades | float64 × its inputs, 0 where it did not
//	| with a second head its float64 H, Eta, R, ξ | uint64 fades
const (
	siteFixed  = 8 * 13
	siteBeside = 8 * 5
)

func (w *sites) size() int {
	n := siteFixed + 8*w.dim
	if w.zdim > 0 {
		n += siteBeside + 8*w.zdim
	}
	if w.two {
		n += siteBeside
	}
	return n
}

// append appends the ring, slot by slot, behind the number of the next slot.
func (w *sites) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(w.next))
	for slot := range w.ring {
		s := &w.ring[slot]
		flags := uint64(0)
		if s.withdrawn {
			flags = 1
		}
		if s.joined {
			flags |= 2
		}
		for _, v := range [...]uint64{s.key, s.named, s.body, flags} {
			dst = binary.LittleEndian.AppendUint64(dst, v)
		}
		for _, v := range [...]float64{s.Y, s.Phi, s.H, s.Eta, s.R, s.Xi, s.trust, s.counted} {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
		dst = binary.LittleEndian.AppendUint64(dst, s.Fades)
		for _, v := range w.inputs(slot) {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
		if w.zdim > 0 {
			dst = appendSite(dst, &s.stacker)
			for _, v := range w.z[slot*w.zdim : (slot+1)*w.zdim] {
				dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
			}
		}
		if w.two {
			dst = appendSite(dst, &s.second)
		}
	}
	return dst
}

func appendSite(dst []byte, r *blr.Record) []byte {
	for _, v := range [...]float64{r.H, r.Eta, r.R, r.Xi} {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return binary.LittleEndian.AppendUint64(dst, r.Fades)
}

// restore reads what append wrote.
func (w *sites) restore(b []byte) error {
	if len(b) < 8 || (len(b)-8)%w.size() != 0 {
		return fmt.Errorf("sites: %d bytes, want 8 and %d a site", len(b), w.size())
	}
	n, next := (len(b)-8)/w.size(), binary.LittleEndian.Uint64(b)
	if n > SiteWindow || n < SiteWindow && next != uint64(n) || next >= SiteWindow {
		return fmt.Errorf("sites: %d of at most %d go on at %d", n, SiteWindow, next)
	}
	b = b[8:]
	word := func() uint64 {
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return v
	}
	number := func() float64 { return math.Float64frombits(word()) }
	w.next, w.ring, w.x, w.z = int(next), make([]site, n), make([]float64, n*w.dim), make([]float64, n*w.zdim)
	for slot := range w.ring {
		s := &w.ring[slot]
		s.key, s.named, s.body = word(), word(), word()
		flags := word()
		s.withdrawn, s.joined = flags&1 != 0, flags&2 != 0
		s.Y, s.Phi, s.H, s.Eta, s.R, s.Xi = number(), number(), number(), number(), number(), number()
		s.trust, s.counted = number(), number()
		s.Fades = word()
		x := w.inputs(slot)
		for j := range x {
			x[j] = number()
		}
		beside := func(r *blr.Record) {
			r.H, r.Eta, r.R, r.Xi = number(), number(), number(), number()
			r.Fades = word()
		}
		z := w.z[slot*w.zdim : (slot+1)*w.zdim]
		if w.zdim > 0 {
			beside(&s.stacker)
			for j := range z {
				z[j] = number()
			}
		}
		if w.two {
			beside(&s.second)
		}
		finite := true
		for _, v := range append([]float64{s.H, s.Eta, s.R, s.Xi, s.trust, s.counted,
			s.stacker.H, s.stacker.Eta, s.stacker.R, s.stacker.Xi, s.second.H, s.second.Eta, s.second.R, s.second.Xi}, slices.Concat(x, z)...) {
			finite = finite && math.Abs(v) <= math.MaxFloat64
		}
		for _, v := range x {
			finite = finite && math.Abs(v) <= mostInput
		}
		for _, v := range z {
			finite = finite && math.Abs(v) <= mostAnswer
		}
		if flags > 3 || s.joined && w.zdim == 0 || s.Y != 1 && s.Y != -1 || !(s.Phi > 0 && s.Phi <= 1) || s.H < 0 || s.stacker.H < 0 || s.second.H < 0 || !(s.trust >= 0 && s.trust <= 1) || !(s.counted >= 0 && s.counted <= 1) || !finite {
			return fmt.Errorf("sites: slot %d is not one", slot)
		}
	}
	return nil
}

const (
	// mostInput bounds a head's inputs: experts ±10, dense ±3, facts 30, ln(1+v) of a
	// count 44, the share of spam ±4.7.
	mostInput = 64
	// mostAnswer bounds a stacker's: log-odds of heads, whose squares stay below sane.
	mostAnswer = 1e15
	// mostFades is how often blr's heads may have faded, at every 50th event, since
	// the oldest site that is kept.
	mostFades = SiteWindow / 50
)

// check refuses restored sites that the heads they are sites of have not made: of
// their future, or older than the ring.
func (w *sites) check(head *blr.Posterior, s *stack.Stack) error {
	fits := func(r *blr.Record, p *blr.Posterior) bool {
		return r.Fades <= p.Fades() && p.Fades()-r.Fades <= mostFades
	}
	for slot := range w.ring {
		at := &w.ring[slot]
		if !fits(&at.Record, head) || at.joined && !fits(&at.stacker, s.Stacker()) || w.two && !fits(&at.second, s.Second()) {
			return fmt.Errorf("sites: slot %d was made after %d, %d and %d fadings", slot, at.Fades, at.stacker.Fades, at.second.Fades)
		}
	}
	return nil
}
