package drift

import (
	"errors"
	"fmt"
	"math"
)

// A PageHinkleyConfig tunes the concept alarm. Zero fields mean the defaults given.
// MEASURED.md has the delays and false alarms of several thresholds.
type PageHinkleyConfig struct {
	Clip      float64 // a larger loss counts as Clip nats; 0 is 3
	Threshold float64 // λ, nats; 0 is 28
}

const (
	lossTolerance = 0.02   // δ, nats an event: a smaller rise of the loss is no change
	lossMemory    = 10_000 // the mean is over about this many events
	lossQuiet     = 500    // U stays 0 for so many events
	lossSettle    = 3_000  // after this many events an alarm ends, and the new loss is the reference
)

// Fill sets the defaults of cfg. The error names every wrong field.
func (cfg *PageHinkleyConfig) Fill() error {
	setDefault(&cfg.Clip, 3)
	setDefault(&cfg.Threshold, 28)
	return errors.Join(
		checkNumber("page–hinkley: clip", cfg.Clip, 1e-3, 1e6),
		checkNumber("page–hinkley: threshold", cfg.Threshold, 1e-3, 1e9),
	)
}

func setDefault[T int | float64](field *T, to T) {
	if *field == 0 {
		*field = to
	}
}

func checkNumber(what string, v, low, high float64) error {
	if !(v >= low && v <= high) {
		return fmt.Errorf("drift: %s is %v: want %g to %g", what, v, low, high)
	}
	return nil
}

// A PageHinkley is the concept alarm: the test of Page and Hinkley on the log
// loss of predictions made before their labels were learnt. With x the loss,
// clipped, and x̄ its mean so far (x included),
//
//	m ← m + x − x̄ − δ,   U = m − min m = max(0, U + x − x̄ − δ),
//	δ = .02 · max(1, s²/¼),
//
// with s² the variance of x about x̄. It is raised when U > λ: the losses have exceeded
// x̄ + δ by λ nats in sum. (Page, Continuous inspection schemes, 1954; Hinkley, Inference
// about the change-point from cumulative sum tests, 1971; the two forms of U are equal.)
// Three things differ from the papers:
//
//   - x̄ and s² are weighted means of about the last 10,000 events.
//   - Nothing is raised before 500 events, while the model learns.
//   - δ grows with the variance. An excursion of a walk with drift −δ and variance s²
//     exceeds λ with a probability near e^(−2δλ/s²). With a constant δ, a stream with many
//     false labels (variance 1 and more) would raise it often. ¼ is a little more than the
//     variance of a clean pass over spambase (.2), for which λ was measured.
//
// While it is raised, x̄ does not change and U is at most λ. It clears when U ≤ λ/2: after
// λ/2δ events as good as before, fewer if they are better. It also clears after 3,000
// events: U becomes 0, and x̄ and s² become those of the events after the first 1,500.
//
// Its Status has U as level and λ as threshold, both in nats summed over events,
// and x̄, in nats an event, as reference.
type PageHinkley struct {
	cfg    PageHinkleyConfig
	events uint64  // in x̄: those observed while it was not raised
	mean   float64 // x̄
	spread float64 // s²
	excess float64 // U
	raised bool
	since  uint64

	// Of the events since it was raised. Invariant: 0 while it is not raised.
	spell  uint64  // their number
	later  float64 // the sum of x over those after lossSettle/2
	square float64 // the sum of x² over these
}

// calmVariance is the variance of losses up to which δ is the tolerance.
const calmVariance = 0.25

// tolerance is δ.
func (p *PageHinkley) tolerance() float64 {
	return float64(lossTolerance * max(1, p.spread/calmVariance))
}

// NewPageHinkley returns the alarm before any event. The error names every wrong field.
func NewPageHinkley(cfg PageHinkleyConfig) (*PageHinkley, error) {
	if err := cfg.Fill(); err != nil {
		return nil, err
	}
	return &PageHinkley{cfg: cfg}, nil
}

// Observe takes the log loss, in nats, of event number count. It reports whether the loss
// raised or cleared the alarm. It panics if the loss is NaN or negative. O(1).
func (p *PageHinkley) Observe(count uint64, loss float64) (changed bool) {
	if !(loss >= 0) {
		panic(fmt.Sprintf("drift: a log loss of %v", loss))
	}
	x := min(loss, p.cfg.Clip)
	if p.raised {
		return p.observeRaised(count, x)
	}
	p.events++
	n, before := float64(min(p.events, lossMemory)), x-p.mean
	p.mean += before / n
	p.spread = max(0, p.spread+(float64(before*(x-p.mean))-p.spread)/n)
	if p.events <= lossQuiet {
		return false
	}
	p.excess = max(0, p.excess+(x-p.mean-p.tolerance()))
	if p.excess <= p.cfg.Threshold {
		return false
	}
	p.raised, p.since, p.excess = true, count, p.cfg.Threshold
	p.spell, p.later, p.square = 0, 0, 0
	return true
}

