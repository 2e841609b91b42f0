package drift

import "errors"

// errRetuned says that more than thresholds would change.
var errRetuned = errors.New("drift: an alarm can take other thresholds, but no other windows: its state depends on them")

// Retune gives n the thresholds of cfg: Drop, Confirmed, FlipRate and Clear. They apply
// from the next Check on. The error says what is wrong with cfg, or that it differs in
// something else.
func (n *LabelNoise) Retune(cfg LabelNoiseConfig) error {
	if err := cfg.fill(); err != nil {
		return err
	}
	same := cfg
	same.Drop, same.Confirmed, same.FlipRate, same.Clear = n.cfg.Drop, n.cfg.Confirmed, n.cfg.FlipRate, n.cfg.Clear
	if same != n.cfg {
		return errRetuned
	}
	n.cfg = cfg
	return nil
}

// Retune gives c the Threshold of cfg, from the next event on. The error says what is
// wrong with cfg, or that it differs in something else.
func (c *Covariate) Retune(cfg CovariateConfig) error {
	if err := cfg.fill(); err != nil {
		return err
	}
	same := cfg
	same.Threshold = c.cfg.Threshold
	if same != c.cfg {
		return errRetuned
	}
	c.cfg = cfg
	return nil
}

// Retune gives p the Threshold of cfg, from the next event on. An excess beyond it
// counts as the threshold. The error says what is wrong with cfg, or that it differs in
// something else.
func (p *PageHinkley) Retune(cfg PageHinkleyConfig) error {
	if err := cfg.fill(); err != nil {
		return err
	}
	same := cfg
	same.Threshold = p.cfg.Threshold
	if same != p.cfg {
		return errRetuned
	}
	p.cfg = cfg
	p.excess = min(p.excess, cfg.Threshold)
	return nil
}
