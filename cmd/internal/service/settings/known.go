package settings

import (
	"net"
	"net/url"
	"strings"

	"hamlet/cmd/internal/process/credentials"
	"hamlet/stream/nats"
)

// ServiceInbox begins the subjects of the answers to the service's user of an embedded
// NATS. A program that only asks may subscribe to _INBOX, and shall not read these.
const ServiceInbox = "_INBOX_hamlet"

// EmbeddedNATS returns the flags with which a service reaches an embedded NATS.
func EmbeddedNATS(address, password string) NATS {
	if password == "" {
		return NATS{NATS: address}
	}
	return NATS{
		NATS: address, Inbox: ServiceInbox,
		NATSAccess: NATSAccess{NATSUser: credentials.ServiceUser, NATSPassword: password},
	}
}

// A configuration that says where a server is, but not who asks, may mean the server of
// a `hamlet up` that the same user runs. Then its password is known.

func knownService(cfg nats.Config) nats.Config {
	known := knownNATS(cfg, func(a credentials.Access) credentials.Login { return a.NATS })
	if known.User != cfg.User {
		known.Inbox = ServiceInbox
	}
	return known
}

// KnownAsker adds to cfg the user who asks for scores, if cfg names no user and the
// server is that of a `hamlet up` which the same user runs.
func KnownAsker(cfg nats.Config) nats.Config {
	return knownNATS(cfg, func(a credentials.Access) credentials.Login { return a.Asker })
}

// AskerLogin returns a function that looks KnownAsker's user and password up again at each
// connection, because an up that starts again may have others. It is nil if cfg says who
// connects.
func AskerLogin(cfg nats.Config) func() (user, password string) {
	if !Anonymous(cfg) {
		return nil
	}
	return func() (user, password string) {
		known := KnownAsker(cfg)
		return known.User, known.Password
	}
}

// WithServiceLogin is AskerLogin for the user of the services, who may do everything. It returns
// cfg with that Login, and the Inbox of that user. cfg stays as it is if it says who connects,
// or with TLS, whose certificate may say it.
func WithServiceLogin(cfg nats.Config) nats.Config {
	if !Anonymous(cfg) || cfg.TLS != nil {
		return cfg
	}
	plain := cfg
	cfg.Inbox = ServiceInbox
	cfg.Login = func() (user, password string) {
		known := knownService(plain)
		return known.User, known.Password
	}
	return cfg
}

func knownNATS(cfg nats.Config, login func(credentials.Access) credentials.Login) nats.Config {
	addr, ok := plainNATS(cfg)
	if !ok {
		return cfg
	}
	if l, ok := credentials.Find(addr, login); ok {
		cfg.URL, cfg.User, cfg.Password = "nats://"+l.Addr, l.User, l.Password
	}
	return cfg
}

// plainNATS returns the host:port of a configuration of one server without a user or TLS.
func plainNATS(cfg nats.Config) (addr string, ok bool) {
	if !Anonymous(cfg) || cfg.TLS != nil {
		return "", false
	}
	address := cfg.URL
	if !strings.Contains(address, "://") {
		address = "nats://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "nats" {
		return "", false
	}
	port := u.Port()
	if port == "" {
		port = "4222"
	}
	return net.JoinHostPort(u.Hostname(), port), true
}

// Anonymous reports whether cfg says nothing about who connects.
func Anonymous(cfg nats.Config) bool {
	return cfg.Creds == "" && cfg.User == "" && cfg.Password == "" && cfg.Token == "" && !strings.Contains(cfg.URL, "@")
}
