package stack

import (
	"math"

	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/logistic"
)

// A Gate decides which of two answers is served: the head's, or the stack's. It compares
// their log losses on the events learnt, each predicted before it was learnt (prequential
// log loss). For an event of label y and trust φ, with the log-odds h of the head's answer
// and b of the stack's,
//
//	d = φ·clip(ln σ(yb) − ln σ(yh))      D ← γD + d, at most ±mostLead      (2)
//
// in nats, where clip limits to ±clipLead. D is the stack's lead. An event moves the gate
// after it was answered:
//
//	              D > opensAbove
//	closed ────────────────────────> open      It is closed before the first event.
//	       <────────────────────────
//	              D < closesBelow
//
// Without φ and clip, exp D would be the Bayes factor of the stack against the head over
// the last 1/(1−γ) events (Kass and Raftery, Bayes factors, 1995; above e² they call it
// positive evidence). φ keeps false labels from deciding. clip keeps single events from
// deciding. Because D is bounded, the gate follows a change in time (as Page's test does).
//
// What is served loses little to the head: over any events that the stack answers in a row,
// the sum of −d is at most mostLead + clipLead, and from an opening on at most opensAbove +
// 2·clipLead. Proof: D ≥ closesBelow = 0 until the last of these events, so that forgetting
// and the bound only lower D, and the sum of d is at least D's change. D was at most
// mostLead before, and opensAbove + clipLead after an opening. It ends at −clipLead or above.
// The full log loss has no such bound: an answer may be wrong by more than clip counts.
//
// A withdrawal leaves the gate unchanged.
type Gate struct {
	Open bool
	Lead float64 // D, in nats

	// Since is the event count at which the gate last moved, 0 if it never has. Served
	// counts the events learnt that the stack answered. Invariants: Since = 0 only if the
	// gate is closed and Served = 0; while it is open, all events after Since are in Served.
	Since, Served uint64
}

// MEASURED.md compares other values.
const (
	gateMemory  = 0.9995 // γ
	clipLead    = 0.5    // nats
	opensAbove  = 2.0    // nats
	closesBelow = 0.0    // nats
	mostLead    = 4.0    // nats: as far from opensAbove as that is from closesBelow
)

// observe absorbs the answers to an event, in log-odds. y is ±1. count is the event count
// after it.
func (g *Gate) observe(a Answers, y, φ float64, count uint64) {
	if g.Open {
		g.Served++
	}
	d := logistic.LogSigmoid(y*a.Stack) - logistic.LogSigmoid(y*a.Head)
	switch {
	case !(d >= -clipLead): // also ∞ − ∞
		d = -clipLead
	case d > clipLead:
		d = clipLead
	}
	g.Lead = min(max(float64(gateMemory*g.Lead)+float64(φ*d), -mostLead), mostLead)
	if g.Open && g.Lead < closesBelow || !g.Open && g.Lead > opensAbove {
		g.Open, g.Since = !g.Open, count
	}
}

// write appends
//
//	float64 D | uint64 open: 0 or 1 | uint64 since | uint64 served
func (g *Gate) write(w *codec.Writer) {
	w.Float64(g.Lead)
	open := uint64(0)
	if g.Open {
		open = 1
	}
	w.Uint64(open, g.Since, g.Served)
}

func (g *Gate) read(r *codec.Reader) {
	g.Lead = r.Float64()
	open := r.Uint64()
	r.Uint64To(&g.Since, &g.Served)
	g.Open = open == 1
	if open > 1 {
		r.Fail("gate: open is %d, want 0 or 1", open)
	}
}

// check makes r fail if g cannot be the gate after the given number of events. ready says
// whether every ensemble has been built: before, no event moves the gate.
func (g *Gate) check(r *codec.Reader, events uint64, ready bool) {
	latest := uint64(0) // the events after Since that the stack answered
	if g.Open && g.Since <= events {
		latest = events - g.Since
	}
	switch {
	case !(math.Abs(g.Lead) <= mostLead), g.Open && g.Lead < closesBelow, !g.Open && g.Lead > opensAbove:
		r.Fail("gate: open is %v with a lead of %v nats", g.Open, g.Lead)
	case g.Since > events, g.Since == 0 && (g.Open || g.Served > 0), g.Since > 0 && !g.Open && g.Served == 0,
		g.Served < latest, g.Served-latest > g.Since:
		r.Fail("gate: open is %v since event %d, and %d of %d events were served", g.Open, g.Since, g.Served, events)
	case !ready && *g != Gate{}:
		r.Fail("gate: it has moved before every ensemble was built")
	}
}
