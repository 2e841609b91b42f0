package drift

import (
	"fmt"
	"math"
	"slices"
)

// rows are the last inputs of one class, in float32. Row i, counted from the
// first ever, is at slot i modulo limit.
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

// An Event is what the noise watch needs of a labelled event.
type Event struct {
	// X are the inputs, of length Dim, finite. Numbers beyond float32 count as its
	// largest. Only their order matters, so give columns as they are: running
	// standardisation would move old rows against new.
	X        []float64
	Label    float64 // as given: +1 is spam, −1 ham
	Prob     float64 // q in [0, 1], what a head with forgetting gave to the label before it learnt it
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

// A witness is what names suspects and sources: the part of a recent event that a
// report needs.
type witness struct {
	label, prob float64
	id, source  string
}

// recent are the last limit events, a ring once it is full.
type recent struct {
	limit int
	ring  []witness
	next  int // the oldest, once it is full
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
