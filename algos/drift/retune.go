package drift

import "errors"

// errRetuned says that more than thresholds would change.
var errRetuned = errors.New("drift: an alarm can take other thresholds, but no other windows: its state depends on them")

// retune fills in the defaults of to and sets cfg to it. The two may differ only in the
// fields that thresholds returns.
func retune[C comparable](cfg *C, to C, fill func(*C) error, thresholds func(*C) []*float64) error {
	if err := fill(&to); err != nil {
		return err
	}
	same := to
	old := thresholds(cfg)
	for i, field := range thresholds(&same) {
		*field = *old[i]
	}
	if same != *cfg {
		return errRetuned
	}
	*cfg = to
	return nil
}

// Retune gives n the thresholds of cfg: Drop, Confirmed, FlipRate and Clear. They apply
// from the next Check on. All other fields must be those that n has.
func (n *LabelNoise) Retune(cfg LabelNoiseConfig) error {
	return retune(&n.cfg, cfg, (*LabelNoiseConfig).fill, func(c *LabelNoiseConfig) []*float64 {
		return []*float64{&c.Drop, &c.Confirmed, &c.FlipRate, &c.Clear}
	})
}

// Retune gives c the Threshold of cfg, from the next event on, as [LabelNoise.Retune] does.
func (c *Covariate) Retune(cfg CovariateConfig) error {
	return retune(&c.cfg, cfg, (*CovariateConfig).fill, func(c *CovariateConfig) []*float64 {
		return []*float64{&c.Threshold}
	})
}

// Retune gives p the Threshold of cfg, from the next event on, as [LabelNoise.Retune] does.
// If U is greater, it becomes the threshold.
func (p *PageHinkley) Retune(cfg PageHinkleyConfig) error {
	err := retune(&p.cfg, cfg, (*PageHinkleyConfig).fill, func(c *PageHinkleyConfig) []*float64 {
		return []*float64{&c.Threshold}
	})
	if err == nil {
		p.excess = min(p.excess, p.cfg.Threshold)
	}
	return err
}
