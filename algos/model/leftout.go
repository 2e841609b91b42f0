package model

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"hamlet/algos/sites"
)

// MostLeftOut is how many sources [Config.WithoutSources] can name.
const MostLeftOut = 256

// LeftOut returns the number of events of [Config.WithoutSources]. They are among
// [Model.Events], so that the clock of a model without a source is that of a model with it. Only
// withdrawals of their events by other sources move it no more: they are refused.
func (m *Model) LeftOut() uint64 { return m.leftOut }

// LeavesOut reports whether the events of a source change nothing but the clock.
func (m *Model) LeavesOut(source string) bool {
	_, found := slices.BinarySearch(m.cfg.WithoutSources, source)
	return found
}

// Withdrawable returns nil if an Unlearn event could withdraw ex.Of now. If not, the error
// is a [*RefusedError] or a [*Defect], or wraps sites.ErrUnknown, ErrWithdrawn or ErrOtherBody. It
// changes nothing. ex has what the Unlearn event would have.
func (m *Model) Withdrawable(ex *Example) (err error) {
	if err := m.Check(&ex.Body); err != nil {
		return err
	}
	s := m.submodel(&ex.Body)
	if s == nil {
		return sites.ErrUnknown
	}
	defer m.own.vectorizer.defect(new(Effect), &err)
	_, err = m.find(ex, m.own.vectorizer.read(&ex.Body, s).bodyHashes().all)
	return err
}

// checkWithoutSources returns what is wrong with the names.
func (c Config) checkWithoutSources() (errs []error) {
	if n := len(c.WithoutSources); n > MostLeftOut {
		errs = append(errs, fmt.Errorf("without_sources: %d names, more than %d", n, MostLeftOut))
	}
	for _, name := range c.WithoutSources {
		if name == "" || len(name) > mostSourceName || !utf8.ValidString(name) {
			errs = append(errs, fmt.Errorf("without_sources: %s is not the name of a source", quote(name)))
		}
	}
	return errs
}

// leavesOutMore returns an error if c leaves out a source that a model with another
// configuration has learnt from.
func (c Config) leavesOutMore(model Config) error {
	for _, name := range c.WithoutSources {
		if !slices.Contains(model.WithoutSources, name) {
			return fmt.Errorf("without_sources: what source %s has taught would stay: "+
				"make a new model without it under another name", quote(name))
		}
	}
	return nil
}
