// Laboratory: only hamlet fit, hamlet bench and tests reach this file.

package drift

import (
	"errors"
	"math"
)

// A DDMConfig tunes a DDM. Zero fields mean the defaults given, which are the
// paper's.
type DDMConfig struct {
	Warning float64 // warning level, in standard deviations; 0 is 2
	Drift   float64 // drift level, at least Warning; 0 is 3
	Least   int     // no state but InControl before so many events: what the normal approximation needs; 0 is 30
}

func (cfg *DDMConfig) fill() error {
	setDefault(&cfg.Warning, 2)
	setDefault(&cfg.Drift, 3)
	setDefault(&cfg.Least, 30)
	err := errors.Join(
		checkNumber("ddm: warning level", cfg.Warning, 1e-3, 1e6),
		checkNumber("ddm: drift level", cfg.Drift, 1e-3, 1e6),
		checkSpan("ddm: least", cfg.Least, 1),
	)
	if err == nil {
		err = checkNumber("ddm: drift level", cfg.Drift, cfg.Warning, 1e6)
	}
	return err
}

// A DDMLevel is what a DDM says of a stream.
type DDMLevel uint8

const (
	InControl    DDMLevel = iota
	Warning               // a change may have begun here: the paper keeps events from here on
	OutOfControl          // it has: the paper learns again from the events since the warning
)

// A DDM is the drift detection method of Gama, Medas, Castillo and Rodrigues
// (Learning with drift detection, 2004, section 3), a peer that the alarms are
// measured against. With p the rate of wrong predictions among the n events of
// a context and s = √(p(1−p)/n), it keeps p and s of where p + s was least, and
//
//	p + s > p_min + 2·s_min   is the warning level,
//	p + s > p_min + 3·s_min   the drift level.
//
// While a model learns p falls, and the minimum with it; if it fits the stream
// no longer p rises. Two departures, because where p = 0 there is s = 0 too, and
// both levels would be reached by an event that nothing is wrong with, or by the
// first wrong one: the comparisons are strict, where the paper has ≥, and no
// minimum is taken before the first wrong prediction of a context.
//
// It says what it says until [DDM.Reset], by which its owner begins a new context.
type DDM struct {
	cfg           DDMConfig
	events, wrong int
	least, spread float64 // p_min, s_min
}

// NewDDM returns a detector before any event. The error joins every field that is
// wrong.
func NewDDM(cfg DDMConfig) (*DDM, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	d := &DDM{cfg: cfg}
	d.Reset()
	return d, nil
}

// Observe takes whether an event was predicted wrong, and returns the level after
// it. O(1).
func (d *DDM) Observe(wrong bool) DDMLevel {
	d.events++
	if wrong {
		d.wrong++
	}
	if d.events < d.cfg.Least || d.wrong == 0 {
		return InControl
	}
	p, s := d.Rate()
	if p+s < d.least+d.spread {
		d.least, d.spread = p, s
	}
	switch {
	case p+s > d.least+float64(d.cfg.Drift*d.spread):
		return OutOfControl
	case p+s > d.least+float64(d.cfg.Warning*d.spread):
		return Warning
	}
	return InControl
}

// Rate returns p, the rate of wrong predictions in this context, and its standard
// deviation s; both are 0 before the first event.
func (d *DDM) Rate() (p, s float64) {
	if d.events == 0 {
		return 0, 0
	}
	p = float64(d.wrong) / float64(d.events)
	return p, math.Sqrt(p * (1 - p) / float64(d.events))
}

// Reset begins a new context: what was seen is forgotten.
func (d *DDM) Reset() {
	d.events, d.wrong = 0, 0
	d.least, d.spread = math.Inf(1), 0
}
