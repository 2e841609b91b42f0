package drift

import (
	"fmt"
	"math"
	"slices"
)

// rows are the last inputs of one class. Event i of the class is at slot i modulo limit.
type rows struct {
	dim, limit int
	seen       uint64
	data       []float32
}

// slot returns row i, one of the last limit.
func (r *rows) slot(i uint64) []float32 {
	at := int(i%uint64(r.limit)) * r.dim
	return r.data[at : at+r.dim]
}

func (r *rows) add(x []float64) {
	if r.seen < uint64(r.limit) {
		r.data = slices.Grow(r.data, r.dim)[:len(r.data)+r.dim]
	}
	row := r.slot(r.seen)
	for j, v := range x {
		row[j] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, v)))
	}
	r.seen++
}

// held returns the number of rows.
func (r *rows) held() int { return int(min(r.seen, uint64(r.limit))) }

// appendLast appends to dst the n rows before row end, oldest first.
func (r *rows) appendLast(dst []float32, end uint64, n int) []float32 {
	for i := end - uint64(n); i < end; i++ {
		dst = append(dst, r.slot(i)...)
	}
	return dst
}

// An Event is what the label-noise alarm needs of a labelled event.
type Event struct {
	// X are the inputs, of length Dim, finite, clipped to float32. Only their order
	// matters. Do not standardise them: that would shift old rows against new ones.
	X        []float64
	Label    float64 // as given: +1 is spam, −1 ham
	Prob     float64 // q in [0, 1], the label's probability by a head with forgetting, before the event
	FlipRate float64 // ε in [0, 1] of the same head, after this event
	ID       string
	Source   string // who gave the label
}

// check panics unless e is an event of dim inputs.
func (e *Event) check(dim int) {
	if len(e.X) != dim {
		panic(fmt.Sprintf("drift: %d inputs, want %d", len(e.X), dim))
	}
	for j, v := range e.X {
		if !(math.Abs(v) <= math.MaxFloat64) {
			panic(fmt.Sprintf("drift: input %d is %v", j, v))
		}
	}
	if e.Label != 1 && e.Label != -1 || !isProbability(e.Prob) || !isProbability(e.FlipRate) {
		panic(fmt.Sprintf("drift: label %v, probability %v, flip rate %v", e.Label, e.Prob, e.FlipRate))
	}
}

func isProbability(v float64) bool { return v >= 0 && v <= 1 }

// class returns 0 for ham and 1 for spam.
func class(label float64) int {
	if label > 0 {
		return 1
	}
	return 0
}

// A witness is the part of a recent event that a report needs.
type witness struct {
	label, prob float64
	id, source  string
}

// recent is a ring of the last limit events.
type recent struct {
	limit int
	ring  []witness
	next  int // index of the oldest event in a full ring, else 0
}

func (r *recent) add(w witness) {
	if len(r.ring) < r.limit {
		r.ring = append(r.ring, w)
		return
	}
	r.ring[r.next] = w
	r.next = (r.next + 1) % r.limit
}

// oldest returns the events in the order in which they came.
func (r *recent) oldest() []witness {
	return slices.Concat(r.ring[r.next:], r.ring[:r.next])
}

// of returns how many of the events have this source.
func (r *recent) of(source string) (n int) {
	for i := range r.ring {
		if r.ring[i].source == source {
			n++
		}
	}
	return n
}
