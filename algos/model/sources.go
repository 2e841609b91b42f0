package model

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"hamlet/algos/trust"
)

// MostRoles is how many sources an operator can give a role other than trust.Ordinary.
const MostRoles = 256

// mostSourceName is the longest name of a source that an event has, in bytes.
const mostSourceName = 256

// SetRole says how labels of a source count from the next event on. It is part of the
// model's bytes and no event: it does not move the clock. It is a [*RefusedError] if no
// event has such a source, if there is no such role, or if MostRoles sources have one.
func (m *Model) SetRole(source string, role trust.Role) error {
	_, known := m.roles[source]
	switch {
	case role > trust.Muted:
		return &RefusedError{fmt.Sprintf("role %d is unknown", role)}
	case len(source) > mostSourceName || !utf8.ValidString(source):
		return &RefusedError{fmt.Sprintf("the name of a source has %d bytes, more than %d, or is not UTF-8",
			len(source), mostSourceName)}
	case role == trust.Ordinary:
		delete(m.roles, source)
	case !known && len(m.roles) >= MostRoles:
		return &RefusedError{fmt.Sprintf("%d sources have roles already: make some of them ordinary", MostRoles)}
	default:
		if m.roles == nil {
			m.roles = map[string]trust.Role{}
		}
		m.roles[source] = role
	}
	return nil
}

// Role returns the role of a source.
func (m *Model) Role(source string) trust.Role { return m.roles[source] }

// A Source is a source of labels of one kind of body, or one that has a role and is not
// known to have given any.
type Source struct {
	trust.Source
	Body string // BodyText or BodyVector; "": it has only a role
	Role trust.Role
}

// Sources returns the sources of labels, those with most labels first. The name of a source
// without a role is cut after 64 bytes.
func (m *Model) Sources() (all []Source) {
	names, roles := map[uint64]string{}, map[uint64]trust.Role{}
	for name, role := range m.roles {
		key := trust.SourceKey(name)
		names[key], roles[key] = name, role
	}
	for k, s := range m.submodels {
		if s == nil {
			continue
		}
		for _, from := range s.labels.Sources(roles, m.cfg.Standing == StandingAgreement) {
			if name, ok := names[from.Key]; ok {
				from.Name, from.Cut = name, false
			}
			all = append(all, Source{Source: from, Body: bodies[k], Role: roles[from.Key]})
		}
	}
	for key, name := range names {
		if !slices.ContainsFunc(all, func(s Source) bool { return s.Key == key }) {
			all = append(all, Source{Source: trust.Source{Name: name, Key: key}, Role: roles[key]})
		}
	}
	slices.SortFunc(all, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Labels, a.Labels), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Body, b.Body))
	})
	return all
}
