package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxAdoptions bounds the record. Two learners that alternate with different
// configurations adopt every time, and one with 4,096 dense names takes some 50 KB.
const maxAdoptions = 32

// An Adoption records a change of a model's configuration or numerics. It explains why a
// model differs from a replay of its log.
type Adoption struct {
	Events   uint64 `json:"events"`   // the event count at the change
	Config   Config `json:"config"`   // before the change
	Numerics string `json:"numerics"` // before the change
}

// Adopt changes m to cfg and to this program's numerics, and records the last 32 changes.
// Only Adoptable fields may differ: they need no new table or head. Other differences are
// an error that names them, and m is unchanged. WithoutSources can only become shorter. A
// shorter DuplicateWindow keeps the latest events; a longer one cannot recover older ones.
func (m *Model) Adopt(cfg Config) error {
	if cfg = cfg.filled(); cfg.frozen == nil && cfg.Frozen == m.cfg.Frozen {
		cfg.frozen = m.cfg.frozen
	}
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("adopt configuration: %w", err)
	}
	if d := cfg.differences(m.cfg, true); len(d) > 0 {
		return fmt.Errorf("adopt configuration: a model of %d events cannot change %s; "+
			"leave these as they were, or start a new model",
			m.events, strings.Join(d, "; "))
	}
	if err := cfg.leavesOutMore(m.cfg); err != nil {
		return fmt.Errorf("adopt configuration: %w", err)
	}
	if len(cfg.Differences(m.cfg)) == 0 && m.numerics == numerics() {
		return nil
	}
	m.adoptions = append(m.adoptions, Adoption{Events: m.events, Config: m.cfg, Numerics: m.numerics})
	m.adoptions = slices.Clone(m.adoptions[max(0, len(m.adoptions)-maxAdoptions):])
	if cfg.DuplicateWindow != m.cfg.DuplicateWindow {
		m.seen.Resize(cfg.DuplicateWindow)
		m.labels.Resize(cfg.DuplicateWindow)
	}
	m.cfg, m.numerics, m.setAside = cfg, numerics(), keysOf(&cfg)
	for _, s := range m.submodels {
		if s != nil && s.monitor != nil {
			if err := s.monitor.Retune(s.monitorConfig(cfg.Alarms)); err != nil {
				panic(err) // validate has passed the thresholds
			}
		}
	}
	return nil
}

// Adoptions returns the last 32 changes by Adopt, in order.
func (m *Model) Adoptions() []Adoption { return slices.Clone(m.adoptions) }

// mathematics is the version of all code that turns a log into a model's bytes. Raise it
// when you change a formula, a constant or an order of summation there.
const mathematics = 15

// numerics names the version alone: all processors make the same bytes.
func numerics() string { return strconv.Itoa(mathematics) }
