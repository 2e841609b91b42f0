package model

import (
	"fmt"
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
		return &RefusedError{fmt.Sprintf("the name of a source has %d bytes, more than %d, or is not UTF-8", len(source), mostSourceName)}
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
