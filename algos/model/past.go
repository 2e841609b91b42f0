package model

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A past is the window that ensembles are rebuilt from: a ring of the last events
// of a half. Its capacity is W+R events, so that the W as they stood when a
// rebuild was started are still there when it takes effect.
type past struct {
	dim, limit int
	rows       []row
	inputs     []float32 // limit × dim, by slot
	next       int
}

// A row is an event as an ensemble is taught it.
type row struct {
	label, phi float64 // ±1; the label's trust
	withdrawn  uint64  // the half's event count that would have come next when it was withdrawn, 0: it stands
	id, source string
}

// add keeps an event in place of the oldest if the ring is full. It copies x.
func (p *past) add(r row, x []float64) {
	if len(p.rows) < p.limit {
		p.rows = append(p.rows, row{})
		p.inputs = append(p.inputs, make([]float32, p.dim)...)
	}
	p.rows[p.next] = r
	to := p.inputs[p.next*p.dim : (p.next+1)*p.dim]
	for j, v := range x {
		to[j] = float32(v)
	}
	p.next = (p.next + 1) % p.limit
}

// withdraw marks the event that back others came after, if it is there still; next
// is the half's next event count. A rebuild that was started before it has the
// event all the same.
func (p *past) withdraw(back int, next uint64) {
	if back < len(p.rows) {
		p.rows[(p.next-1-back+2*p.limit)%p.limit].withdrawn = next
	}
}

// last returns copies of the inputs, labels and weights of the n events, or as
// many as there were, that were the latest since events ago. Events withdrawn by
// then weigh nothing; count is the half's event count of that time.
func (p *past) last(n, since int, count uint64) (inputs []float32, labels, weights []float64) {
	have := len(p.rows) - since
	n = min(n, have)
	inputs = make([]float32, 0, n*p.dim)
	labels, weights = make([]float64, 0, n), make([]float64, 0, n)
	for back := since + n - 1; back >= since; back-- {
		slot := (p.next - 1 - back + 2*p.limit) % p.limit
		r := &p.rows[slot]
		inputs = append(inputs, p.inputs[slot*p.dim:(slot+1)*p.dim]...)
		labels = append(labels, r.label)
		weight := r.phi
		if r.withdrawn > 0 && r.withdrawn <= count {
			weight = 0
		}
		weights = append(weights, weight)
	}
	return inputs, labels, weights
}

// The bytes of a past, little endian:
//
//	uint64 next slot | slot by slot: float64 label, φ | uint64 withdrawn | float32 × dim
//	| slot by slot: uint32 length, id | uint32 length, source
const rowFixed = 8 * 3

func (p *past) size() int {
	n := 8 + len(p.rows)*(rowFixed+4*p.dim+8)
	for i := range p.rows {
		n += len(p.rows[i].id) + len(p.rows[i].source)
	}
	return n
}

func (p *past) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.next))
	for slot := range p.rows {
		r := &p.rows[slot]
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(r.label))
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(r.phi))
		dst = binary.LittleEndian.AppendUint64(dst, r.withdrawn)
		for _, v := range p.inputs[slot*p.dim : (slot+1)*p.dim] {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	for slot := range p.rows {
		for _, s := range [...]string{p.rows[slot].id, p.rows[slot].source} {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
			dst = append(dst, s...)
		}
	}
	return dst
}

// restore reads what append wrote after the given number of events of its half.
func (p *past) restore(b []byte, events uint64) error {
	n, fixed := int(min(events, uint64(p.limit))), rowFixed+4*p.dim
	if len(b) < 8+n*(fixed+8) {
		return fmt.Errorf("window: %d bytes for %d rows of %d inputs", len(b), n, p.dim)
	}
	if next := binary.LittleEndian.Uint64(b); next != events%uint64(p.limit) {
		return fmt.Errorf("window: goes on at %d after %d events", next, events)
	}
	p.next = int(events % uint64(p.limit))
	p.rows, p.inputs = make([]row, n), make([]float32, 0, n*p.dim)
	names := b[8+n*fixed:]
	for slot := range p.rows {
		r, at := &p.rows[slot], b[8+slot*fixed:]
		r.label = math.Float64frombits(binary.LittleEndian.Uint64(at))
		r.phi = math.Float64frombits(binary.LittleEndian.Uint64(at[8:]))
		r.withdrawn = binary.LittleEndian.Uint64(at[16:])
		if r.label != 1 && r.label != -1 || !(r.phi > 0 && r.phi <= 1) || r.withdrawn > events+1 {
			return fmt.Errorf("window: slot %d is no event", slot)
		}
		for j := range p.dim {
			v := math.Float32frombits(binary.LittleEndian.Uint32(at[rowFixed+4*j:]))
			if !(math.Abs(float64(v)) <= math.MaxFloat32) {
				return fmt.Errorf("window: slot %d holds %v", slot, v)
			}
			p.inputs = append(p.inputs, v)
		}
		for _, s := range [...]*string{&r.id, &r.source} {
			if len(names) < 4 || uint64(binary.LittleEndian.Uint32(names)) > uint64(len(names)-4) {
				return fmt.Errorf("window: a name of slot %d is cut short", slot)
			}
			n := 4 + int(binary.LittleEndian.Uint32(names))
			*s, names = string(names[4:n]), names[n:]
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("window: %d bytes too many", len(names))
	}
	return nil
}
