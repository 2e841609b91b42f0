// Package access says who may see and do what in the web console.
package access

import (
	"context"
	"fmt"
	"strings"
)

// A Role is a set of rights. Whoever has one of them may look.
type Role uint8

// Look shows figures, names and verdicts. Label shows the content of mail too, and takes
// labels. Operate acknowledges, pins, withdraws and says how far a source is believed.
const (
	Look Role = 1 << iota
	Label
	Operate
)

var roleNames = []struct {
	role Role
	name string
}{{Look, "look"}, {Label, "label"}, {Operate, "operate"}}

// ParseRoles reads names of roles with commas between. The result has Look.
func ParseRoles(s string) (Role, error) {
	roles := Look
next:
	for name := range strings.SplitSeq(s, ",") {
		for _, r := range roleNames {
			if strings.TrimSpace(name) == r.name {
				roles |= r.role
				continue next
			}
		}
		return 0, fmt.Errorf("role %q is not known: it is look, label or operate", strings.TrimSpace(name))
	}
	return roles, nil
}

// String returns the names of the roles with commas between.
func (r Role) String() string {
	var names []string
	for _, known := range roleNames {
		if r&known.role != 0 {
			names = append(names, known.name)
		}
	}
	return strings.Join(names, ",")
}

// A User is who asks.
type User struct {
	Name string
	Role Role // all roles of the user

	// Session names the login. It is no secret, and it changes with each login.
	Session string
	// FormToken is what a form of this session has to send back. It is a secret.
	FormToken string
}

// May reports whether u has the role.
func (u User) May(r Role) bool { return u.Role&r == r }

type userKey struct{}

// WithUser returns a context of a request by u.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// FromContext returns who asks; nobody has no role.
func FromContext(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}
