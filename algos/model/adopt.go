package model

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// maxAdoptions bounds what is recorded. Two learners of different configurations that
// take turns adopt at every turn, and a configuration of 4,096 dense names is some 50 KB.
const maxAdoptions = 32

// An Adoption records that a model went on under another configuration or with other
// numerics. It answers why a model says other things than a replay of its log.
type Adoption struct {
	Events   uint64 `json:"events"`   // the event count when it happened
	Config   Config `json:"config"`   // until then
	Numerics string `json:"numerics"` // until then
}

// Adopt makes m go on under cfg and with this program's numerics. The model records
// what was before, the last 32 times; if nothing differs, nothing. Only fields that are
// Adoptable may differ: they need neither a table nor a head made again. A shorter
// DuplicateWindow keeps the latest events; a longer one cannot recover older ones. Other
// differences are an error that names them, and m is unchanged.
func (m *Model) Adopt(cfg Config) error {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("adopt configuration: %w", err)
	}
	if d := cfg.differences(m.cfg, true); len(d) > 0 {
		return fmt.Errorf("adopt configuration: a model of %d events cannot change %s; leave these as they were, or start a new model",
			m.events, strings.Join(d, "; "))
	}
	if len(cfg.Differences(m.cfg)) == 0 && m.numerics == numerics() {
		return nil
	}
	m.adoptions = append(m.adoptions, Adoption{Events: m.events, Config: m.cfg, Numerics: m.numerics})
	m.adoptions = slices.Clone(m.adoptions[max(0, len(m.adoptions)-maxAdoptions):])
	if cfg.DuplicateWindow != m.cfg.DuplicateWindow {
		m.seen.Resize(cfg.DuplicateWindow)
	}
	m.cfg, m.numerics = cfg, numerics()
	for _, s := range m.submodels {
		if s != nil && s.monitor != nil {
			if err := s.monitor.Retune(s.monitorConfig(cfg.Alarms)); err != nil {
				panic(err) // validate has passed the thresholds
			}
		}
	}
	return nil
}

// Adoptions returns what m has adopted, in order, the last 32 times.
func (m *Model) Adoptions() []Adoption { return slices.Clone(m.adoptions) }

// mathematics is the version of everything that turns a log into a model's bytes.
// Whoever changes a formula, a constant or an order of summation there raises it.
const mathematics = 10

func numerics() string { return fmt.Sprintf("%d %s", mathematics, runtime.GOARCH) }
