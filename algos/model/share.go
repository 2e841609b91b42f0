package model

import (
	"fmt"

	"hamlet/algos/text"
)

// ShareTables lets m read the experts' tables of twin and drops its own, some 28 MB with the
// defaults. twin has learnt what m has, and does not change as long as m lives. The next event that
// m learns or withdraws has it copy them first, which takes some 40 ms. Neither m's bytes nor its
// answers change. It reports whether m has dropped any; it does not if it shares them already.
func (m *Model) ShareTables(twin *Model) (dropped bool) {
	if m.events != twin.events {
		return false
	}
	for k, s := range m.submodels {
		t := twin.submodels[k]
		if s == nil || t == nil || s.experts == nil || t.experts == nil || s.shared ||
			s.events != t.events || s.tablesSize() != t.tablesSize() {
			continue
		}
		s.experts, s.tables, s.shared = t.experts, t.tables, true
		dropped = true
	}
	return dropped
}

// ownTables gives s tables of its own again, with what the shared ones hold.
func (s *submodel) ownTables() {
	if !s.shared {
		return
	}
	experts, tables := text.Experts(s.entries, s.cfg.TableBits)
	var b []byte
	for k, e := range s.experts {
		var err error
		if b, err = e.AppendBinary(b[:0]); err == nil {
			err = experts[k].UnmarshalBinary(b)
		}
		if err != nil {
			panic(fmt.Errorf("copy the table of %s: %w", s.entries[k].Name, err)) // it was read so
		}
	}
	s.experts, s.tables, s.shared = experts, tables, false
}
