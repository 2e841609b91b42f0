package nats

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// DefaultURL is where a server listens by default.
const DefaultURL = natsgo.DefaultURL

// Config says which server to connect to, and as whom. Of Creds, User, Login and Token at
// most one is set.
type Config struct {
	URL            string // one address, or several of one cluster with commas between; default DefaultURL
	Name           string // how the server lists the connection; default "hamlet"
	Creds          string // a file with a user's JWT and seed
	User, Password string //
	Token          string //
	// Login returns user and password for each attempt to connect, so that a server that
	// comes back with other ones is reached; both empty mean none. It is in place of User
	// and Password.
	Login func() (user, password string)
	Inbox string      // the first word of the subjects of answers; default _INBOX
	TLS   *tls.Config // nil: TLS only if the URL or the server asks for it
	// Wait lets Connect return before there is a server, and connect when there is one
	// that lets us in. Without it, no server is an error.
	Wait bool
	// InProcess opens connections to a server of this process, such as an embedded.NATS, by
	// neither TCP nor a file. URL is then a name for errors and logs. Who connects is said
	// as on any other connection, and TLS is possible.
	InProcess natsgo.InProcessConnProvider
	Timeout   time.Duration // of one attempt to connect; default 2 s
	Log       *slog.Logger  // lost and regained connections, and once a minute why there is none; nil: silent
}

// Connect opens a connection that reconnects for ever, two to four times a second.
// Publishing while it is disconnected is an error. Nothing is buffered, because nobody
// waits for an answer that is minutes late. A user gets answers below _INBOX.USER, so
// that a server's permissions can keep them from other users. The caller closes the
// connection.
func Connect(cfg Config) (*natsgo.Conn, error) { return connect(cfg, tellEvery) }

func connect(cfg Config, every time.Duration) (*natsgo.Conn, error) {
	cfg.URL = cmp.Or(cfg.URL, DefaultURL)
	cfg.Name = cmp.Or(cfg.Name, "hamlet")
	cfg.Timeout = cmp.Or(max(cfg.Timeout, 0), 2*time.Second)
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	at := Redact(cfg.URL)
	for i, address := range strings.Split(cfg.URL, ",") {
		if _, err := parseAddress(address); err != nil {
			return nil, fmt.Errorf("connect to nats at %s: address %d: %w", at, i+1, err)
		}
	}
	failed := &failures{at: at, log: log, every: every}
	options := []natsgo.Option{
		natsgo.Name(cfg.Name),
		natsgo.Timeout(cfg.Timeout),
		natsgo.MaxReconnects(-1),
		natsgo.CustomReconnectDelay(func(int) time.Duration {
			failed.again()
			return reconnectWait + rand.N(reconnectJitter)
		}),
		natsgo.ReconnectErrHandler(func(_ *natsgo.Conn, err error) { failed.tell(err) }),
		natsgo.ReconnectBufSize(-1),
		natsgo.WriteBufferSize(1), // who publishes writes: to wake the client's flusher first takes longer (MEASURED.md)
		natsgo.RetryOnFailedConnect(cfg.Wait),
		natsgo.ConnectHandler(func(c *natsgo.Conn) {
			if server := c.ConnectedUrlRedacted(); server != "" { // with Wait it is called before there is one
				log.Info("nats connected", "server", server)
			}
		}),
		natsgo.ReconnectHandler(func(c *natsgo.Conn) {
			log.Info("nats connected again", "server", c.ConnectedUrlRedacted())
		}),
		natsgo.DisconnectErrHandler(func(_ *natsgo.Conn, err error) {
			if err != nil { // nil is an orderly close
				log.Warn("nats connection lost", "server", at, "error", err)
			}
		}),
		natsgo.ErrorHandler(func(c *natsgo.Conn, sub *natsgo.Subscription, err error) {
			if sub == nil && !c.IsConnected() {
				failed.tell(err) // each attempt brings it
				return
			}
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Warn("nats error", "subject", subject, "error", err)
		}),
	}
	var identity []natsgo.Option
	if cfg.Creds != "" {
		identity = append(identity, natsgo.UserCredentials(cfg.Creds))
	}
	if cfg.User != "" || cfg.Password != "" {
		identity = append(identity, natsgo.UserInfo(cfg.User, cfg.Password))
		if subjectToken().MatchString(cfg.User) {
			options = append(options, natsgo.CustomInboxPrefix(natsgo.InboxPrefix+cfg.User))
		}
	}
	if cfg.Login != nil {
		identity = append(identity, natsgo.UserInfoHandler(cfg.Login))
	}
	if cfg.Token != "" {
		identity = append(identity, natsgo.Token(cfg.Token))
	}
	if cfg.Wait {
		options = append(options, natsgo.IgnoreAuthErrorAbort()) // the server may learn of us later
	}
	if len(identity) > 1 {
		return nil, fmt.Errorf("connect to nats at %s: only one of a credentials file, a user and a token may be given", at)
	}
	options = append(options, identity...)
	if cfg.Inbox != "" {
		options = append(options, natsgo.CustomInboxPrefix(cfg.Inbox))
	}
	if cfg.TLS != nil {
		options = append(options, natsgo.Secure(cfg.TLS))
	}
	if cfg.InProcess != nil {
		options = append(options, natsgo.InProcessServer(cfg.InProcess))
	}
	conn, err := natsgo.Connect(cfg.URL, options...)
	if err != nil {
		return nil, connectError(at, err)
	}
	failed.conn.Store(conn)
	return conn, nil
}

