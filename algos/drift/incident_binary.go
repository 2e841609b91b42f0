package drift

import (
	"fmt"

	"hamlet/algos/internal/codec"
)

// The bytes of Incidents, version 1. Integers and float64 bits are little-endian.
//
//	offset  size  field
//	0       4     "hdin"
//	4       1     version, 1
//	5       1     the sum of 1 if a suspicion came to nothing and its signs stay, and of 2 if
//	              the concept alarm has stood since an incident was cleared
//	6       2     zero
//	8       120   the walks, 40 each: events | x̄, s², U | events since it went up
//	128     8     count of the last accusation
//	136     8     E, the events since τ that are kept
//	144     17·E  for each, oldest first: p of spam, q_c, label: 1 for spam
//	        for the suspicion, and the incidents about labels, mail and the world:
//	        8     number, 0 if it is not open; then nothing follows
//	        16    transitions, count of the last one
//	        1     0 if nobody is accused, 1 if somebody is, 2 if so and its kind is source
//	        4, n  length of the accused source, the source
const incidentsMagic = "hdin"

// The bits of byte 5.
const (
	spentBit = 1 << iota
	explainedBit
)

// incidents returns where incidents can be, in the order of the bytes.
func (n *Incidents) incidents() [1 + namedSlots]*incident {
	return [...]*incident{&n.suspicion, &n.named[aboutLabels], &n.named[aboutMail], &n.named[aboutWorld]}
}

// incidentKinds are the kinds in this order, unless a source is accused.
var incidentKinds = [...]string{KindUnknown, KindLabelNoise, KindCovariate, KindConcept}

// AppendBinary appends the bytes of n. The error is always nil.
func (n *Incidents) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Header(incidentsMagic, version)
	signs := uint8(0)
	if n.spent {
		signs |= spentBit
	}
	if n.explained {
		signs |= explainedBit
	}
	w.Uint8(signs)
	w.Zeros(2)
	for i := range n.walks {
		n.walks[i].write(w)
	}
	w.Uint64(n.accused, uint64(len(n.recent)))
	for _, c := range n.recent {
		w.Float64(c.prob, c.credulous)
		w.Bool(c.spam)
	}
	for _, i := range n.incidents() {
		w.Uint64(i.number)
		if i.open() {
			w.Uint64(uint64(i.transitions), i.since)
			accused := uint8(0)
			if i.accused {
				accused++
			}
			if i.kind == KindSource {
				accused++
			}
			w.Uint8(accused)
			w.Text(i.source)
		}
	}
	return w.Finish()
}

// UnmarshalBinary sets n, which may be the zero value, to the state in b. It keeps no
// reference to b. n continues, to the bit, as if it had never been saved. If b is invalid,
// the error wraps ErrFormat and n is unchanged.
func (n *Incidents) UnmarshalBinary(b []byte) error {
	var q Incidents
	r := codec.NewReader(b, ErrFormat)
	r.Header(incidentsMagic, version)
	signs := r.Uint8()
	if signs > spentBit|explainedBit {
		r.Fail("signs %d", signs)
	}
	q.spent, q.explained = signs&spentBit > 0, signs&explainedBit > 0
	r.Zeros(2)
	for i := range q.walks {
		q.walks[i].read(r, walkRules[i])
	}
	q.accused = r.Uint64()
	q.readRecent(r)
	for k, i := range q.incidents() {
		i.read(r, incidentKinds[k])
	}
	most := mostBack
	if q.suspicion.open() {
		most = mostContests - 1
		q.weigh()
	}
	switch {
	case q.suspicion.open() && (q.spent || q.anyNamed() || q.suspicion.transitions != 1):
		r.Fail("a suspicion of %d transitions beside a name", q.suspicion.transitions)
	case len(q.recent) > most:
		r.Fail("%d events since a change, at most %d", len(q.recent), most)
	case q.accused > mostSeen, q.accused == 0 && q.named[aboutLabels].accused:
		r.Fail("an accusation at %d", q.accused)
	case q.sharedNumber():
		r.Fail("two incidents have one number")
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("incidents: %w", err)
	}
	*n = q
	return nil
}

// sharedNumber reports whether two open incidents have one number. At most one is opened at an
// event, so no two have.
func (n *Incidents) sharedNumber() bool {
	all := n.incidents()
	for k, i := range all {
		for _, j := range all[:k] {
			if i.open() && i.number == j.number {
				return true
			}
		}
	}
	return false
}

func (n *Incidents) readRecent(r *codec.Reader) {
	events := r.Uint64()
	if !r.Fits(events, 17) {
		return
	}
	n.recent = make([]contest, events)
	for i := range n.recent {
		c := &n.recent[i]
		r.FiniteTo(&c.prob, &c.credulous)
		c.spam = r.Bool()
		if !isProbability(c.prob) || c.credulous != 0 && !(c.credulous >= mixed(0) && c.credulous <= mixed(1)) {
			r.Fail("probabilities %v and %v of an event", c.prob, c.credulous)
			return
		}
	}
}

func (i *incident) read(r *codec.Reader, kind string) {
	i.number = r.Uint64()
	if !i.open() {
		return
	}
	i.transitions, i.since = int(min(r.Uint64(), mostTransitions+1)), r.Uint64()
	i.kind = kind
	accused := r.Uint8()
	i.accused = accused > 0
	if accused == 2 {
		i.kind = KindSource
	}
	i.source = r.Text()
	least, most := i.transitionBounds()
	if i.number > mostSeen || i.since > mostSeen || i.since == 0 || i.transitions < least || i.transitions > most ||
		len(i.source) > mostSource || accused > 2 || i.accused && kind != KindLabelNoise || !i.accused && i.source != "" {
		r.Fail("%s incident %d of %d transitions, the last at %d", i.kind, i.number, i.transitions, i.since)
	}
}