func (p *PageHinkley) observeRaised(count uint64, x float64) (changed bool) {
	p.spell++
	const middle = lossSettle / 2
	if p.spell > middle {
		p.later += x
		p.square += float64(x * x)
	}
	p.excess = min(p.cfg.Threshold, max(0, p.excess+(x-p.mean-p.tolerance())))
	switch {
	case p.excess <= p.cfg.Threshold/2:
	case p.spell >= lossSettle:
		p.events = p.spell - middle
		p.mean = p.later / float64(p.events)
		p.spread = max(0, p.square/float64(p.events)-float64(p.mean*p.mean))
		p.events = max(p.events, lossQuiet)
		p.excess = 0
	default:
		return false
	}
	p.raised, p.since, p.spell, p.later, p.square = false, count, 0, 0, 0
	return true
}

// Status returns the alarm as it stands.
func (p *PageHinkley) Status() Status {
	return Status{
		Raised: p.raised, Since: p.since, Known: p.events > 0,
		Level: p.excess, Reference: p.mean, Threshold: p.cfg.Threshold,
	}
}

// Events returns the number of events in the mean, at most the number observed.
func (p *PageHinkley) Events() uint64 { return p.events }

// The 120 bytes of a PageHinkley, version 1. Integers and float64 bits are little-endian.
//
//	offset  size  field
//	0       4     "hdph"
//	4       1     version, 1
//	5       1     1 if raised, else 0
//	6       2     zero
//	8       24    Clip, δ, Threshold
//	32      24    lossMemory, lossQuiet, lossSettle, uint64
//	56      8     events
//	64      16    x̄, U
//	80      8     since
//	88      8     spell
//	96      8     sum of the later losses
//	104     16    s², sum of the later losses' squares
const pageHinkleyMagic = "hdph"

// AppendBinary appends the bytes of p. The error is always nil.
func (p *PageHinkley) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst, pageHinkleyMagic, p.raised)
	w.Float64(p.cfg.Clip, lossTolerance, p.cfg.Threshold)
	w.Uint64(lossMemory, lossQuiet, lossSettle, p.events)
	w.Float64(p.mean, p.excess)
	w.Uint64(p.since, p.spell)
	w.Float64(p.later, p.spread, p.square)
	return w.Finish()
}

// UnmarshalBinary sets p, which has been made with the same configuration, to the alarm in b.
// It keeps no reference to b. The alarm continues, to the bit, as if it had never been saved.
// If b is invalid or has another configuration, the error wraps ErrFormat and p is unchanged.
func (p *PageHinkley) UnmarshalBinary(b []byte) error {
	q := PageHinkley{cfg: p.cfg}
	r, raised := newReader(b, pageHinkleyMagic)
	q.raised = raised
	expect(r, nil, []float64{p.cfg.Clip, lossTolerance, p.cfg.Threshold})
	expect(r, []uint64{lossMemory, lossQuiet, lossSettle}, nil)
	r.Uint64To(&q.events)
	r.FiniteTo(&q.mean, &q.excess)
	r.Uint64To(&q.since, &q.spell)
	r.FiniteTo(&q.later, &q.spread, &q.square)
	if q.events > mostSeen || q.since > mostSeen {
		r.Fail("a mean of %d events, changed at %d", q.events, q.since)
	}
	if !(q.mean >= 0 && q.mean <= q.cfg.Clip && q.excess >= 0 && q.excess <= q.cfg.Threshold) ||
		!(q.later >= 0 && q.later <= float64(q.cfg.Clip*lossSettle)) ||
		!(q.spread >= 0 && q.spread <= float64(q.cfg.Clip*q.cfg.Clip)) ||
		!(q.square >= 0 && q.square <= float64(float64(q.cfg.Clip*q.cfg.Clip)*lossSettle)) ||
		q.spell > lossSettle || !q.raised && (q.spell > 0 || math.Float64bits(q.later)|math.Float64bits(q.square) != 0) {
		r.Fail("mean %v, variance %v, excess %v, spell %d", q.mean, q.spread, q.excess, q.spell)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("page–hinkley: %w", err)
	}
	*p = q
	return nil
}