const (
	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 250 * time.Millisecond // a service's clients do not come back at once
	tellEvery       = time.Minute
)

// failures are the attempts to connect that failed. The log has the last one, at most once
// in each period.
type failures struct {
	at    string
	log   *slog.Logger
	every time.Duration
	conn  atomic.Pointer[natsgo.Conn]

	mu   sync.Mutex
	told time.Time // mu guards it
}

// again is called before another attempt. The library says by no handler that a server
// which came later refuses us.
func (f *failures) again() {
	if conn := f.conn.Load(); conn != nil {
		f.tell(conn.LastError())
	}
}

func (f *failures) tell(err error) {
	f.mu.Lock()
	silent := err == nil || !f.told.IsZero() && time.Since(f.told) < f.every
	if !silent {
		f.told = time.Now()
	}
	f.mu.Unlock()
	if !silent {
		f.log.Warn("nats is not connected", "server", f.at, "error", connectError(f.at, err))
	}
}

// subjectToken is a user's name that can be a part of a subject as it stands.
var subjectToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
})

// connectError says what to do about err.
func connectError(at string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, natsgo.ErrNoServers):
		return fmt.Errorf("connect to nats at %s: no server answers there; start one or give another address: %w", at, err)
	case errors.Is(err, natsgo.ErrAuthorization), errors.Is(err, natsgo.ErrAuthExpired):
		advice = "; check the user name, password, token or credentials file"
	case errors.Is(err, natsgo.ErrSecureConnRequired):
		advice = "; the server wants TLS: use a tls:// address"
	case errors.Is(err, natsgo.ErrSecureConnWanted):
		advice = "; the server speaks no TLS: use a nats:// address"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		advice = "; name the authority that signed the server's certificate"
	case certificateRefused(err), strings.Contains(err.Error(), "closed by remote after TLS handshake"):
		advice = "; the server wants a certificate of our own that an authority it trusts has signed"
	case expired(err):
		advice = "; renew the server's certificate, or correct the clock here"
	case errors.As(err, new(*net.DNSError)):
		advice = "; check the host's name"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		advice = "; check the path of the credentials file"
	}
	return fmt.Errorf("connect to nats at %s: %w%s", at, err, advice)
}

// certificateRefused reports whether the other side refused our certificate, or wants
// one. The alert has no exported type. In TLS 1.2 a missing certificate is a "handshake
// failure", which can also mean that the two sides share no cipher.
func certificateRefused(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" &&
		(strings.Contains(alert.Err.Error(), "certificate") || strings.Contains(alert.Err.Error(), "handshake failure"))
}

// expired reports whether the other side's certificate has expired, or is not valid yet.
func expired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// Redact removes user names, passwords and tokens from an address, or from several with
// commas between, for errors and logs. It removes a text that is not an address as a
// whole, because any part may be secret.
func Redact(urls string) string {
	list := strings.Split(urls, ",")
	for i, s := range list {
		u, err := parseAddress(s)
		if err != nil {
			list[i] = "(not an address)"
			continue
		}
		if u.User != nil {
			u.User = url.User("xxxxx")
		}
		list[i] = u.String()
	}
	return strings.Join(list, ",")
}

var schemes = []string{"nats", "tls", "ws", "wss"}

// parseAddress reads one server's address as the client library does. Its error quotes
// neither the address nor net/url's error, which would show a part of a password with a
// slash or a %.
func parseAddress(s string) (*url.URL, error) {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "://") {
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" ||
		strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
		return nil, errors.New("write it as nats://host:port, or with tls, ws or wss for nats; in a user name, " +
			"password or token write special characters as %XX, or set them apart from the address")
	}
	return u, nil
}
