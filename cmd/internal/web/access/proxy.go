package access

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Proxy is what stands between browsers and the console. Only its addresses are heard.
type Proxy struct {
	From        []netip.Prefix // the proxy's own addresses
	UserHeader  string         // in which it names who has logged in; empty: users log in here
	RolesHeader string         // in which it names roles; empty: the file of users has them
}

// parseProxies reads addresses and prefixes.
func parseProxies(all []string) (out []netip.Prefix, err error) {
	for _, s := range all {
		p, err := netip.ParsePrefix(s)
		if a, bad := netip.ParseAddr(s); err != nil && bad == nil {
			a = a.Unmap().WithZone("")
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is no IP address and no prefix such as 192.0.2.0/24", s)
		case p.Bits() == 0:
			return nil, fmt.Errorf("%q is every address: name those of the proxy", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func (p *Proxy) is(a netip.Addr) bool {
	for _, from := range p.From {
		if from.Contains(a) {
			return true
		}
	}
	return false
}

// client returns the address of the browser: the last in X-Forwarded-For that is not a
// proxy's. A browser writes what it likes before it.
func (p *Proxy) client(peer netip.Addr, h http.Header) (netip.Addr, error) {
	if !p.is(peer) {
		return peer, sentence("Only the proxy of --behind-proxy may open the console. Use the proxy's address.")
	}
	hops := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		a, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		if a = a.Unmap().WithZone(""); !p.is(a) {
			return a, nil
		}
	}
	return peer, nil
}

// maxProxyName bounds the name of a user of the proxy, in bytes.
const maxProxyName = 128

// user returns whom the proxy names. A header that stands twice was written by two: by the
// browser, and by the proxy behind it.
func (p *Proxy) user(h http.Header, users *Users) (User, error) {
	names := h.Values(p.UserHeader)
	switch {
	case len(names) == 0 || names[0] == "":
		return User{}, sentencef("The proxy did not say who you are: it sent no header %s.", p.UserHeader)
	case len(names) > 1:
		return User{}, cameTwice(p.UserHeader)
	case !plainName(names[0]):
		return User{}, sentence("The proxy sent a name that the console does not take: " +
			"at most 128 bytes, without control characters.")
	}
	u := User{Name: names[0]}
	if p.RolesHeader == "" {
		l, ok := users.find(u.Name)
		if !ok {
			return User{}, sentencef("You are %s, who has no role here. A line of the file of --users gives one.", u.Name)
		}
		u.Role = l.roles
		return u, nil
	}
	all := h.Values(p.RolesHeader)
	if len(all) > 1 {
		return User{}, cameTwice(p.RolesHeader)
	}
	if len(all) == 1 {
		u.Role = knownRoles(all[0])
	}
	if u.Role == 0 {
		return User{}, sentencef("You are %s, who has no role here. The proxy names roles in the header %s: "+
			"look, label, operate.", u.Name, p.RolesHeader)
	}
	return u, nil
}

func cameTwice(header string) error {
	return sentencef("The header %s came twice. The proxy must replace what a browser sends.", header)
}

// knownRoles returns the roles in a list with commas. A proxy may name its own groups too.
func knownRoles(list string) (roles Role) {
	for name := range strings.SplitSeq(list, ",") {
		if r, err := ParseRoles(name); err == nil {
			roles |= r
		}
	}
	return roles
}

// plainName reports whether a name can be shown and audited as it is.
func plainName(name string) bool {
	if len(name) > maxProxyName || !utf8.ValidString(name) || strings.TrimSpace(name) != name {
		return false
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
