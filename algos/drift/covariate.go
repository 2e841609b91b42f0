package drift

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// A CovariateConfig tunes the covariate alarm. Zero fields mean the defaults given.
// MEASURED.md has their false alarms.
type CovariateConfig struct {
	Window    int     // events that the level remembers, less than covariateMemory; 0 is 30
	Threshold float64 // of the level, in units of s; 0 is 0.65
}

const (
	covariateMemory = 2_000 // events that the reference remembers
	covariateQuiet  = 500   // no alarm before so many events

	// Residuals are clipped at ±3 units: one message moves the level by at most a tenth.
	clipResidual = 3
	// The scale is at least a tenth of a nat: a change of the leverage by less than 10 %
	// is normal, even if the past was constant.
	leastScale = 0.1
	// E|z| = √(2/π) under the standard normal, so that the scale of a normal ln a
	// is its standard deviation.
	perDeviation = 1.2533141373155001
	// After t events the reference remembers at most about t/4 of them. The leverage of a
	// head that does not forget falls as 1/t, and a longer memory would lag.
	youth = 4
	// Logarithms of leverages are clipped at ±farthestLog.
	farthestLog = 100
)

// Fill sets the defaults of cfg. The error names every wrong field.
func (cfg *CovariateConfig) Fill() error {
	setDefault(&cfg.Window, 30)
	setDefault(&cfg.Threshold, 0.65)
	err := checkNumber("covariate: threshold", cfg.Threshold, 1e-3, clipResidual)
	if cfg.Window < 1 || cfg.Window >= covariateMemory {
		err = errors.Join(err, fmt.Errorf("drift: covariate: a window of %d events: want 1 to %d",
			cfg.Window, covariateMemory-1))
	}
	return err
}

// A Covariate is the alarm for mail unlike anything learnt. The head's leverage
// of an event, a = xᵀVx, is the variance of its log-odds before it is learnt. V is small
// along directions that many events have shown, and as wide as the prior along new
// ones. With ℓ = ln a, a reference μ, a scale s and
//
//	d = clip((ℓ − μ)/s, ±3)
//
// an event moves, in this order,
//
//	L ← L + (d − b − L)/Window
//	μ ← μ + r·s·d,   b ← b + r·(d − b),   r = max(1/memory, 4/(4+t))
//	s ← max(0.1, s + r·(1.2533·min(|ℓ−μ|, 3s) − s))
//
// after t events; the last line uses the old μ. μ is Huber's location of ln a in the past
// (Huber, Robust estimation of a location parameter, 1964) by stochastic approximation.
// s is a standard deviation from absolute deviations. L is how far the last Window
// events lie above that past, in units of one event's spread. The width of the prior
// does not matter, because ℓ is a logarithm. One odd message moves L by 3/Window at
// most, so that only a run of them raises the alarm. On a stationary stream L has mean 0
// and a standard deviation of about √(1/2Window) = 0.1.
//
// A model may give the surprise of naive Bayes (package text) in the place of ln a: see
// [Covariate.ObserveLog].
//
// It is raised when L > Threshold and clears when L ≤ Threshold/2. Falling leverage
// raises nothing. μ and s also change while it is raised. So it clears after about
// 2,000 events even if the new mail is never learnt.
//
// Its Status has L as level, in units of s, and μ, in nats, as reference.
type Covariate struct {
	cfg       CovariateConfig
	events    uint64
	reference float64 // μ
	scale     float64 // s
	lasting   float64 // b
	level     float64 // L
	raised    bool
	since     uint64
}

// NewCovariate returns the alarm before any event. The error names every wrong field.
func NewCovariate(cfg CovariateConfig) (*Covariate, error) {
	if err := cfg.Fill(); err != nil {
		return nil, err
	}
	return &Covariate{cfg: cfg, scale: 1}, nil
}

// Observe takes the leverage a = xᵀVx of event number count, from before it was learnt.
// It reports whether a raised or cleared the alarm. It panics if a is NaN or negative.
// 0 and +Inf count as e^∓100. O(1).
func (c *Covariate) Observe(count uint64, a float64) (changed bool) {
	if !(a >= 0) {
		panic(fmt.Sprintf("drift: a leverage of %v", a))
	}
	return c.ObserveLog(count, logistic.Log(a))
}

