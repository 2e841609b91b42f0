package drift

import "errors"

// errRetuned says that more than thresholds would change.
var errRetuned = errors.New("drift: an alarm can take other thresholds, but nothing else: its state depends on that")

// Retune gives n the thresholds of cfg. They apply from the next Check on. Dim must be that
// of n.
func (n *LabelNoise) Retune(cfg LabelNoiseConfig) error {
	if err := cfg.fill(); err != nil {
		return err
	}
	if cfg.Dim != n.cfg.Dim {
		return errRetuned
	}
	n.cfg = cfg
	return nil
}

// Retune gives c the Threshold of cfg, from the next event on. Window must be that of c.
func (c *Covariate) Retune(cfg CovariateConfig) error {
	if err := cfg.fill(); err != nil {
		return err
	}
	if cfg.Window != c.cfg.Window {
		return errRetuned
	}
	c.cfg = cfg
	return nil
}

// Retune gives p the Threshold of cfg, from the next event on. Clip must be that of p. If U
// is greater, it becomes the threshold.
func (p *PageHinkley) Retune(cfg PageHinkleyConfig) error {
	if err := cfg.fill(); err != nil {
		return err
	}
	if cfg.Clip != p.cfg.Clip {
		return errRetuned
	}
	p.cfg = cfg
	p.excess = min(p.excess, p.cfg.Threshold)
	return nil
}
