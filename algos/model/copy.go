package model

import "hamlet/algos/text"

// Copy returns a model with m's bytes, which goes on as m would. The two share the experts' tables, of 28 MB with
// the defaults, until one of them learns or withdraws an event: it copies them first. So a copy that learns nothing
// never changes. It is an error after a *PanicError.
func (m *Model) Copy() (*Model, error) {
	e, err := m.encode()
	if err != nil {
		return nil, err
	}
	for _, s := range m.submodels {
		if s == nil || s.experts == nil {
			continue
		}
		if s.copies == nil {
			s.copies = new(int)
		}
		*s.copies++
	}
	return made(&e.sections, m)
}

// Reclaim takes back the tables of a Copy of m, which has learnt nothing. If m had
// shared them only with it, they are m's own again. If m has left them to it and keep is true, the tables that m needs
// for itself after the next Copy are these, and not new memory. c must not be used any more.
func (m *Model) Reclaim(c *Model, keep bool) {
	for k, s := range m.submodels {
		from := c.submodels[k]
		if s == nil || from == nil || from.copies == nil {
			continue
		}
		if *from.copies--; *from.copies == 0 && from.copies != s.copies && keep &&
			s.tablesSize() == from.tablesSize() {
			s.spare = from
		}
		from.copies = nil
	}
}

// Forget drops what Reclaim kept, and reports whether there was any.
func (m *Model) Forget() (any bool) {
	for _, s := range m.submodels {
		if s != nil && s.spare != nil {
			s.spare, any = nil, true
		}
	}
	return any
}

// ownTables gives s tables that no other model has, with what the shared ones hold.
func (s *submodel) ownTables() {
	if s.copies == nil || *s.copies == 0 {
		return
	}
	experts, tables := s.experts, s.tables
	if s.spare != nil {
		s.experts, s.tables, s.spare = s.spare.experts, s.spare.tables, nil
	} else {
		s.newExperts()
	}
	text.Copy(s.experts, s.tables, experts, tables)
	s.copies = nil
}
