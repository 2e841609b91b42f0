package detect

import (
	"cmp"
	"errors"
	"math"
)

// A DDMConfig tunes a DDM. Zero fields mean the defaults given, which are the
// paper's.
type DDMConfig struct {
	Warning float64 // warning level, in standard deviations; 0 is 2
	Drift   float64 // drift level, at least Warning; 0 is 3
	Least   int     // events before the first other level than InControl, for the normal approximation; 0 is 30
}

func (cfg *DDMConfig) fill() error {
	cfg.Warning = cmp.Or(cfg.Warning, 2)
	cfg.Drift = cmp.Or(cfg.Drift, 3)
	cfg.Least = cmp.Or(cfg.Least, 30)
	err := errors.Join(
		check("ddm: warning level", cfg.Warning, 1e-3, 1e6),
		check("ddm: drift level", cfg.Drift, 1e-3, 1e6),
		check("ddm: least", cfg.Least, 1, most),
	)
	if err == nil {
		err = check("ddm: drift level", cfg.Drift, cfg.Warning, 1e6)
	}
	return err
}

// A DDMLevel is a DDM's judgement of a stream.
type DDMLevel uint8

const (
	InControl    DDMLevel = iota
	Warning               // a change may have begun here: the paper keeps events from here on
	OutOfControl          // a change has happened: the paper learns again from the events since the warning
)

// A DDM is the drift detection method of Gama, Medas, Castillo and Rodrigues
// (Learning with drift detection, 2004, section 3), to compare the alarms with.
// With p the rate of wrong predictions among the n events of a context and
// s = √(p(1−p)/n), it keeps the p and s for which p + s was least, and
//
//	p + s > p_min + 2·s_min   is the warning level,
//	p + s > p_min + 3·s_min   the drift level.
//
// While a model learns, p and the minimum fall. If the model no longer fits, p rises.
// Two things differ from the paper, because p = 0 makes s = 0 and then any event would
// reach both levels. The comparisons are strict (the paper has ≥). No minimum is taken
// before the first wrong prediction of a context. [DDM.Reset] begins a new context.
type DDM struct {
	cfg           DDMConfig
	events, wrong int
	least, spread float64 // p_min, s_min
}

// NewDDM returns a detector before any event. The error names every wrong field.
func NewDDM(cfg DDMConfig) (*DDM, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	d := &DDM{cfg: cfg}
	d.Reset()
	return d, nil
}

// Observe takes whether an event was predicted wrong. It returns the level. O(1).
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

// Reset begins a new context, without events.
func (d *DDM) Reset() {
	d.events, d.wrong = 0, 0
	d.least, d.spread = math.Inf(1), 0
}
