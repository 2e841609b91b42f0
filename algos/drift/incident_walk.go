package drift

import "hamlet/algos/internal/codec"

// A walk is the test of Page and Hinkley (see [PageHinkley]) on one sign of change, a number
// from 0 to 1. Its threshold grows with the variance s² of that number:
//
//	U ← max(0, U + x − x̄ − δ),  δ = .02·max(1, s²/¼),  up when U > base·(1 + slope·s²)
//
// x̄ and s² are over about the last 10,000 events. While a walk is up, U is at most the
// threshold, and x̄ and s² of all walks do not change. It is down again when U = 0. When one has
// been up for 3,000 events, all walks start from the beginning: the present x becomes normal.
type walk struct {
	events uint64  // in x̄, at most walkMemory
	mean   float64 // x̄
	spread float64 // s²
	excess float64 // U. Invariant: at most the threshold; 0 before walkQuiet events
	spell  uint64  // events since it went up, that one included; 0: it is down
}

const (
	walkTolerance = 0.02
	walkMemory    = 10_000
	walkQuiet     = 500
	walkSettle    = 3_000 // events up
)

// A walkRule is the threshold of a walk.
type walkRule struct{ base, slope float64 }

// The walks, in the order of Incidents.walks. MEASURED.md has their delays.
var walkRules = [...]walkRule{
	{1.2, 200}, // 1 − φ, the doubt in a label by the head of the label-noise alarm
	{1.6, 100}, // the same doubt, computed with the constant flip rate doubtRate
	{5, 12},    // 1 − q of the head that predicts
}

func (r walkRule) threshold(w *walk) float64 {
	return float64(r.base * (1 + float64(r.slope*w.spread)))
}

func (w *walk) up() bool { return w.spell > 0 }

// observe takes the next x. still says that some walk is up.
func (w *walk) observe(x float64, r walkRule, still bool) {
	if !still || w.events < walkQuiet {
		w.events = min(w.events+1, walkMemory)
		n, before := float64(w.events), x-w.mean
		w.mean += before / n
		w.spread = max(0, w.spread+(float64(before*(x-w.mean))-w.spread)/n)
	}
	if w.events < walkQuiet {
		return
	}
	δ := float64(walkTolerance * max(1, w.spread/calmVariance))
	w.excess = max(0, w.excess+(x-w.mean-δ))
	most := r.threshold(w)
	if w.up() || w.excess > most {
		w.excess = min(w.excess, most)
		w.spell++
	}
	if w.up() && w.excess == 0 {
		w.spell = 0
	}
}

// The 40 bytes of a walk: events | x̄, s², U | spell.
func (w *walk) write(to *codec.Writer) {
	to.Uint64(w.events)
	to.Float64(w.mean, w.spread, w.excess)
	to.Uint64(w.spell)
}

func (w *walk) read(r *codec.Reader, rule walkRule) {
	r.Uint64To(&w.events)
	r.FiniteTo(&w.mean, &w.spread, &w.excess)
	r.Uint64To(&w.spell)
	if w.events > walkMemory || !isProbability(w.mean) || !isProbability(w.spread) || w.spell > walkSettle ||
		!(w.excess >= 0 && w.excess <= rule.threshold(w)) || w.events < walkQuiet && (w.excess > 0 || w.up()) ||
		w.up() && w.excess == 0 {
		r.Fail("a walk of %d events: mean %v, variance %v, excess %v, %d events up",
			w.events, w.mean, w.spread, w.excess, w.spell)
	}
}
