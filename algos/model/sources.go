package model

import (
	"fmt"

	"hamlet/algos/trust"
)

// MostRoles is how many sources an operator can give a role other than trust.Ordinary.
const MostRoles = 256

// SetRole says how labels of a source count from the next event on. It is part of the
// model's bytes and no event: it does not move the clock.
func (m *Model) SetRole(source string, role trust.Role) error {
	_, known := m.roles[source]
	switch {
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