// ObserveLog is Observe for ℓ = ln a in nats, or for a surprise ℓ. It panics if ℓ is NaN
// and clips it at ±100. O(1).
func (c *Covariate) ObserveLog(count uint64, ℓ float64) (changed bool) {
	if math.IsNaN(ℓ) {
		panic("drift: a leverage without a logarithm")
	}
	ℓ = max(-farthestLog, min(farthestLog, ℓ))
	if c.events == 0 {
		c.reference = ℓ
	}
	rate := max(1.0/covariateMemory, youth/(youth+float64(c.events)))
	c.events++
	off := ℓ - c.reference
	d := max(-clipResidual, min(clipResidual, off/c.scale))
	c.level += (d - c.lasting - c.level) / float64(c.cfg.Window)
	c.reference += float64(rate * float64(c.scale*d))
	c.lasting += float64(rate * (d - c.lasting))
	spread := float64(perDeviation * min(math.Abs(off), float64(clipResidual*c.scale)))
	c.scale = max(leastScale, c.scale+float64(rate*(spread-c.scale)))

	was := c.raised
	switch {
	case c.events < covariateQuiet:
	case c.raised:
		c.raised = c.level > c.cfg.Threshold/2
	default:
		c.raised = c.level > c.cfg.Threshold
	}
	if c.raised != was {
		c.since = count
	}
	return c.raised != was
}

// Status returns the alarm as it stands.
func (c *Covariate) Status() Status {
	return Status{
		Raised: c.raised, Since: c.since, Known: c.events > 0,
		Level: c.level, Reference: c.reference, Threshold: c.cfg.Threshold,
	}
}

// Events returns how many events have been observed.
func (c *Covariate) Events() uint64 { return c.events }

// The 88 bytes of a Covariate, version 1. Integers and float64 bits are little-endian.
//
//	offset  size  field
//	0       4     "hdcv"
//	4       1     version, 1
//	5       1     1 if raised, else 0
//	6       2     zero
//	8       24    the reference's memory, Window, the quiet events, uint64
//	32      8     Threshold
//	40      8     events
//	48      32    μ, s, b, L
//	80      8     since
const covariateMagic = "hdcv"

// AppendBinary appends the bytes of c. The error is always nil.
func (c *Covariate) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst, covariateMagic, c.raised)
	w.Uint64(c.wholes()...)
	w.Float64(c.cfg.Threshold)
	w.Uint64(c.events)
	w.Float64(c.reference, c.scale, c.lasting, c.level)
	w.Uint64(c.since)
	return w.Finish()
}

// wholes returns the whole numbers of the configuration in the order of the bytes.
func (c *Covariate) wholes() []uint64 {
	return []uint64{covariateMemory, uint64(c.cfg.Window), covariateQuiet}
}

// UnmarshalBinary sets c, which has been made with the same configuration, to the alarm in b.
// It keeps no reference to b. The alarm continues, to the bit, as if it had never been saved.
// If b is invalid or has another configuration, the error wraps ErrFormat and c is unchanged.
func (c *Covariate) UnmarshalBinary(b []byte) error {
	q := Covariate{cfg: c.cfg}
	r, raised := newReader(b, covariateMagic)
	q.raised = raised
	expect(r, c.wholes(), []float64{c.cfg.Threshold})
	r.Uint64To(&q.events)
	r.FiniteTo(&q.reference, &q.scale, &q.lasting, &q.level)
	r.Uint64To(&q.since)
	const most = 2 * farthestLog
	if q.events > mostSeen || q.since > mostSeen {
		r.Fail("%d events, changed at %d", q.events, q.since)
	}
	if !(math.Abs(q.reference) <= most && q.scale >= leastScale && q.scale <= 2*most &&
		math.Abs(q.lasting) <= 1.001*clipResidual && math.Abs(q.level) <= 2.001*clipResidual) {
		r.Fail("reference %v, scale %v, level %v", q.reference, q.scale, q.level)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("covariate: %w", err)
	}
	*c = q
	return nil
}
