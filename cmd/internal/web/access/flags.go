package access

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

// Flags say who may come into the console.
type Flags struct {
	Users       string   `help:"File of users, name:bcrypt:roles (hamlet console user). Read again when it changes." type:"existingfile" placeholder:"FILE"`
	BehindProxy []string `help:"Addresses or prefixes of a proxy with TLS. The console then hears the proxy alone." placeholder:"ADDR"`
	UserHeader  string   `help:"Header in which that proxy names the user, such as X-Remote-User." placeholder:"NAME"`
	RolesHeader string   `help:"Header in which it names roles: look, label, operate. Without it --users names them." placeholder:"NAME"`
	Host        []string `help:"Name by which browsers know the console. May repeat." placeholder:"NAME"`
}

var headerName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)
})

// Check reports what contradicts another flag, or the address at which the console listens.
func (f Flags) Check(addr string, tls bool) error {
	proxies, err := parseProxies(f.BehindProxy)
	if err != nil {
		err = cli.Usagef("--behind-proxy: %v", err)
	}
	errs := []error{err, CheckListen(addr, tls, len(proxies) > 0)}
	if f.UserHeader != "" && len(f.BehindProxy) == 0 {
		errs = append(errs, cli.Usagef("--user-header: everybody can send a header; say with --behind-proxy whose counts"))
	}
	if f.RolesHeader != "" && f.UserHeader == "" {
		errs = append(errs, cli.Usagef("--roles-header: give --user-header too"))
	}
	if f.UserHeader != "" && f.RolesHeader == "" && f.Users == "" {
		errs = append(errs, cli.Usagef("--user-header: nobody would have a role; "+
			"give --roles-header, or the roles of users with --users"))
	}
	if f.UserHeader != "" && len(f.Host) == 0 {
		errs = append(errs, cli.Usagef("--user-header: give --host too, the name by which browsers know the console"))
	}
	for _, h := range []string{f.UserHeader, f.RolesHeader} {
		if h != "" && !headerName().MatchString(h) {
			errs = append(errs, cli.Usagef("%q is no name of a header", h))
		}
	}
	taken := []string{http.CanonicalHeaderKey(f.RolesHeader), "Cookie", "Host", "Origin"}
	if f.UserHeader != "" && slices.Contains(taken, http.CanonicalHeaderKey(f.UserHeader)) {
		errs = append(errs, cli.Usagef("--user-header %s: that header says something else", f.UserHeader))
	}
	for _, h := range f.Host {
		if _, _, err := net.SplitHostPort(h); err == nil || h == "" || len(h) > 255 {
			errs = append(errs, cli.Usagef("--host %q: a name without a port is wanted", h))
		}
	}
	return errors.Join(errs...)
}

// CheckListen reports an address at which passwords or sessions would cross the network in
// clear text.
func CheckListen(addr string, tls, behindProxy bool) error {
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return cli.Usagef("the console's address %s: host:port is wanted, such as 127.0.0.1:8080", addr)
	case tls || behindProxy || settings.Loopback(addr):
		return nil
	case host == "":
		host = "every address"
	}
	return cli.Usagef("the console at %s can be reached from other machines, and passwords would cross the network "+
		"in clear text: listen on this machine alone (127.0.0.1:%s); or serve HTTPS; "+
		"or name a proxy with TLS with --behind-proxy", host, port)
}

// Config returns the guard's configuration, once Check has found nothing. It reads the file
// of users.
func (f Flags) Config(addr string, tls bool, log *slog.Logger) (Config, error) {
	cfg := Config{Addr: addr, TLS: tls, Hosts: f.Host, Log: log}
	if len(f.BehindProxy) > 0 {
		from, err := parseProxies(f.BehindProxy)
		if err != nil {
			return cfg, cli.Usagef("--behind-proxy: %v", err)
		}
		cfg.Proxy = &Proxy{From: from, UserHeader: f.UserHeader, RolesHeader: f.RolesHeader}
	}
	if f.Users == "" {
		return cfg, nil
	}
	var err error
	cfg.Users, err = OpenUsers(f.Users)
	return cfg, err
}
