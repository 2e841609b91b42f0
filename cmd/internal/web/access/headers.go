package access

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// contentSecurity lets a page load what this server has, and run no script that stands in the
// page itself.
const contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets what every answer has. A handler may change how long its answer is kept.
func (g *Guard) setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurity)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if g.cfg.TLS {
		// A browser then speaks TLS to every port of this name. So the subdomains are left out.
		h.Set("Strict-Transport-Security", "max-age=2592000")
	}
}

// knowsHost reports whether the console is known by a Host header. A page elsewhere, whose
// name its owner lets point to this machine, sends that name (DNS rebinding). An IP address
// points nowhere else.
func (g *Guard) knowsHost(host string) bool {
	name, ok := hostName(host)
	if !ok {
		return false
	}
	if slices.ContainsFunc(g.cfg.Hosts, func(known string) bool { return strings.EqualFold(known, name) }) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	literal := err == nil
	switch {
	case g.loopback:
		return strings.EqualFold(name, "localhost") || literal && ip.Unmap().IsLoopback()
	case literal:
		return true
	default:
		// By another name a browser finds no certificate for it.
		return g.cfg.TLS && len(g.cfg.Hosts) == 0
	}
}

// hostName returns a host without its port and brackets.
func hostName(host string) (string, bool) {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.TrimSuffix(host, "."), host != "" && len(host) <= 255
}
