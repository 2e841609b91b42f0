package stack

import (
	"hamlet/algos/ensemble"
	"hamlet/algos/internal/codec"
)

// A window is a ring of the last W+R events, from which ensembles are rebuilt. A rebuild
// uses the W events before its start. The ring still has them when the rebuild takes effect.
type window struct {
	dim, limit int
	rounds     int // at most, of an ensemble
	rows       []slot
	inputs     []float32 // len(rows) × dim, by slot
	next       int       // where the next event goes: len(rows) until the ring is full
}

// A Row is an event as an ensemble learns it, without its inputs.
type Row struct {
	Label, Phi float64 // ±1; the label's trust
	ID, Source string
}

type slot struct {
	Row
	withdrawn uint64 // the next event count at its withdrawal; 0: it was not withdrawn
}

// add adds an event. In a full ring it replaces the oldest. It copies x.
func (w *window) add(r Row, x []float64) {
	if len(w.rows) < w.limit {
		w.rows = append(w.rows, slot{})
		w.inputs = append(w.inputs, make([]float32, w.dim)...)
	}
	w.rows[w.next] = slot{Row: r}
	to := w.inputs[w.next*w.dim : (w.next+1)*w.dim]
	for j, v := range x {
		to[j] = float32(v)
	}
	w.next = (w.next + 1) % w.limit
}

// at returns the slot of the event that was followed by back others.
func (w *window) at(back int) int { return (w.next - 1 - back + 2*w.limit) % w.limit }

// withdraw marks the event that was followed by back others, if the ring still has it. next
// is the next event count: rebuilds started before it keep the event.
func (w *window) withdraw(back int, next uint64) {
	if back < len(w.rows) {
		w.rows[w.at(back)].withdrawn = next
	}
}

// last returns a copy of the n latest events at event count count, which is since events
// ago, or of all if there were fewer. Events withdrawn by then have weight 0.
func (w *window) last(n, since int, count uint64) *ensemble.Window {
	n = min(n, len(w.rows)-since)
	out := &ensemble.Window{
		Dim: w.dim, Rounds: w.rounds, Inputs: make([]float32, 0, n*w.dim), Labels: make([]float64, 0, n),
		Weights: make([]float64, 0, n),
	}
	for back := since + n - 1; back >= since; back-- {
		i := w.at(back)
		r := &w.rows[i]
		weight := r.Phi
		if r.withdrawn > 0 && r.withdrawn <= count {
			weight = 0
		}
		out.Inputs = append(out.Inputs, w.inputs[i*w.dim:(i+1)*w.dim]...)
		out.Labels, out.Weights = append(out.Labels, r.Label), append(out.Weights, weight)
	}
	return out
}

// The bytes of a window:
//
//	uint64 next slot | slot by slot: float64 label, φ | uint64 withdrawn | float32 × dim
//	| slot by slot: uint32 length, id | uint32 length, source
const rowFixed = 8 * 3

func (w *window) size() int {
	n := 8 + len(w.rows)*(rowFixed+4*w.dim+8)
	for i := range w.rows {
		n += len(w.rows[i].ID) + len(w.rows[i].Source)
	}
	return n
}

func (w *window) write(to *codec.Writer) {
	to.Uint64(uint64(w.next))
	for i := range w.rows {
		r := &w.rows[i]
		to.Float64(r.Label, r.Phi)
		to.Uint64(r.withdrawn)
		to.Float32(w.inputs[i*w.dim : (i+1)*w.dim]...)
	}
	for i := range w.rows {
		to.Text(w.rows[i].ID)
		to.Text(w.rows[i].Source)
	}
}

// read reads what write wrote after the given number of events.
func (w *window) read(r *codec.Reader, events uint64) {
	next, n := r.Uint64(), min(events, uint64(w.limit))
	if next != events%uint64(w.limit) {
		r.Fail("window: goes on at %d after %d events", next, events)
	}
	if !r.Fits(n, rowFixed+4*w.dim+8) {
		return
	}
	w.next = int(next)
	w.rows, w.inputs = make([]slot, n), make([]float32, int(n)*w.dim)
	for i := range w.rows {
		at := &w.rows[i]
		at.Label, at.Phi, at.withdrawn = r.Float64(), r.Float64(), r.Uint64()
		r.Fill32(w.inputs[i*w.dim : (i+1)*w.dim])
		if at.Label != 1 && at.Label != -1 || !(at.Phi > 0 && at.Phi <= 1) || at.withdrawn > events+1 {
			r.Fail("window: slot %d is not an event", i)
		}
	}
	for i := range w.rows {
		w.rows[i].ID, w.rows[i].Source = r.Text(), r.Text()
	}
}
